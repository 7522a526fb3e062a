"""Broken and absurd run folders, generated from a good one: odd values, garbage, pipes and links.

The same seed gives the same folders. Nothing outside of the given folder is touched.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 62, -(1 << 62), (1 << 63) - 1, 1 << 70),
    *(0.5, -0.5, 1e-308, 5e-324, 1e308, 1.7976931348623157e308, -1e308, 1e15),
    *("", " ", "\n", "x" * 3000, "\x1b]0;title\x07\x1b[31m", "\u202eabc", "\ud800", "=1+1", "<b>"),
    *("ok", "error", "fused", "fp32", "forward", "none", "latest", "../..", "%s", "[red]", "1e999"),
    *([], {}, [[]], [[[]]], [{}], {"": ""}, [None], [0], [1e308], {"a": 1e308}, {"a": [1]}),
    *(
        [[[1e308, 1e308]]],
        [[[5e-324] * 3] * 3],
        [[[1, 2, 3]], [[1]], []],
        [["x"]],
        [[{"calls": 0}]],
    ),
)
GARBAGE = (
    b"\0" * 64,
    b"\x1f\x8b\x08",
    b"{",
    b"[" * 5000,
    b'{"schema": 1, "x": NaN}',
    b"\xff\xfe",
    b"",
)
Break = Callable[[Path, Random], str]


def broken_runs(good: Path, parent: Path, count: int, seed: int) -> Iterator[tuple[str, Path]]:
    """What was done to each, and its folder under `parent`, whose name is that of a run."""
    random = Random(seed)
    for number in range(count):
        folder = parent / f"20260101T{number:06}Z-broken-{number:08x}"
        shutil.copytree(good, folder)
        done = [random.choice(BREAKS)(folder, random) for _ in range(random.choice((1, 1, 1, 3)))]
        yield f"seed {seed}, number {number}: {'; '.join(done)}", folder


def odd_value_in_rows(folder: Path, random: Random) -> str:
    """In one row or in all of them, at one place."""
    lines = _lines(folder)
    if not lines:
        return "no rows"
    chosen = lines if random.random() < 0.3 else [random.choice(lines)]
    seed, done = random.random(), ""
    for row in chosen:
        done = _change(row, Random(seed))
    _write_lines(folder, lines)
    return f"rows: {done}"


def odd_value_in_plan(folder: Path, random: Random) -> str:
    try:
        document = json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError):
        return "no run.json"
    done = _change(document, random)
    (folder / "run.json").write_text(json.dumps(document))
    return f"run.json: {done}"


def odd_bytes(folder: Path, random: Random) -> str:
    path = folder / random.choice(("run.json", "rows.jsonl"))
    try:
        data = bytearray(path.read_bytes())
    except OSError:
        return "no file"
    at = random.randrange(len(data) + 1)
    what = random.choice(("cut", "garbage", "flip", "twice"))
    if what == "cut":
        del data[at:]
    elif what == "garbage":
        data[at:at] = random.choice(GARBAGE)
    elif what == "flip" and data:
        data[at % len(data)] ^= 1 << random.randrange(8)
    else:
        data += data[at:]
    path.write_bytes(data)
    return f"{path.name}: {what} at {at}"


def odd_lines(folder: Path, random: Random) -> str:
    """Rows that repeat, are missing or are not planned."""
    lines = _lines(folder)
    what = random.choice(("none", "one", "twice", "shuffled", "unplanned"))
    if what == "none":
        lines = []
    elif what == "one":
        lines = lines[:1]
    elif what == "twice":
        lines += lines
    elif what == "shuffled":
        random.shuffle(lines)
    else:
        lines += [
            {**row, "case": f"{row.get('case')}-{number}"} for number, row in enumerate(lines)
        ]
    _write_lines(folder, lines)
    return f"rows: {what}"


def odd_file(folder: Path, random: Random) -> str:
    """Something else stands where a file of the run is."""
    path = folder / random.choice(("run.json", "rows.jsonl", "telemetry.jsonl", "logs"))
    what = random.choice(("absent", "pipe", "folder", "link", "loop", "empty"))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to(folder.parent / "elsewhere")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "empty":
        path.write_bytes(b"")
    return f"{path.name}: {what}"


BREAKS: tuple[Break, ...] = (
    *(odd_value_in_rows,) * 6,
    *(odd_value_in_plan,) * 3,
    *(odd_bytes, odd_lines, odd_file),
)


def _change(document: Any, random: Random) -> str:
    """Replace the value at one place, at any depth; the deeper, the rarer."""
    place = []
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        key = random.choice(keys)
        place.append(str(key))
        inner = document[key]
        if not isinstance(inner, dict | list) or not inner or random.random() < 0.3:
            break
        document = inner
    document[key] = value = random.choice(ODD)
    return f"{'.'.join(place)} = {ascii(value)[:40]}"


def _lines(folder: Path) -> list[Any]:
    try:
        return [json.loads(line) for line in (folder / "rows.jsonl").read_bytes().splitlines()]
    except (OSError, ValueError):
        return []


def _write_lines(folder: Path, lines: list[Any]) -> None:
    path = folder / "rows.jsonl"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
