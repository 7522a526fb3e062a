"""reports/drawing/maps.py: every map is drawn under its name, with colours that tell apart."""

from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import matplotlib.image

from attnbench.reports.elements import Map, Maps
from tests.reports.drawing.drawings import EMPTY, check_texts, contents, parts


def maps_of(count: int, side: int = 24, weight: float = 0.9, *, hot: float | None = None) -> Maps:
    rows = [[weight if k <= q else 0.0 for k in range(side)] for q in range(side)]
    if hot is not None:
        rows[0][0] = hot
    return Maps(
        title="maps",
        caption="",
        description="",
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(
            Map(label=f"head {head + 1}", rows=tuple(map(tuple, rows))) for head in range(count)
        ),
        table=EMPTY,
    )


def test_maps_of_zeros_and_of_one_token_are_drawn() -> None:
    for maps in (maps_of(2, weight=0.0), maps_of(2, side=1)):
        assert sum(len(one.findall("image")) for one in parts(maps)) == 3


def test_one_hot_weight_leaves_the_others_bright() -> None:
    first, *_, scale = parts(maps_of(2, weight=0.01, hot=1.0))
    data = b64decode(first.findall("image")[0].get("href", "").partition(",")[2])
    pixels = matplotlib.image.imread(BytesIO(data), format="png")
    assert pixels.shape[:2] == (24, 24)
    assert (pixels[5, 0] == pixels[0, 0]).all()
    assert (pixels[5, 0] != pixels[5, 9]).any()
    assert "≥ 0.01" in contents(scale)


def test_a_long_name_stands_whole_above_its_map_and_squares_stay_level() -> None:
    maps = maps_of(2)
    first = replace(maps.maps[0], label="block 12 head 16, before training")
    long, short, _ = parts(replace(maps, maps=(first, maps.maps[1])))
    names = [one for one in long.iter("text") if one.get("font-weight")]
    assert " ".join(one.text or "" for one in names) == first.label
    squares = [one.findall("image")[0].get("transform") for one in (long, short)]
    assert squares[0] == squares[1]
    check_texts(long)


def test_columns_and_rows_may_have_names() -> None:
    names = tuple(f"sdpa:number_{one}" for one in range(6))
    first, _ = parts(replace(maps_of(1, side=6), x_names=names, y_names=names))
    said = contents(first)
    assert all(said.count(name) == 1 for name in names[1:]), "rows; columns have no room for all"
    assert said.count(names[0]) == 2
    check_texts(first)
