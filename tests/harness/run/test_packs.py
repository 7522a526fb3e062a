"""Packs are found by file name, and nothing of the core imports one."""

from attnbench.harness.cli.app import app
from attnbench.harness.run.packs import HARNESS, packs


def test_every_verb_of_a_pack_is_one_of_the_command_line() -> None:
    known = {one.name or one.callback.__name__ for one in app.registered_commands if one.callback}
    known |= {str(one.name) for one in app.registered_groups}
    assert {verb.name for pack in packs() for verb in pack.verbs} <= known
    assert len(packs()) == len(list(HARNESS.glob("*/pack.py")))


def test_no_two_packs_have_an_option_of_the_same_name() -> None:
    names = [name for pack in packs() for name in pack.run_options]
    assert len(names) == len(set(names))
