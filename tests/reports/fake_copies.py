"""A run whose cases were measured several times, on devices of known speed."""

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from random import Random
from typing import Any

from tests.reports.fake_pairs import timed
from tests.reports.fake_runs import case, problem, write_run

BACKENDS = ("naive", "fused", "sdpa")
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
NAME = "NVIDIA H100 80GB HBM3"
DRIFT_SD = 0.004  # of a device's speed from group to group


def gpu(number: int, host: str = "node1", **changes: Any) -> dict[str, Any]:
    uuid = f"GPU-{number:08x}-0000-0000-0000-000000000000"
    return {"device": "cuda", "host": host, "device_uuid": uuid, "device_name": NAME, **changes}


def copies_run(
    folder: Path,
    where: Sequence[Mapping[str, Any]],
    ratios: Sequence[float],
    *,
    lengths: Sequence[int] = LENGTHS,
    seed: int = 1,
    processes: int = 5,
    shuffled: bool = True,
    statuses: Mapping[str, str] = {},
    **meta: Any,
) -> Path:
    """Copy n of each group is measured on `where[n]`, where cases take 10 ms times `ratios[n]`;
    `shuffled`: which copy is on which device differs from group to group.
    """
    random = Random(seed)
    cases, rows = [], []
    for number, n in enumerate(lengths):
        turn = number % len(where) if shuffled else 0
        for copy in range(len(where)):
            at = (copy + turn) % len(where)
            level_ms = 10.0 * ratios[at] * exp(random.gauss(0, DRIFT_SD))
            for backend in BACKENDS:
                planned = copied(backend, n, number, copy, len(lengths), **where[at])
                cases.append(planned)
                fields = {name: value for name, value in planned.items() if name != "replica_of"}
                status = statuses.get(planned["case"], "ok")
                one = timed(fields, level_ms, random, processes, **where[at])
                if status != "ok":
                    one |= {"status": status, "reason": f"made up: {status}", "block_ms": None}
                rows.append(one)
    device = where[0].get("device", "cpu")
    return write_run(folder, cases, rows, name="copies", **{"device": device, **meta})


def copied(
    backend: str, n: int, number: int, copy: int, groups: int, **where: Any
) -> dict[str, Any]:
    """As run.json plans it."""
    one = case(backend, problem(n, device=where.get("device", "cpu")))
    more = {"replica_of": number} if copy else {}
    name = one["case"] + (f"-replica{copy + 1}" if copy else "")
    group = copy * groups + number
    return {**one, "case": name, "group": group, "replica": copy + 1, **more}
