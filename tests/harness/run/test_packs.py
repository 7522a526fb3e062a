"""Packs are found by file name, and nothing of the core imports one."""

import sys

import pytest

from attnbench.harness.cli.app import app
from attnbench.harness.run.packs import HARNESS, packs
from tests.conftest import environment, ran
from tests.harness.run.small_runs import QUICK, axes

PACKS = ("advise", "fleet", "heads", "models", "pytest_plugin", "studies")
DECLARING = {"pack", "verb", "merge_verb", "ask", "question", "attachments"}
"""What declares verbs and options, and which studies look at a file."""


def test_every_verb_of_a_pack_is_one_of_the_command_line() -> None:
    known = {one.name or one.callback.__name__ for one in app.registered_commands if one.callback}
    known |= {str(one.name) for one in app.registered_groups}
    assert {verb.name for pack in packs() for verb in pack.verbs} <= known
    assert len(packs()) == len(list(HARNESS.glob("*/pack.py")))


def test_no_two_packs_have_an_option_of_the_same_name() -> None:
    names = [name for pack in packs() for name in pack.run_options]
    assert len(names) == len(set(names))


@pytest.mark.long
def test_a_run_of_cases_loads_no_pack_but_what_declares_verbs_and_options(tmp_path) -> None:
    program = """
import sys
from attnbench.harness.cli.app import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("attnbench.harness.")), sep="\\n")
"""
    flags = [sys.executable, "-c", program, "run", *axes("naive,sdpa"), *QUICK, "--quiet"]
    done = ran(flags, cwd=tmp_path, env=environment(None), check=True)
    loaded = [name.split(".")[2:] for name in done.stdout.split() if "harness." in name]
    of_packs = [rest for room, *rest in loaded if room in PACKS]
    assert ["run"] in [one[:1] for one in loaded]
    assert not [rest for rest in of_packs if rest and rest[-1] not in DECLARING]
