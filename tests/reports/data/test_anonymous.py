"""What is handed on with --anonymous names no host, user, home folder, device or log."""

import json
from pathlib import Path

import pytest

from attnbench.reports.data.anonymous import anonymous
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.exports import export, names
from attnbench.reports.pages import html, markdown
from attnbench.reports.pages.report import open_report
from tests.made_runs import case, problem, row, write_run

HOST, USER, LOG = "build-host-7", "mallory", "secret token"
UUID, OTHER = "GPU-5d1c1f0e-0c0d", "GPU-1f0e5d1c-0c0e"
PRIVATE = (HOST, USER, UUID, OTHER, LOG, "/home", "/srv/tenant", "/root")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cases = [case(one, problem(n)) for n in (64, 128) for one in ("naive", "fused")]
    of_machine = {"host": HOST, "device_uuid": UUID, "device_name": "Imaginary CPU 9000"}
    reason = f"OSError: /home/{USER}/own/mine.py on {HOST}: no such file"
    rows = [
        *(row(one, **of_machine) for one in cases[:3]),
        row(cases[3], "crashed", **of_machine, reason=reason, log_tail=f"{LOG} {HOST}"),
    ]
    facts = {
        "cpu": "Imaginary CPU 9000",
        "python": "3.11.7",
        "torch": "2.13.0",
        "threads": 2,
        "cudnn_path": f"/home/{USER}/venv/lib/libcudnn.so.9",
        "allocator": {"LD_PRELOAD": "/srv/tenant/lib/libjemalloc.so:/root/other.so"},
        "device_uuid": UUID,
        "visible": f"{OTHER},1",
    }
    command = ["attnbench", "run", f"/home/{USER}/my.yaml", "--runs", "/srv/tenant/results"]
    interpreter = f"/home/{USER}/venv/bin/python"
    return write_run(
        tmp_path / USER,
        cases,
        rows,
        command=command,
        environment=facts,
        environments=[{"name": "old", "path": interpreter, "environment": facts}],
        devices=[{"host": HOST, "device_uuid": UUID, "cudnn_path": facts["cudnn_path"]}],
        own_backends=[f"/home/{USER}/own/mine.py"],
    )


def told(run: Path, *, hide: bool) -> dict[str, str]:
    """All texts that are handed on, by what they are."""
    opened = open_report([run], hide=hide)
    found = {"page": html.render(opened), "md": markdown.render(opened)}
    for name in set(names()) - {"parquet"}:
        content = export(run, name, hide=hide).content
        assert isinstance(content, str)
        found[f"export {name}"] = content
    return found


def test_nothing_that_is_handed_on_names_the_machine_or_its_user(run: Path) -> None:
    shown = " ".join(told(run, hide=False).values())
    assert [word for word in PRIVATE if word not in shown] == []
    hidden = told(run, hide=True)
    assert [(what, word) for what, text in hidden.items() for word in PRIVATE if word in text] == []


def test_what_a_measurement_needs_stays(run: Path) -> None:
    before = read_run(run)
    (after,) = anonymous([before])
    assert [one["block_ms"] for one in after.rows] == [one["block_ms"] for one in before.rows]
    assert after.meta["environment"]["cpu"] == "Imaginary CPU 9000"
    assert after.meta["environment"]["allocator"]["LD_PRELOAD"] == "libjemalloc.so:other.so"
    assert {one["host"] for one in after.rows} == {"host 2"}
    assert after.rows[3]["reason"] == "OSError: mine.py on host 2: no such file"


def test_a_device_of_two_runs_has_one_number(run: Path) -> None:
    one, other = anonymous([read_run(run), read_run(run)])
    assert json.dumps(one.rows) == json.dumps(other.rows)
