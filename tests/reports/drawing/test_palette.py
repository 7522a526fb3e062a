"""reports/drawing/palette.py: a backend has the same colour on every page."""

import re

from attnbench.reports.drawing.palette import COLOURS, CSS, TONES, places_of, tone


def test_the_colour_of_a_backend_does_not_depend_on_the_others() -> None:
    alone = places_of(["attend@my_attention"])
    beside = places_of(["sdpa", "fused", "attend@my_attention", "naive"])
    assert tone("attend@my_attention", alone) == tone("attend@my_attention", beside)
    assert [tone(name, beside) for name in ("naive", "fused", "sdpa")] == ["0", "1", "2"]
    assert tone("hf:sdpa", places_of(["hf:eager", "hf:sdpa"])) == tone("sdpa", beside)
    assert tone("linformer ~", places_of(["linformer ~"])) == tone(
        "linformer", places_of(["linformer"])
    )


def test_backends_of_a_page_differ_in_colour_as_long_as_there_are_colours() -> None:
    names = ["sdpa", "hf:sdpa", *(f"own{number}" for number in range(TONES - 2))]
    assert len({tone(name, places_of(names)) for name in names}) == TONES
    more = [*names, *(f"other{number}" for number in range(20))]
    assert len(set(places_of(more).values())) == len(more)
    assert tone("quadratic", places_of(names)) == "x"


def test_the_dark_page_has_every_colour_too_and_colours_that_are_one_stay_one() -> None:
    dark = CSS.read_text().split("@media screen")[1]
    found = dict(re.findall(r"--([\w-]+): (#\w{6})", dark.partition("\n}\n")[0]))
    assert found.keys() == COLOURS.keys()
    pairs = {(COLOURS[name], found[name]) for name in COLOURS}
    assert len(pairs) == len(set(COLOURS.values()))
