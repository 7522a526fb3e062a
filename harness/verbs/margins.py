"""`--gate` as margins by metric: `latency: 5%, peak_bytes: 0%`, written out or in a YAML file."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, instead_of, option, shown

NOISE = "noise"
METRICS = ("latency", "peak_bytes", "energy_per_call")
ALIASES = {"energy_per_call_j": "energy_per_call", "latency_ms": "latency"}
PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*%\s*")
WANTED = "wanted metrics with percentages, such as `latency: 5%, peak_bytes: 0%`"
Margins = dict[str, float | None]
Entry = tuple[str, Any, str, str]
"""A metric, its margin, and the places of both."""


def read_margins(text: str) -> Margins:
    """Metric -> margin as a ratio; None for `noise`, the machine's own. Raises BadInput.

    An existing file is read as YAML, other text as an expression.
    """
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL byte
        is_file = False
    if not text.strip() and not is_file:
        raise BadInput(f"{option('gate')}: empty; {WANTED}")
    return _margins(_of_file(Path(text)) if is_file or ":" not in text else _of_expression(text))


def margin_ratio(text: str) -> float:
    """Of `--margin`: 0.05 for 5%. Raises BadInput."""
    found = PERCENT.fullmatch(text)
    if found is None:
        raise BadInput(
            f"{option('margin')}: found {shown(text)}; wanted a percentage from 0%, as 5%"
        )
    return float(found[1]) / 100


def _of_file(path: Path) -> Iterable[Entry]:
    if not os.path.lexists(path):
        raise BadInput(
            f"{option('gate')} {shown(str(path))}: no such file; {WANTED}, or a YAML file of these"
        )
    from ..scenario.document import read_yaml  # all of harness.scenario, which reports do without

    document = read_yaml(path)
    if document.data is None:
        raise BadInput(f"{document.origin}: empty; {WANTED}")
    if not isinstance(document.data, dict):
        raise BadInput(f"{document.place(())}: found {shown(document.data)}; {WANTED}")
    for name, value in document.data.items():
        yield name, value, document.place((name,), of_key=True), document.place((name,))


def _of_expression(text: str) -> Iterable[Entry]:
    for part in text.split(","):
        name, colon, value = part.partition(":")
        if not colon:
            raise BadInput(f"{option('gate')}: found {shown(part.strip())}; {WANTED}")
        yield name.strip(), value.strip(), option("gate"), option("gate")


def _margins(entries: Iterable[Entry]) -> Margins:
    margins: Margins = {}
    for name, value, at_name, at_value in entries:
        metric = ALIASES.get(name, name)
        if metric not in METRICS:
            hint = instead_of(name, METRICS)
            raise BadInput(f"{at_name}: {shown(name)}: not a metric that can be gated; {hint}")
        if metric in margins:
            raise BadInput(f"{at_name}: {metric}: given twice; keep one")
        found = PERCENT.fullmatch(value) if isinstance(value, str) else None
        if found is None and value != NOISE:
            raise BadInput(
                f"{at_value}: {metric}: found {shown(value)}; wanted a percentage from 0%, or"
                " noise; write it as 5%"
            )
        margins[metric] = float(found[1]) / 100 if found else None
    return margins
