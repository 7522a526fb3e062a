"""The noise floor of a device: what `attnbench selfcheck` found and kept beside the runs, in
selfcheck.jsonl.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .read import LINE_CAP_BYTES, SCHEMA, open_plain

FILE = "selfcheck.jsonl"
MOST_RATIO = 10.0  # beyond it a check says nothing of noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """95 % of ratios of equals lie within 1 + these: measured in the same blocks, and in different
    processes.
    """

    path: Path
    started_utc: str
    paired_noise_ratio: float
    run_noise_ratio: float


def newest_floor(folders: Iterable[Path], identity: Mapping[str, Any]) -> Floor | None:
    """Of the checks in these folders whose environment has this identity; lines that cannot be read
    are passed over. Raises BadRun.
    """
    found = [
        floor
        for folder in dict.fromkeys(folders)
        for line in _lines(folder / FILE)
        if (floor := _floor(folder, line, identity))
    ]
    return max(found, key=lambda floor: floor.started_utc, default=None)


def _lines(path: Path) -> Iterable[Any]:
    file = open_plain(path)
    if file is None:
        return
    with file:
        while line := file.readline(LINE_CAP_BYTES + 1):
            if len(line) > LINE_CAP_BYTES:
                return
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue  # a line that was torn off


def _floor(folder: Path, line: Any, identity: Mapping[str, Any]) -> Floor | None:
    if not isinstance(line, dict) or line.get("schema") not in range(1, SCHEMA + 1):
        return None
    known = line.get("environment")
    ratios: list[Any] = [line.get("paired_noise_ratio"), line.get("run_noise_ratio")]
    if not isinstance(known, dict) or not isinstance(line.get("started_utc"), str):
        return None
    if line.get("device") != identity["device"] or any(
        known.get(name) != identity[name] for name in identity if name != "device"
    ):
        return None
    if not all(type(ratio) in (int, float) and 0 <= ratio < MOST_RATIO for ratio in ratios):
        return None
    return Floor(
        path=folder / FILE,
        started_utc=line["started_utc"],
        paired_noise_ratio=ratios[0],
        run_noise_ratio=ratios[1],
    )
