"""Which passes are computed, and timed."""

from .axis import Axis

PASSES = Axis(
    "What is computed: forward, backward (alone, after an untimed forward pass) or"
    " forward+backward.",
    option="forward, backward, forward+backward (default: forward).",
    given="forward",
    scenario_wide=True,
    part=lambda p: p.passes,
    text=lambda value: value if "+" in value else f"{value} pass",
    in_rows="`forward`, `backward`, `forward+backward`",
)
