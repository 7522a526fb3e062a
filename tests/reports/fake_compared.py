"""Runs to compare: copies that are slower or from elsewhere, and self-checks beside them."""

import json
import math
import shutil

CPU = {"device": "cpu", "cpu": "Imaginary CPU 9000"}


def changed(run, name, change):
    """A copy of a run, every row changed."""
    copy = run.parent / name
    shutil.copytree(run, copy)
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    (copy / "rows.jsonl").write_text("".join(json.dumps(change(one)) + "\n" for one in rows))
    return copy


def slower(one):
    return one | {
        "block_ms": [[[x * 1.2 for x in block] for block in process] for process in one["block_ms"]]
    }


def retold(run, **facts):
    """The environment of a run, changed."""
    meta = json.loads((run / "run.json").read_text())
    meta["environment"] |= facts
    meta["device"] = facts.get("device", meta["device"])
    (run / "run.json").write_text(json.dumps(meta))
    return run


def floor_file(folder, **changes):
    line = {
        "schema": 1,
        "device": "cpu",
        "started_utc": "2026-11-20T10:00:00+00:00",
        "environment": {"cpu": "Imaginary CPU 9000"},
    }
    line |= {"paired_noise_ratio": 0.02, "run_noise_ratio": 0.06, **changes}
    with (folder / "selfcheck.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def starts(folder, run_sd, count=4, first=1):
    """Self-checks whose runs alternate around 2 ms, with processes that differ by 2 %."""
    for start in range(first, first + count):
        level = 2 * math.exp(run_sd * (-1) ** start)
        processes = [[[level * math.exp(0.02 * k)]] for k in (-1, 0, 1, -1, 1)]
        floor_file(
            folder,
            started_utc=f"2026-11-21T{start:02}:00:00+00:00",
            samples={f"{case}-{twin}": processes for case in ("naive", "fused") for twin in (0, 1)},
        )
