"""The colour and the marker of each backend: bound to its name, so the same on every page.

Colours are variables of the page's style sheet by a backend's place: `b2` of lines and marks, `t2`
of words. What has no place, such as a formula that no backend has, is `x`.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from zlib import crc32

CSS = Path(__file__).parents[1] / "pages" / "pictures.css"
COLOURS: Mapping[str, str] = dict(
    re.findall(r"--([\w-]+): (#\w{6})", CSS.read_text(encoding="utf-8").partition("@media")[0])
)
"""Those of a light page, by variable; drawings have these, and pages the variables."""
TONES = 9  # b0 to b8
KNOWN = {
    "naive": 0,
    "fused": 1,
    "sdpa": 2,
    "triton": 3,
    "torch_mha": 4,
    "sdpa:flash": 5,
    "sdpa:efficient": 6,
    "flex": 7,
    "sdpa:math": 8,
    "eager": 0,
    "flash_attention_2": 5,
    "flex_attention": 7,
}
"""Those of transformers, `hf:sdpa`, by what follows."""
OTHERS = range(3, TONES)  # the three that most pages have keep theirs for themselves

Places = Mapping[str, int]
"""By name; more than TONES repeat the colours with other markers."""


def places_of(names: Iterable[str]) -> dict[str, int]:
    """A name has the place that KNOWN or its letters give it, or the next one that is free here."""
    found: dict[str, int] = {}
    ordered = sorted(
        set(names),
        key=lambda name: (name.removeprefix("hf:") not in KNOWN, name.startswith("hf:"), name),
    )
    for name in ordered:
        plain = name.partition(" ")[0].removeprefix("hf:")  # without a mark of exactness
        first = crc32(plain.encode()) % len(OTHERS)
        wanted = KNOWN.get(plain, OTHERS[first])
        others = (*OTHERS[first:], *OTHERS[:first], *range(OTHERS.start))
        steps = (TONES * times + place for times in count() for place in (wanted, *others))
        taken = set(found.values())
        found[name] = next(place for place in steps if place not in taken)
    return found


def tone(name: str, places: Places) -> str:
    """The end of the name of a backend's variables; x if it has no place."""
    return str(places[name] % TONES) if name in places else "x"
