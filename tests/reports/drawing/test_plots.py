"""reports/drawing/plots.py: crosses at the upper edge take no room if there are none."""

from pathlib import Path

import pytest

from attnbench.reports.drawing import plots
from attnbench.reports.elements import Figure, Panel, Series, Table

pytestmark = pytest.mark.long


def test_panels_without_crosses_reserve_no_room_for_them(tmp_path: Path) -> None:
    """Each panel reaches down to its label and the legend, whatever failed."""

    def height(y: float | None) -> float:
        ran = Series(backend="fused", kind="measured", x=(1.0, 2.0), y=(1.0, 2.0))
        failed = Series(backend="fused", kind="failed", x=(4.0,), y=(y,))
        panel = Panel(series=(ran, failed), x_label="N", y_label="bytes", unit="bytes")
        canvas, (axes,) = plots._drawing(
            Figure(
                title="",
                caption="",
                description="",
                panels=(panel,),
                table=Table(title="", columns=(), rows=()),
            ),
            ("fused",),
            4.0,
        )
        canvas.draw_without_rendering()
        return float(axes.get_position().height)

    assert height(4.0) == pytest.approx(height(None), abs=0.02)
