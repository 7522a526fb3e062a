"""What pytest collects, what it leaves to others, and what it says of files and options that are
wrong. Nothing is measured here.
"""

import json
import sys
from pathlib import Path

import pytest

from attnbench.harness.pytest_plugin import has_our_keys
from tests.conftest import ran
from tests.harness.pytest_plugin.child_pytest import (
    PLUGIN,
    TINY,
    child,
    child_environment,
    collected,
    loaded,
    scenario,
    sessions,
)

COLLECT = ("--collect-only", "-q")
COMPOSE = "name: shop\nservices:\n  web:\n    image: nginx\nvolumes: {}\nnetworks: {}\n"


@pytest.mark.long
def test_the_cases_of_a_scenario_are_items_named_by_shape_and_backend(tmp_path):
    scenario(tmp_path)
    done = child(tmp_path, "tiny.yaml", *COLLECT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert collected(done) == [
        "tiny.yaml::tiny[b1-n16-d32-h2-fp32-forward-core-fused]",
        "tiny.yaml::tiny[b1-n16-d32-h2-fp32-forward-core-sdpa]",
        "tiny.yaml::tiny[b1-n32-d32-h2-fp32-forward-core-fused]",
        "tiny.yaml::tiny[b1-n32-d32-h2-fp32-forward-core-sdpa]",
    ]
    assert not (tmp_path / "results").exists()


MIXED = TINY.replace("[fused, sdpa]", "[fused, 'sdpa:flash']").replace(
    "heads: 2", "heads: 2, dtype: [fp32, bf16]"
)
ON_CUDA = TINY.replace("device: cpu", "device: cuda")
CHOICES = [
    ("tiny.yaml", ("-k", "sdpa and n32"), 1),
    ("tiny.yaml", ("-k", "not n16"), 2),
    ("mixed.yaml", ("-m", "dtype(name='bf16')"), 4),
    ("mixed.yaml", ("-m", "backend(name='sdpa:flash') and dtype(name='fp32')"), 2),
    ("tiny.yaml", ("-m", "gpu"), 0),
    ("on_cuda.yaml", ("-m", "gpu"), 4),
    ("on_cuda.yaml", ("-m", "not gpu"), 0),
    ("tiny.yaml", ("--attnbench-set", "grid.seq_len=16", "--attnbench-set", "backends=fused"), 1),
    ("on_cuda.yaml", ("--attnbench-device", "cpu", "-m", "gpu"), 0),
    ("tiny.yaml::tiny[b1-n32-d32-h2-fp32-forward-core-sdpa]", (), 1),
    ("tiny.yaml::tiny", (), 4),
]


@pytest.mark.long
def test_cases_are_chosen_by_name_mark_and_option(tmp_path):
    for name, text in {"tiny": TINY, "mixed": MIXED, "on_cuda": ON_CUDA}.items():
        scenario(tmp_path, text, f"{name}.yaml")
    answers = sessions(
        tmp_path, *((name, "--strict-markers", *COLLECT, *more) for name, more, _ in CHOICES)
    )
    for done, (_, _, count) in zip(answers, CHOICES, strict=True):
        assert len(collected(done)) == count, (done.args, done.stdout)
        assert done.returncode == (0 if count else 5), done.args


LOOKS = [
    (TINY, True),
    ("\ufeff" + TINY, True),
    (TINY.replace("backends:", "backend:"), True),
    ("# a comment\n'name': a\n\"question\" : b?\nbackends: [x]\n", True),
    ('{"name": "a", "question": "b?", "backends": ["fused"], "grid": {}}', True),
    ("name: a\nquestion: b?\n\tbackends: [\n grid: {{{", False),
    ("steps:\n  name: a\n  question: b\n  backends: c\n  grid: d\n", False),
    ("- {name: a, question: b, backends: c, grid: d}\n", False),
    (COMPOSE, False),
    ("name: a\nname: b\nname: c\n", False),
    ("", False),
]


@pytest.mark.parametrize(("text", "taken"), LOOKS, ids=range(len(LOOKS)))
def test_a_scenario_is_known_by_its_top_level_keys(tmp_path, text, taken):
    assert has_our_keys(scenario(tmp_path, text)) is taken


OPTIONS = [
    (("--attnbench-plan", "quikc"), 4, "--attnbench-plan: found 'quikc'; did you mean quick?"),
    (
        ("--attnbench-set", "limits.memory=1"),
        2,
        "--attnbench-set limits.memory=1: limits.memory: not a field of a scenario",
    ),
    (("--attnbench-set", "nonsense"), 2, "wanted --attnbench-set field=value"),
    (("--attnbench-timeout", "-1"), 2, "--attnbench-timeout -1: limits.timeout_s: found -1"),
    (
        ("--attnbench-expect", "oom,slow"),
        4,
        "--attnbench-expect: found 'slow'; wanted one of oom, predicted_oom, crashed",
    ),
    (
        ("--attnbench-fail-slower", "5%"),
        2,
        "--attnbench-against names nothing; wanted a stored run of the scenario tiny: measure it",
    ),
    (("-o", "attnbench_fail_slower=5%", "-o", "attnbench_against=main"), 2, "main: no runs in "),
    (
        ("-p", "no:benchmark"),
        2,
        "tiny.yaml: needs the plugin pytest-benchmark: pip install 'attnbench[pytest]'",
    ),
]


@pytest.mark.long
def test_a_wrong_option_is_told_in_words(tmp_path):
    scenario(tmp_path)
    answers = sessions(
        tmp_path, *(("tiny.yaml", *COLLECT, *arguments) for arguments, _, _ in OPTIONS)
    )
    for done, (_, code, words) in zip(answers, OPTIONS, strict=True):
        assert done.returncode == code, (done.args, done.stdout, done.stderr)
        assert words in done.stdout + done.stderr, done.args
        assert "Traceback" not in done.stdout + done.stderr


def imported(tmp_path: Path) -> set[str]:
    """Top-level modules and those of ours that a session has imported at its end."""
    code = (
        f"import json, sys, pytest; code = pytest.main({['-q', *loaded()]!r});"
        "print(json.dumps([int(code), *sorted(sys.modules)]))"
    )
    env = child_environment()
    done = ran([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    code, *modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stdout
    return set(modules)


HEAVY = {"torch", "pandas", "numpy", "scipy", "matplotlib", "pydantic", "ruamel", "rich", "typer"}


@pytest.mark.long
def test_a_session_without_scenarios_imports_declarations_of_options_alone(tmp_path):
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): pass\n")
    scenario(tmp_path, COMPOSE, "docker-compose.yaml")
    modules = imported(tmp_path)
    assert not modules & HEAVY
    ours = {name.removeprefix("attnbench.harness.") for name in modules if "attnbench." in name}
    assert {name.partition(".")[0] for name in ours} == {
        *("attnbench", "files", "pytest_plugin", "verbs")
    }


@pytest.mark.long
def test_the_plugin_may_be_loaded_by_name_too_although_it_is_installed(tmp_path):
    scenario(tmp_path)
    done = child(tmp_path, "-p", PLUGIN, "tiny.yaml", *COLLECT)
    assert (done.returncode, len(collected(done))) == (0, 4), done.stdout + done.stderr
