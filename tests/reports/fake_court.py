"""A court of one cheat that is convicted, one that shows its bytes, and an honest backend."""

from pathlib import Path

from tests.reports.fake_runs import case, problem, row, write_run

CHEATS = {
    "wrong_scale": {"status": "incorrect", "reason": "far from the exact result"},
    "hidden_workspace": {"workspace_bytes": 8 << 20},
    "imports_late": {},
}


def fake_court(parent: Path, **meta: object) -> Path:
    cases, rows = [], []
    for number, (name, changes) in enumerate(CHEATS.items()):
        for backend in (name, "fused", "sdpa", "naive"):
            planned = case(backend, problem(256))
            planned["case"] += f"-twin{number}" if backend != name and number else ""
            planned["group"] += str(number)
            cases.append(planned)
            more = dict(changes) if backend == name else {}
            rows.append(row(planned, str(more.pop("status", "ok")), **more))
    names = [*CHEATS, "fused", "sdpa", "naive"]
    scenario = {"name": "court", "question": "Is it?", "backends": names, "baseline": "fused"}
    return write_run(parent, cases, rows, "court", scenario=scenario, court=True, **meta)
