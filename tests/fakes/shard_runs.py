"""Runs of shards as `attnbench run --shard` leaves them, without measuring anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnbench.harness.cases.case import Wall
from attnbench.harness.rows.record import Planned, Record
from attnbench.harness.rows.run_store import Store
from attnbench.harness.run.spec import RunSpec, planned_fields
from attnbench.harness.scenario import Scenario, from_mapping
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.scenario.shards import Shard
from tests.fakes.stored_runs import record

ENVIRONMENT = {
    "device": "cpu",
    "device_name": None,
    "device_uuid": None,
    "cpu": "AMD EPYC",
    "cores": 2,
    "threads": 1,
    "torch": "2.12.0",
    "attnbench": "0.2.0",
    "git": None,
    "allocator": {"OMP_NUM_THREADS": "1"},
}


def scenario(**changes: Any) -> Scenario:
    data = {
        "name": "small",
        "question": "Which is fastest?",
        "backends": ["fused", "naive"],
        "grid": {"seq_len": [64, 128, 256, 512, 1024], "d_model": 64, "heads": [1, 2]},
        "contrast": ["heads"],
        "plan": "quick",
        "limits": {"memory_gib": 0.5},
        **changes,
    }
    return from_mapping(data, "test")


def write_shard(
    root: Path,
    shard: str | None,
    *,
    of: Scenario | None = None,
    ended: Mapping[str, str] | None = None,
    seed: int = 0,
    started: str = "2026-11-21T09:30:00+00:00",
    device: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    **more: Any,
) -> Path:
    """`shard`: as for --shard; None for the whole run. `ended`: the
    statuses that are not ok, by id; "" for a case without a row. `device`: the fields of a row that
    name it.
    """
    of = of or scenario()
    number, _, count = (shard or "").partition("/")
    part = Shard(number=int(number), of=int(count)) if shard else None
    selected = select(of, "cpu", Selection(shard=part))
    spec = RunSpec.new(
        of,
        planned_fields(selected, part),
        {**ENVIRONMENT, **(environment or {})},
        command=["attnbench", "run", "small.yaml", *(["--shard", shard] if shard else [])],
        memory_bytes=1 << 29,
        seed=seed,
    )
    store = Store.create(root, of.name, {**spec.document(), "started_utc": started, **more})
    where = device or {"host": f"node{number or 0}", "device_name": "AMD EPYC"}
    store.append(
        one
        for planned in selected.planned
        if (one := ended_as(planned, (ended or {}).get(planned.id, "ok"), where))
    )
    (store.path / "logs" / "worker-1.log").write_text(f"printed by {shard}\n")
    store.close()
    return store.path


def ended_as(planned: Planned, status: str, where: Mapping[str, Any]) -> Record | None:
    if not status:
        return None
    values: dict[str, Any] = dict(where)
    if isinstance(planned, Wall):
        found = {"seq_len_low": 1024, "limited_by": "memory"} if status == "ok" else {}
        values |= {"memory_bytes": 1 << 29, "predicted_reason": "", **found}
    return record(planned, status, **values)
