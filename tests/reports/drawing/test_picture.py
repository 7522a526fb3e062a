"""reports/drawing/picture.py: two versions of every picture, files."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from attnbench.reports.drawing.palette import COLOURS
from attnbench.reports.drawing.picture import drawn, save
from attnbench.reports.elements import Bar, Bars, Drawable
from tests.conftest import ran
from tests.reports.drawing.drawings import EMPTY, QUICKSTART, check_texts, figure_of, line, times
from tests.reports.drawing.test_dots import PLOT
from tests.reports.drawing.test_maps import maps_of

BACKENDS = ("naive", "fused", "sdpa")
HOSTILE = "<script>alert(1)</script>$\\frac{$\x1b[31m\u202e`a`漢\r\n&amp;"
BARS = Bars(
    title="busy",
    caption="",
    description="",
    groups=(
        ("at N = 4k", (Bar(backend="sdpa", label="tensor cores", share=0.4, note="40 %"),)),
        ("in squares", (Bar(backend="fused", label="fused", share=1, note="×8", squares=8),)),
    ),
    table=EMPTY,
)
PICTURES: dict[str, Drawable] = {
    "wall": QUICKSTART,
    "lines": figure_of(times(line("sdpa", 1, 2, low=(1, 1), high=(2, 3)), line=(2, "a line"))),
    "dots": PLOT,
    "bars": BARS,
    "maps": maps_of(2),
}


@pytest.mark.parametrize("name", PICTURES)
def test_colours_are_variables_and_no_style_is_inline(name: str) -> None:
    page = re.sub(r'href="data:[^"]*"', "", drawn(PICTURES[name], BACKENDS, "a"))
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|<style| style=|<metadata", page)
    used = set(re.findall(r"var\(--([\w-]+)\)", page))
    assert used
    assert used <= COLOURS.keys()


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"maps"}))
def test_there_is_a_wide_and_a_narrow_version(name: str) -> None:
    page = drawn(PICTURES[name], BACKENDS, "a")
    found = re.findall(r'class="pic \w+ (\w+)" viewBox="0 0 (\d+)', page)
    assert {wide for kind, wide in found if kind == "narrow"} == {"326"}
    assert min(int(wide) for kind, wide in found if kind == "wide") > 450
    for part in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        check_texts(ElementTree.fromstring(part))


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_file_is_the_same_each_time_and_texts_of_svg_are_texts(kind: str, tmp_path: Path) -> None:
    figure = figure_of(*[times(line(HOSTILE, 1, 2), line("sdpa", 2, 3))] * 4)
    for picture in (figure, *(PICTURES.values() if kind == "svg" else [PLOT])):
        one, other = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
        for path in (one, other):
            save(picture, [HOSTILE, *BACKENDS], path, 100)
        assert one.read_bytes() == other.read_bytes()
        assert one.read_bytes().startswith(
            {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[kind]
        )
    if kind == "svg":
        assert ">weight</text>" in one.read_text()
    if kind == "png":  # it fills its sheet at every resolution
        ink = np.argwhere(matplotlib.image.imread(one)[..., :3].min(axis=2) < 0.9)
        tall = matplotlib.image.imread(one).shape[0]
        assert ink[:, 0].min() < 0.2 * tall
        assert ink[:, 0].max() > 0.8 * tall


@pytest.mark.long  # a process that imports matplotlib without its cache
def test_without_a_home_nothing_is_said_and_matplotlib_waits_for_a_picture() -> None:
    code = (
        "import sys\n"
        "from attnbench.reports.drawing.picture import drawn\n"
        "from tests.reports.drawing.test_dots import PLOT\n"
        "assert 'matplotlib' not in sys.modules\n"
        "assert '<svg' in drawn(PLOT, ['sdpa'], 'a')\n"
    )
    homeless = {
        "HOME": "/proc/none",
        "XDG_CONFIG_HOME": "",
        "XDG_CACHE_HOME": "",
        "MPLCONFIGDIR": "",
    }
    done = ran([sys.executable, "-c", code], env=homeless)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
