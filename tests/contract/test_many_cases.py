"""Over 500 small cases no process opens more and more files, and the parent needs no more memory.

Most of them end without a measurement, in a worker (`unsupported`) or before one (`unavailable`).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.contract.conftest import last_rows, only_run, started

SCENARIO = """\
name: many
question: Does a long run grow?
backends: [needs_package, sparse_local, naive]
device: cpu
measure: [memory]
grid: {batch: 1, seq_len: %s, d_model: 8, heads: 1}
plan: {like: quick, processes: 1}
"""
LENGTHS = list(range(1, 169))  # three backends: 504 cases
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """At one moment: rows on disk, open files of all processes together, bytes of the parent."""

    rows: int
    files: int
    resident_bytes: int


def looks(parent: psutil.Process, runs: Path) -> Iterator[Look]:
    while True:
        with suppress(psutil.Error, OSError, StopIteration):
            lines = next(runs.glob("2*/rows.jsonl")).read_bytes().count(b"\n")
            own = parent.memory_info().rss
            files = sum(one.num_fds() for one in [parent, *parent.children(recursive=True)])
            yield Look(rows=lines, files=files, resident_bytes=own)
        with suppress(psutil.TimeoutExpired):
            parent.wait(0.1)
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    folder: Path
    code: int
    looks: list[Look]

    def at(self, low: int, high: int) -> list[Look]:
        return [one for one in self.looks if low <= one.rows < high]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Many:
    place = tmp_path_factory.mktemp("many")
    (place / "many.yaml").write_text(SCENARIO % LENGTHS)
    with (place / "said").open("w") as said:
        process = started(
            *("run", "many.yaml", "--runs", "runs", "--quiet"),
            cwd=place,
            backends=True,
            stdout=said,
            stderr=said,
        )
    seen = list(looks(psutil.Process(process.pid), place / "runs"))
    assert process.wait(60) == 0, (place / "said").read_text()
    return Many(folder=only_run(place / "runs"), code=process.returncode, looks=seen)


def test_each_of_500_cases_has_one_row(many: Many) -> None:
    found = last_rows(many.folder)
    assert len(found) == 3 * len(LENGTHS)
    statuses = {(row["backend"], row["status"]) for row in found.values()}
    assert statuses == {
        ("needs_package", "unavailable"),
        ("sparse_local", "unsupported"),
        ("naive", "ok"),
    }


def test_open_files_do_not_grow_with_the_cases(many: Many) -> None:
    early, late = many.at(50, 250), many.at(400, 504)
    assert early
    assert late
    # the fewest of each, since a worker that starts opens many for a moment
    assert min(one.files for one in late) <= min(one.files for one in early) + 20


def test_the_parents_memory_does_not_grow_with_the_cases(many: Many) -> None:
    early, late = many.at(50, 250), many.at(400, 504)
    grown = min(one.resident_bytes for one in late) - min(one.resident_bytes for one in early)
    assert grown < 24 * MIB, "the text of its rows is some 2 MiB"
