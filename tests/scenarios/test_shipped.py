import json
import os
import re
import sys
from pathlib import Path

import pytest

from attnbench.harness.cases.case import ALIASES
from attnbench.harness.scenario import (
    Plan,
    Scenario,
    from_mapping,
    load,
    load_entries,
    summaries,
)
from attnbench.harness.scenario.document import parse_yaml
from attnbench.harness.scenario.fields import Axes, ExtraCase, Grid, Limits
from attnbench.harness.scenario.names import FOLDER, shipped
from tests.conftest import ran
from tests.scenarios.editors_schema import scenario_schema, suite_schema
from tests.search_path import searched


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_expands_for_every_device_kind(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert scenario.question.endswith("?")
    for device in ("cpu", "cuda"):
        groups, duplicates = scenario.problem_groups(device)
        assert duplicates == 0
        assert (
            scenario.count(device)
            == len(scenario.backends) * sum(len(group) for group in groups)
            > 0
        )


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_says_what_it_is_and_names_its_schema(name: str) -> None:
    first, *rest = shipped()[name].read_text(encoding="utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=schema.json"
    assert f"attnbench run {name}" in "\n".join(line for line in rest if line.startswith("#"))


def test_two_gibibytes_put_the_walls_where_the_scenario_says() -> None:
    budget = 2 << 30
    problems = [problem for (problem,) in load("memory_wall").problem_groups("cpu")[0]]
    fused = [p.seq_len for p in problems if 2 * p.heads * p.seq_len**2 * p.item_bytes >= budget]
    naive = [p.seq_len for p in problems if 2 * p.seq_len**2 * p.item_bytes >= budget]
    assert (fused[0], naive[0]) == (8192, 16384)


def test_the_schema_is_current() -> None:
    """To renew it: make approve. New measures may come later."""
    committed, current = committed_schema("schema.json", scenario_schema()), scenario_schema()
    names, known = take_measures(committed), take_measures(current)
    assert {"latency", "memory"} < names <= known
    assert committed == current


def test_the_schema_of_suites_is_current() -> None:
    """To renew it: make approve."""
    current = suite_schema()
    assert committed_schema("suite_schema.json", current) == current


def committed_schema(name: str, current: dict) -> dict:
    if os.environ.get("ATTNBENCH_APPROVE"):
        (FOLDER / name).write_text(json.dumps(current, indent=2) + "\n", encoding="utf-8")
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def take_measures(made: dict) -> set[str]:
    """The names that `measure` and `measure_on_cuda` accept, taken out of the schema."""
    found = []
    for field in ("measure", "measure_on_cuda"):
        one, several = made["properties"][field]["anyOf"]
        found += [one.pop("enum"), several["items"].pop("enum")]
    assert all(names == found[0] for names in found)
    return set(found[0])


def test_the_schema_documents_every_field_and_alias() -> None:
    made = scenario_schema()
    for owner in (made, *made["$defs"].values()):
        for field, rule in owner["properties"].items():
            assert rule["description"], field
            assert "\n" not in rule["description"], field
        assert "\n" not in owner["description"]
    assert set(ALIASES) <= set(made["$defs"]["Grid"]["properties"])


@pytest.mark.parametrize("model", [Scenario, Grid, Axes, ExtraCase, Plan, Limits])
def test_the_readme_documents_every_field(model: type[Scenario]) -> None:
    words = set(
        re.findall(
            r"[A-Za-z_]+",
            " ".join(
                re.findall(r"`([^`\n]+)`", (FOLDER / "README.md").read_text(encoding="utf-8"))
            ),
        )
    )
    assert set(model.model_fields) | (set(ALIASES) if model is Grid else set()) <= words


def test_the_examples_of_the_readme_are_scenarios(tmp_path: Path) -> None:
    examples = re.findall(
        r"```yaml\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(examples) >= 4
    head = {"name": "example", "question": "What?", "backends": ["naive"]}
    suites = []
    for text in examples:
        found = parse_yaml(text, "README.md").data
        if isinstance(found, list):
            suites.append(text)
            continue
        data = {**head, "grid": {"seq_len": 1, "d_model": 1, "heads": 1}, **found}
        assert from_mapping(data, "README.md").count("cuda") > 0
    assert suites
    own = (FOLDER / "quickstart.yaml").read_text(encoding="utf-8")
    for text in suites:
        for name in re.findall(r"[\w/]+\.yaml", text):
            (tmp_path / name).write_text(own, encoding="utf-8")
        (tmp_path / "suite.yaml").write_text(text, encoding="utf-8")
        assert load_entries(str(tmp_path / "suite.yaml")).is_list


def test_summaries_name_every_scenario_with_its_question() -> None:
    assert [(name, question) for name, _, question, _ in summaries()] == [
        (name, load(name).question) for name in shipped()
    ]


def test_every_scenario_says_how_long_it_takes_on_two_cores_unless_it_needs_a_gpu() -> None:
    untold = [one.name for one in summaries() if one.takes_min is None]
    assert untold == [name for name in shipped() if load(name).backends[0] == "triton"]


def test_reading_scenarios_imports_no_heavy_package(tmp_path: Path) -> None:
    code = (
        "import sys; from attnbench.harness.scenario import load, summaries;"
        " load('quickstart'); summaries();print([name for name in ('torch', 'pandas',"
        " 'scipy', 'numpy', 'matplotlib') if name in sys.modules])"
    )
    path = str(FOLDER.parent.parent)
    done = ran(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": searched(path)}, check=True
    )
    assert done.stdout == "[]\n"
