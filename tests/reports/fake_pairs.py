"""Rows with a known true latency, as in two runs of the same or of changed code."""

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from random import Random
from typing import Any

from tests.reports.fake_runs import case, problem, row, write_run

PROCESS_SD, BLOCK_SD = 0.02, 0.01
PLANNED = [case(backend, problem(n)) for n in (256, 512) for backend in ("naive", "fused", "sdpa")]


def timed(
    planned: dict[str, Any],
    truth_ms: float,
    random: Random,
    processes: int = 5,
    blocks: int = 4,
    **changes: Any,
) -> dict[str, Any]:
    """A row that is ok, in a session of its own.

    Every process has a level of its own, every block noise.
    """
    levels = [truth_ms * exp(random.gauss(0, PROCESS_SD)) for _ in range(processes)]
    block_ms = [
        [[level * exp(random.gauss(0, BLOCK_SD)) for _ in range(3)] for _ in range(blocks)]
        for level in levels
    ]
    session = f"{random.getrandbits(48):012x}"
    return row(
        planned,
        "ok",
        **{
            "block_ms": block_ms,
            "processes": processes,
            "session": session,
            "conditions": None,
            **changes,
        },
    )


def fake_run(
    folder: Path,
    seed: int,
    ratio: float = 1.0,
    planned: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> Path:
    """A run of `planned` whose true latencies are `ratio` times 10 ms.

    Every seed is another run of the same code.
    """
    random = Random(seed)
    cases = PLANNED if planned is None else planned
    rows = [timed(one, 10.0 * ratio, random, **changes) for one in cases]
    return write_run(folder, cases, rows, name=f"seed{seed}")


def two_environments(
    folder: Path,
    ratios: Mapping[str, float],
    planned: Sequence[Mapping[str, Any]] = PLANNED,
    names: Sequence[str] = ("old", "new"),
) -> Path:
    """A run of several environments, which share drift and blocks.

    The first takes 10 ms, the others `ratios` times that, by backend.
    """
    random = Random(7)
    cases, rows = [], []
    for one in planned:
        levels = [10.0 * exp(random.gauss(0, PROCESS_SD)) for _ in range(5)]
        drift_ms = [
            [level * exp(random.gauss(0, 10 * BLOCK_SD)) for _ in range(4)] for level in levels
        ]
        for name in names:
            ratio = 1.0 if name == names[0] else ratios.get(one["backend"], 1.0)
            block_ms = [
                [
                    [ms * ratio * exp(random.gauss(0, BLOCK_SD / 10)) for _ in range(3)]
                    for ms in process
                ]
                for process in drift_ms
            ]
            cases.append({**one, "case": f"{one['case']}-{name}", "python": name})
            rows.append(
                row(
                    cases[-1],
                    "ok",
                    block_ms=block_ms,
                    processes=5,
                    session=f"{one['group']}-s",
                    conditions=None,
                )
            )
    known = {
        "cpu": "Imaginary CPU 9000",
        "python": "3.11.7",
        "torch": "2.11.0",
        "triton": None,
        "cores": 2,
    }
    environments = [
        {
            "name": name,
            "path": f"/venvs/{name}/bin/python",
            "environment": {**known, **({} if name == names[0] else {"torch": "2.13.0"})},
        }
        for name in names
    ]
    return write_run(folder, cases, rows, name="upgrade", environments=environments)
