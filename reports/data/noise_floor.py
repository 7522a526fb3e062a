"""The noise floor of a device, as `attnbench selfcheck` wrote it to selfcheck.jsonl."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .read import LINE_CAP_BYTES, SCHEMA, open_plain

FILE = "selfcheck.jsonl"
MOST_RATIO = 10.0  # a larger ratio is not noise


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """A/A noise: 95 % of the ratios of equal code lie within 1 + these ratios.

    `paired`: measured in the same blocks; `run`: in different processes.
    """

    path: Path
    started_utc: str
    paired_noise_ratio: float
    run_noise_ratio: float


def newest_noise_floor(folders: Iterable[Path], identity: Mapping[str, Any]) -> NoiseFloor | None:
    """The newest check of this device in these folders; skips unreadable lines. Raises BadRun."""
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
                continue  # a torn line


def _floor(folder: Path, line: Any, identity: Mapping[str, Any]) -> NoiseFloor | None:
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
    return NoiseFloor(
        path=folder / FILE,
        started_utc=line["started_utc"],
        paired_noise_ratio=ratios[0],
        run_noise_ratio=ratios[1],
    )
