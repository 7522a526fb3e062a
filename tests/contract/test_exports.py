"""Rows for other programs, and the JSON of every command."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import Attnbench, rows, run_attnbench
from tests.contract.reading import APPROVED, FAILURES, QUICKSTART, planned_and_found, python, shown

FRAME = """
import sys, pandas
frame = pandas.read_parquet(sys.argv[1])
print(frame[["case", "status", "latency_ms"]].to_json(orient="records"))
"""


@pytest.fixture(scope="module")
def table() -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(shown("show", FAILURES, "--format", "csv")))]


def test_csv_has_a_row_for_every_case_and_empty_cells_for_what_is_missing(
    table: list[dict[str, str]],
) -> None:
    plan, found = planned_and_found(FAILURES)
    assert [row["case"] for row in table] != []
    assert {row["case"] for row in table} == {case["case"] for case in plan["cases"]}
    by_case = {row["case"]: row for row in table}
    for row in found:
        cells = by_case[row["case"]]
        assert cells["status"] == row["status"]
        assert (cells["latency_ms"] != "") == (row["status"] == "ok")
        assert cells["peak_bytes"] == ("" if row["peak_bytes"] is None else str(row["peak_bytes"]))
    unmeasured = [name for name in table[0] if name.endswith(("_mhz", "_w", "_j", "_c"))]
    assert all(row[name] == "" for row in table for name in unmeasured)


def test_names_of_numbers_end_in_their_unit(table: list[dict[str, str]]) -> None:
    assert {"latency_ms", "latency_low_ms", "latency_high_ms", "peak_bytes", "input_bytes"} <= set(
        table[0]
    )


def test_pytest_benchmark_reads_every_call_of_an_ok_case() -> None:
    document = json.loads(shown("show", QUICKSTART, "--format", "pytest-benchmark"))
    _, found = planned_and_found(QUICKSTART)
    ok = {row["case"]: row for row in found if row["status"] == "ok"}
    assert len(document["benchmarks"]) == len(ok)
    for benchmark in document["benchmarks"]:
        row = ok[benchmark["fullname"].split("::")[1]]
        calls_ms = [call for process in row["block_ms"] for block in process for call in block]
        assert benchmark["stats"]["data"] == pytest.approx([call / 1000 for call in calls_ms])
        assert benchmark["extra_info"]["peak_bytes"] == row["peak_bytes"]


def test_github_benchmark_gets_latency_and_peak_of_every_ok_case() -> None:
    entries = json.loads(shown("show", FAILURES, "--format", "github-benchmark"))
    assert len(entries) == 2 * 10
    assert {entry["unit"] for entry in entries} == {"ms", "bytes"}
    assert all(entry["value"] > 0 for entry in entries)
    names = [entry["name"] for entry in entries]
    assert len(set(names)) == len(names)


def test_parquet_is_read_back_by_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    shown("show", FAILURES, "--format", "parquet", "-o", tmp_path / "rows.parquet")
    back = json.loads(python(FRAME, tmp_path / "rows.parquet"))
    plan, _ = planned_and_found(FAILURES)
    assert len(back) == len(plan["cases"])
    assert all((row["latency_ms"] is None) == (row["status"] != "ok") for row in back)


@pytest.mark.parametrize(
    "words",
    [
        ("show", FAILURES, "--format", "json"),
        ("compare", APPROVED / "before", APPROVED / "after", "--format", "json"),
    ],
    ids=lambda words: f"{words[0]}-{words[-3]}",
)
def test_json_has_no_number_that_json_does_not_know(words: tuple[object, ...]) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(shown(*words), parse_constant=refuse)


def test_a_run_tells_its_progress_as_json_lines(attnbench: Attnbench) -> None:
    shape = ("--backends", "fused", "--seq-len", "64", "--d-model", "32", "--heads", "2")
    done = attnbench("run", *shape, "--plan", "quick", "--set", "plan.budget_s=0.1", "--device",
                     "cpu", "--json-lines", check=True)  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 2
    assert all(isinstance(line, dict) for line in lines)
    assert (lines[0]["reason"], lines[-1]["reason"]) == ("begin", "end")
    assert lines[-1]["statuses"] == {"ok": 1}
    finished = [line["row"]["status"] for line in lines if line["reason"] == "finished"]
    assert finished == ["ok"]
    assert [row["status"] for row in rows(Path("results/latest").resolve())] == ["ok"]


def test_a_dry_run_shows_every_case_and_measures_nothing(attnbench: Attnbench) -> None:
    done = attnbench("run", "quickstart", "--dry-run", "--device", "cpu", check=True)
    assert all(word in done.stdout for word in ("naive", "fused", "sdpa", "4096"))
    assert not [*Path().iterdir()]


def test_doctor_tells_its_findings_as_json() -> None:
    done = run_attnbench("doctor", "--device", "cpu", "--json")
    machine = json.loads(done.stdout)
    assert done.returncode in (0, 4)
    assert machine["findings"]
    assert {finding["grade"] for finding in machine["findings"]} <= {"ok", "note", "bad"}
    assert {"gpu", "torch", "cpu", "memory"} <= {
        finding["about"] for finding in machine["findings"]
    }


def test_advice_counts_the_cache_to_the_byte(tmp_path: Path) -> None:
    words = ("llama-3-8b", "--context", "8k", "--memory-gib", "24", "--device", "cpu", "--json")
    advice = json.loads(shown("advise", *words, "--runs", tmp_path))
    cache_bytes = 2 * 32 * 8 * 128 * 8192 * 2  # keys and values, layers, heads, width, tokens, bf16
    kept = [entry["cache_bytes"] for entry in advice["memory"] if entry["context"] == 8192]
    assert kept
    assert set(kept) == {cache_bytes}
    assert advice["memory_bytes"] == 24 << 30
    assert advice["weight_bytes"] == pytest.approx(16.06e9, rel=1e-3)
    assert all(decision["attn_implementation"] is None for decision in advice["decisions"])
    assert "attnbench advise llama-3-8b" in advice["measure"]
    assert not [*tmp_path.iterdir()]


def test_advice_for_a_config_of_a_folder_and_a_model_that_cannot_be_measured(
    attnbench: Attnbench,
) -> None:
    Path("config.json").write_text(
        json.dumps({"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2})
    )
    done = attnbench("advise", ".", "--device", "cpu")
    assert done.returncode in (2, 3)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("backends", ("naive", "fused", "sdpa")),
        ("models", ("llama-3-8b", "gpt2")),
    ],
)
def test_list_names_what_is_there(what: str, names: tuple[str, ...]) -> None:
    listed = {line.split()[0] for line in shown("list", what).splitlines() if line.strip()}
    assert set(names) <= listed
