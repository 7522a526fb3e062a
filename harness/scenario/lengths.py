"""The lengths of a ragged batch as scenarios and options give them, in each form:

[2k, 300, 1k]                                    one sequence each
2q2k_32q1s1k                                     in vLLM's grammar (impls/axes/lengths.py)
lognormal:count=16:mean=1k:sigma=0.8:seed=1      drawn, equal for equal numbers
file:lengths.txt                                 of a file, a length or a part in a line, from
                                                 the folder where attnbench is started
"""

import re
from math import exp, log
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

from ...impls.axes.lengths import canonical, sequences, tokens
from ..files.errors import BadInput, shown
from ..files.printable import visible
from ..files.safe_files import read_text

SIZE = re.compile(r"[0-9]{1,9}[kKmM]?", re.ASCII)
LOGNORMAL = re.compile(
    r"lognormal:count=([1-9][0-9]{0,3}):mean=([1-9][0-9]{0,8}[kKmM]?):sigma=([0-9]{0,3}\.?[0-9]{1,5})"
    r":seed=([0-9]{1,9})",
    re.ASCII,
)
FORMS = (
    "wanted lengths such as [2k, 300, 1k], 2q2k_32q1s1k, file:PATH or"
    " lognormal:count=16:mean=1k:sigma=0.8:seed=1"
)
MAX_BYTES = 1 << 20


def is_size(value: Any) -> bool:
    return not isinstance(value, bool) and SIZE.fullmatch(str(value)) is not None


def packed(value: Any) -> str:
    """The one text that a Problem has for them. Raises ValueError that says all of it in a line."""
    text = value if isinstance(value, str) else ""
    if isinstance(value, list | tuple) and value and all(map(is_size, value)):
        text = "_".join(f"q{size}" for size in value)
    elif is_size(value):
        text = f"q{value}"
    elif text.startswith("file:"):
        text = _of_file(text.removeprefix("file:"))
    elif text.startswith("lognormal:"):
        text = _drawn(text)
    elif not text:
        raise ValueError(f"found {shown(value)}; {FORMS}")
    try:
        return canonical(sequences(text))
    except ValueError as error:
        raise ValueError(f"{error}; other forms: [2k, 300, 1k], file:PATH, lognormal:...") from None


def _of_file(name: str) -> str:
    try:
        content = read_text(Path(name), visible(name), MAX_BYTES, "a file with a length per line")
    except BadInput as error:
        raise ValueError(error.problems[0]) from None
    parts = []
    for number, line in enumerate(map(str.strip, content.splitlines()), 1):
        part = f"q{line}" if is_size(line) else line
        try:
            parts += [canonical(sequences(part))] if part else []
        except ValueError:  # which would show what the file has: it may be any file
            wanted = "wanted a length, such as 300 or 2k, or a part such as 32q1s1k"
            raise ValueError(f"{visible(name)}:{number}:1: not a length; {wanted}") from None
    if not parts:
        raise ValueError(f"{visible(name)}: has no lengths; wanted one per line, such as 300 or 2k")
    return "_".join(parts)


def _drawn(text: str) -> str:
    """Rounded numbers of a lognormal distribution with this mean; `sigma` is the standard deviation
    of their logarithms.
    """
    match = LOGNORMAL.fullmatch(text)
    if match is None:
        wanted = "wanted lognormal:count=16:mean=1k:sigma=0.8:seed=1"
        raise ValueError(f"found {shown(text)}; {wanted}")
    count, mean, sigma, seed = match.groups()
    spread = float(sigma)
    middle = log(tokens(mean)) - spread**2 / 2
    draw = Random(int(seed)).random  # the one method whose numbers Python promises to keep
    normal = (NormalDist().inv_cdf(draw() or 0.5) for _ in range(int(count)))
    return "_".join(f"q{max(1, round(exp(middle + spread * one)))}" for one in normal)
