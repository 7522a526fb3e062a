"""Small runs as the store writes them: cases, their records, and run.json."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnbench.harness.cases.case import Case
from attnbench.harness.cases.costs import known_costs
from attnbench.harness.rows.record import Planned, Record, Status
from attnbench.harness.rows.run_store import Store
from attnbench.impls.problem import Problem


def case(number: int = 0, backend: str = "fused") -> Case:
    return Case(backend=backend, problem=Problem(batch=1, seq_len=64 + number, d_model=32, heads=2))


def record(
    planned: Planned, status: str = "ok", reason: str | None = None, **values: Any
) -> Record:
    """What a run would keep of it; `values` are further fields of its row."""
    why = reason if reason is not None else "" if status == "ok" else f"made up: {status}"
    costs = known_costs(planned.problem) if isinstance(planned, Case) else {}
    return Record.of(
        planned, Status(status), why, {"device": "cpu", "attempt": 1, **costs, **values}
    )


def plan(cases: Sequence[Case], scenario: str = "one", **more: Any) -> dict[str, Any]:
    """run.json without its name and version."""
    return {
        "device": "cpu",
        "scenario": {"name": scenario},
        "environment": {},
        "cases": [{"group": number, **one.fields()} for number, one in enumerate(cases)],
        **more,
    }


def write_run(root: Path, ended: Mapping[Case, str], scenario: str = "one", **more: Any) -> Path:
    """The folder of a run whose cases ended so; "" for a case without a row."""
    store = Store.create(root, scenario, plan(list(ended), scenario, **more))
    store.append(record(one, status) for one, status in ended.items() if status)
    store.close()
    return store.path
