"""reports/drawing/tile_map.py: tiles to scale, with names that do not cover each other."""

import re
from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.tile_map import Width, draw
from attnbench.reports.elements import MemoryStore, Piece, Table, TileMap, TilePanel
from tests.reports.drawing.test_wall_chart import overlapping, texts

WIDTHS: tuple[Width, ...] = ("wide", "narrow")


def store(*pieces: Piece, capacity: float = 256) -> MemoryStore:
    return MemoryStore(label="registers", capacity=capacity, pieces=pieces, note="64 of 256 KiB")


def panel(*stores: MemoryStore, keys: int = 128, d_k: int = 128) -> TilePanel:
    return TilePanel(
        heading="Heads 128 wide",
        remark="128 × 128, 8 warps",
        queries=128,
        keys=keys,
        d_k=d_k,
        d_v=128,
        causal=True,
        stores=stores,
    )


O_AND_S = (Piece(label="O", size=64, look="product"), Piece(label="S", size=32, look="softmax"))
AGAIN = Piece(label="O", size=64, look="product", block=1)


def tiles(*panels: TilePanel) -> TileMap:
    table = Table(title="", columns=(), rows=())
    return TileMap(title="", caption="", description="<tiles>", panels=panels, table=table)


def classed(svg: str, look: str) -> list[dict[str, float]]:
    found = re.findall(rf'<rect class="k-{look}" ([^>]*?)/?>', svg)
    return [
        {name: float(value) for name, value in re.findall(r'(\w+)="([-.\d]+)"', one)}
        for one in found
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_covers_another_or_leaves_the_drawing(width: Width) -> None:
    drawn = draw(tiles(panel(store(*O_AND_S, AGAIN)), panel(store(*O_AND_S), keys=64)), width)
    drawing = ElementTree.fromstring(drawn)
    assert overlapping(texts(drawing)) == []
    _, _, wide, high = map(float, drawing.get("viewBox", "").split())
    for words in texts(drawing):
        assert 0 <= words.left <= words.right <= wide + 2, words
        assert words.bottom <= high, words
    assert drawing.get("aria-label") == "<tiles>"


@pytest.mark.parametrize("width", WIDTHS)
def test_areas_are_to_scale(width: Width) -> None:
    drawn = draw(tiles(panel(store(*O_AND_S)), panel(store(capacity=128), keys=64)), width)
    *_, output = classed(drawn, "product")[:2]
    scores, in_registers, half = classed(drawn, "softmax")
    assert in_registers["width"] == pytest.approx(output["width"] / 2, abs=0.2)
    assert scores["width"] == pytest.approx(2 * half["width"], abs=0.2)
    assert scores["height"] == pytest.approx(half["height"], abs=0.2)
    frames = re.findall(r'<rect class="frame"[^>]* width="([\d.]+)" height="26"', drawn)
    assert float(frames[0]) == pytest.approx(2 * float(frames[1]), abs=0.2)


def test_a_name_that_has_no_room_is_left_out_and_other_blocks_have_none() -> None:
    thin = Piece(label="Q", size=1, look="query")
    drawn = draw(tiles(panel(store(thin, *O_AND_S, AGAIN))), "wide")
    assert drawn.count(">Q</text>") == 1  # beside the matrix, where it has room
    assert drawn.count(">O</text>") == 2
    assert '<rect class="k-product again"' in drawn
    assert drawn.count("<title>O</title>") == 1


def test_names_are_text() -> None:
    hostile = Piece(label="<img>", size=200, look="rest")
    assert "<img" not in draw(tiles(panel(store(hostile))), "wide")
