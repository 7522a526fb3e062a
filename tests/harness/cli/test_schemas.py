"""harness/cli/schemas.py: what attnbench writes is what its JSON Schemas say."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.main import get_command

from attnbench.harness.cli.app import app
from attnbench.harness.cli.schemas import names, schema_named
from tests.conftest import ROOT, command_line, environment, ran
from tests.fakes.shard_runs import write_shard
from tests.reports.advise.test_document import as_document
from tests.reports.comparison.test_trend import series
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

COMMITTED = sorted(run.parent for run in ROOT.glob("results/reference/*/run.json"))
RUNS = ROOT / "tests" / "approved" / "runs"
Here = Callable[..., Any]


def check(name: str, document: Any) -> None:
    jsonschema.Draft202012Validator(schema_named(name)).validate(document)


def is_refused(name: str, document: Any) -> bool:
    return not jsonschema.Draft202012Validator(schema_named(name)).is_valid(document)


@pytest.mark.parametrize("name", names())
def test_every_schema_is_one_and_refuses_what_is_no_document(name: str, here: Here) -> None:
    made = schema_named(name)
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["$schema"].startswith("https://json-schema.org/")
    assert is_refused(name, "text")
    assert is_refused(name, {"reason": "unheard of"})
    assert json.loads(here("list", "schema", name).stdout) == made


def test_a_name_that_does_not_exist_is_refused(here: Here) -> None:
    done = here("list", "schema", "row")
    assert (done.returncode, "did you mean rows?" in done.stderr) == (2, True)


def test_every_command_that_prints_json_has_a_schema() -> None:
    printing = {
        name
        for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
        if any("--json" in one.opts for one in command.params)
    }
    assert len(printing) > 5
    assert printing - {"wall"} <= {*names()}  # wall prints what run does


def stored_rows() -> Iterator[dict[str, Any]]:
    for file in sorted(RUNS.glob("**/rows.jsonl")):
        for line in file.read_text().splitlines():
            yield json.loads(line)


def test_stored_rows_of_every_kind_are_valid_and_others_are_not() -> None:
    validator = jsonschema.Draft202012Validator(schema_named("rows"))
    found = list(stored_rows())
    assert {row["kind"] for row in found} == {"latency", "wall", "study", "kernel"}
    for row in found[::7]:
        validator.validate(row)
    for change in ({"status": "fine"}, {"kind": "case"}, {"case": None}, {"attempt": "1"}):
        assert not validator.is_valid(found[0] | change), change


def closed(name: str, document: dict[str, Any]) -> None:
    """It is valid; with a field that the type does not have, or without one, it is not."""
    check(name, document)
    assert is_refused(name, document | {"unheard_of": 1})
    for field in document:
        less = deepcopy(document)
        del less[field]
        assert is_refused(name, less), field


TWO_RUNS = ("compare", RUNS / "before", RUNS / "after", "--format", "json")


@pytest.mark.parametrize(
    "words",
    [
        TWO_RUNS,
        (*TWO_RUNS, "--gate", "latency: 5%, peak_bytes: noise"),
        ("compare", RUNS / "decode", "--against", "naive", "--format", "json"),
    ],
)
def test_comparisons(words: tuple[str, ...], here: Here) -> None:
    done = here(*words)
    found = json.loads(done.stdout)
    assert found["cases"], done.stderr
    assert found["facts"], done.stderr
    closed("compare", found)


@pytest.mark.long
@pytest.mark.parametrize("run", COMMITTED, ids=lambda run: run.name)
def test_what_is_said_of_committed_runs(run: Path, here: Here) -> None:
    closed("claims", json.loads(here("claims", "--run", run, "--json").stdout))
    closed("compare", json.loads(here("compare", run, run, "--format", "json").stdout))


def test_trends(here: Here, tmp_path: Path) -> None:
    series(tmp_path / "results", [(1, 1.5 if number > 4 else 1, 2) for number in range(10)])
    found = json.loads(here("trend", "--json").stdout)
    assert [len(one["changes"]) for one in found["cases"]] == [0, 1, 0]
    closed("trend", found)
    assert here("trend", "--json", "-o", "page.html").returncode == 2


def test_claims_and_merged_shards(here: Here, tmp_path: Path) -> None:
    closed("claims", json.loads(here("claims", "--run", RUNS / "studies", "--json").stdout))
    shards = [write_shard(tmp_path / "results", f"{number}/3") for number in (1, 2)]
    closed("merge", json.loads(here("merge", *shards, "--json").stdout))


def test_advice(tmp_path: Path) -> None:
    asked = inquiry(implementations=(EAGER, SDPA), shapes=FakeShapes(formulas={"hf:sdpa": 7}))
    folder = measured(tmp_path, asked, changes={"hf:eager": {"speed": 8.0}})
    closed("advise", as_document(asked, rows_of(asked, folder)))


@pytest.mark.long
def test_what_measures(tmp_path: Path) -> None:
    def printed(*words: object) -> str:
        done = ran(command_line(*words), cwd=tmp_path, env=environment(), timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    small = ("--heads", 2, "--head-dim", 8, "--device", "cpu", "--json-lines")
    run = ("run", "--backends", "fused,sdpa", "--seq-len", "32", "--plan", "quick", *small)
    wall = ("wall", "--backends", "fused", "--memory-gib", "0.01", "--tolerance", "50%", *small)
    (tmp_path / "suite.yaml").write_text(
        "- {scenario: quickstart, plan: quick, only: [fused-b1-n128-d512-h8]}\n"
    )
    suite = ("run", "suite.yaml", "--device", "cpu", "--json-lines")
    reasons = set()
    for words in (run, wall, suite):
        for line in map(json.loads, printed(*words).splitlines()):
            check("run", line)
            reasons.add(line["reason"])
    assert reasons >= {
        "begin",
        "expects",
        "predicted",
        "running",
        "steps",
        "finished",
        "end",
        "entry",
    }
    check("doctor", json.loads(printed("doctor", "--json")))
