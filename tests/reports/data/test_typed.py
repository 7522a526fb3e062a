"""reports/data/typed.py: the commands of a run, without what a file may not start or permit."""

from typing import Any

import pytest

from attnbench.reports.data.typed import typed, with_case, with_plan


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["attnbench", "run", "a b; rm"], "attnbench run 'a b; rm'"),
        (["attnbench.run('quickstart')"], "attnbench.run('quickstart')"),
        (["attnbench.run('x'); evil()"], None),
        (["pytest", "-p", "evil", "a.yaml"], "pytest"),
        (["curl", "evil"], None),
        ([], None),
        ("attnbench run x; evil", None),
        (["attnbench", 7], None),
        (["attnbench", "run", "\x1b[2J"], "(not shown: it has characters that cannot be printed)"),
    ],
)
def test_what_was_typed_is_shown_quoted_if_it_is_ours(words: Any, shown: str | None) -> None:
    assert typed(words) == shown


def test_programs_and_permissions_of_what_was_typed_are_left_out() -> None:
    words = ["attnbench", "run", "x", "--python", "old=/tmp/evil", "--python=new=evil"]
    shown = typed([*words, "--allow-import", "--seed", "1"])
    kept, _, said = shown.partition("  # ")
    assert kept == "attnbench run x --seed 1"
    assert "give them again" in said


def test_naming_a_module_permits_its_import_so_it_is_left_out_too() -> None:
    words = ["attnbench", "run", "--backends", "sdpa:flash, evil:attend,naive", "--heads", "2"]
    shown = typed([*words, "--backend", "os:system"])
    kept, _, said = shown.partition("  # ")
    assert kept == "attnbench run --backends 'sdpa:flash, naive' --heads 2"
    assert "give them again" in said
    assert typed(["attnbench", "run", "--backends=evil:attend"]) == f"attnbench run  # {said}"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["attnbench", "run", "a b"], "attnbench run 'a b' --plan standard"),
        (["attnbench", "run", "--plan", "quick", "x"], "attnbench run x --plan standard"),
        (
            ["attnbench", "run", "x", "--plan=quick", "--set", "plan.processes=1", "--seed", "3"],
            "attnbench run x --seed 3 --plan standard",
        ),
        (
            ["attnbench", "run", "x", "--set", "seed=3"],
            "attnbench run x --set seed=3 --plan standard",
        ),
        (["attnbench", "run", "x", "--python", "/bin/p"], None),
        (["attnbench", "run", "x", "--allow-import"], None),
        (["attnbench", "bench"], None),
        (["rm", "run"], None),
        ("attnbench run", None),
    ],
)
def test_the_command_is_what_was_typed_with_the_plan(words: Any, wanted: str | None) -> None:
    assert with_plan(words, "standard") == wanted


def test_one_case_of_what_was_typed_keeps_plan_and_settings() -> None:
    words = ["attnbench", "run", "x", "--only", "sdpa", "--plan", "quick", "--set", "plan.seed=3"]
    assert with_case([*words, "--dry-run"], "fused-b1 n128") == (
        "attnbench run x --plan quick --set plan.seed=3 --only 'fused-b1 n128'"
    )
    assert str(with_case(words, "a\x1b]0;b")).startswith("(not shown: ")
