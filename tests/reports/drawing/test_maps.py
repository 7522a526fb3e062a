"""reports/drawing/maps.py: every map is drawn once, apart from the others, under its name."""

from attnbench.reports.drawing.maps import svg
from attnbench.reports.elements import Map, Maps, Table


def maps_of(count: int, side: int = 24, weight: float = 0.9) -> Maps:
    rows = tuple(tuple(weight if k <= q else 0.0 for k in range(side)) for q in range(side))
    return Maps(
        title="maps",
        caption="",
        description="",
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(Map(label=f"head {head + 1}", rows=rows) for head in range(count)),
        table=Table(title="", columns=(), rows=()),
    )


def test_maps_of_zeros_and_of_one_token_are_drawn() -> None:
    for maps in (maps_of(2, weight=0.0), maps_of(2, side=1)):
        assert svg(maps, "m1").count("<image") == 3
