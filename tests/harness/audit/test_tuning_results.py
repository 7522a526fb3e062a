"""`attnbench kernels keep`: from the rows of a made-up GPU run to the table that ships."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.audit.tuning_results import choices
from attnbench.harness.cli import app
from attnbench.impls._triton import tuned as table
from attnbench.impls._triton.configs import KERNELS, candidates
from tests.made_runs import case, problem, retold, row, write_run


def facts(number: int = 0, source: str = "timed") -> dict[str, Any]:
    listed = {
        k: candidates(k, capability=(9, 0), item_bytes=2, width=64, n_q=1024, causal=False)[number]
        for k in KERNELS
    }
    return {
        "configuration": {k: asdict(config) for k, config in listed.items()},
        "configuration_source": source,
    }


def run_with(folder: Path, rows: list[tuple[int, dict[str, Any]]], **environment: Any) -> Path:
    """A run of one problem per seq_len and configuration."""
    planned = [
        case(
            "triton",
            problem(n, d_model=512, device="cuda", dtype="bf16", passes="forward+backward"),
        )
        for n, _ in rows
    ]
    run = write_run(
        folder,
        planned,
        [row(one, configuration=found) for one, (_, found) in zip(planned, rows, strict=True)],
    )
    facts = {
        "compute_capability": "9.0",
        "device_name": "NVIDIA H100",
        "triton": "3.6.0",
        "tf32": False,
    }
    return retold(run, **facts | environment)


def test_the_last_choice_of_a_kind_is_kept_with_what_chose_it(tmp_path: Path) -> None:
    run = run_with(tmp_path, [(1000, facts(0)), (1024, facts(1)), (2048, facts(0))])
    found, notes = choices(run)
    assert notes == []
    assert [kind.queries for kind in found] == [1024, 2048]  # 1000 and 1024 are of one kind
    first = next(iter(found.values()))
    assert first.configs == {
        k: table.Config(**numbers) for k, numbers in facts(1)["configuration"].items()
    }
    assert (first.run, first.gpu, first.triton, first.kind.capability) == (
        run.name,
        "NVIDIA H100",
        "3.6.0",
        "9.0",
    )


@pytest.mark.parametrize(
    ("found", "environment", "reason"),
    [
        (
            {"configuration": {"forward": {"block_q": 1}}, "configuration_source": "timed"},
            {},
            "left out: ",
        ),
        (facts(), {"compute_capability": "7.5"}, "is not listed for"),
        (facts(), {"triton": None}, "triton is None"),
        (facts(), {"compute_capability": None}, "does not know the GPU's compute capability"),
    ],
)
def test_what_the_table_would_refuse_is_left_out_with_a_note(
    tmp_path: Path, found: dict[str, Any], environment: dict[str, Any], reason: str
) -> None:
    kept, (note,) = choices(run_with(tmp_path, [(1024, found)], **environment))
    assert kept == {}
    assert reason in note


def test_the_command_fills_the_table_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tuned.json"
    file.write_text('{"about": "", "choices": []}')
    monkeypatch.setattr(table, "FILE", file)
    run = run_with(tmp_path, [(1024, facts())])
    app.app(["kernels", "keep", str(run)], standalone_mode=False)
    assert capsys.readouterr().out == f"{file}\n"
    assert list(table.read(file)) == list(choices(run)[0])
