"""What `--gate` says: `latency: 5%, peak_bytes: 0%`, written out or in a YAML file, as margins by
metric.
"""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import BadInput, shown
from ..scenario.yaml_text import read_yaml

NOISE = "noise"
METRICS = ("latency", "peak_bytes", "energy_per_call")
ALIASES = {"energy_per_call_j": "energy_per_call", "latency_ms": "latency"}
PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*%\s*")
EXAMPLE = "such as `latency: 5%, peak_bytes: 0%`"
Margins = dict[str, float | None]


def read_margins(text: str) -> Margins:
    """Metric -> margin as a ratio; None for `noise`, what is noise on the machine. Raises BadInput.

    An existing file is read as YAML, all else as an expression.
    """
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL byte
        is_file = False
    if is_file or ":" not in text:
        return _of_file(Path(text)) if is_file or text.strip() else _refuse_empty("--gate")
    return _of_expression(text)


def _of_file(path: Path) -> Margins:
    document = read_yaml(path)
    if document.data is None:
        return _refuse_empty(document.origin)
    if not isinstance(document.data, dict):
        raise BadInput(
            f"{document.place(())}: found {shown(document.data)}; wanted metrics with percentages,"
            f" {EXAMPLE}"
        )
    margins: Margins = {}
    for name, value in document.data.items():
        _add(margins, name, value, document.place((name,), of_key=True), document.place((name,)))
    return margins


def _of_expression(text: str) -> Margins:
    margins: Margins = {}
    for part in text.split(","):
        name, colon, value = part.partition(":")
        if not colon:
            raise BadInput(
                f"--gate: found {shown(part.strip())}; wanted metrics with percentages, {EXAMPLE}"
            )
        _add(margins, name.strip(), value.strip(), "--gate", "--gate")
    return margins


def _add(margins: Margins, name: str, value: Any, at_name: str, at_value: str) -> None:
    metric = ALIASES.get(name, name)
    if metric not in METRICS:
        close = get_close_matches(name, METRICS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(METRICS)}"
        raise BadInput(f"{at_name}: {shown(name)}: not a metric that can be gated; {hint}")
    if metric in margins:
        raise BadInput(f"{at_name}: {metric}: given twice; keep one")
    if value == NOISE:
        margins[metric] = None
        return
    found = PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise BadInput(
            f"{at_value}: {metric}: found {shown(value)}; wanted a percentage from 0%, or noise;"
            " write it as 5%"
        )
    margins[metric] = float(found[1]) / 100


def _refuse_empty(place: str) -> Margins:
    raise BadInput(f"{place}: empty; wanted metrics with percentages, {EXAMPLE}")
