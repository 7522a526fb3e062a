"""The named plans: how long and how often a run measures. The page repeats a case by them."""

PLAN_FIELDS = (
    "processes",
    "min_blocks",
    "max_blocks",
    "precision_ratio",
    "budget_s",
    "windows",
    "window_s",
)
PLANS: dict[str, dict[str, int | float]] = {
    name: dict(zip(PLAN_FIELDS, values, strict=True))
    for name, values in {
        "quick": (4, 3, 3, 0.05, 2.0, 1, 2.0),
        "standard": (10, 2, 3, 0.03, 10.0, 3, 6.0),
        "rigorous": (16, 2, 9, 0.01, 60.0, 5, 6.0),
    }.items()
}
