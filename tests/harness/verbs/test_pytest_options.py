"""Every option of pytest, found by its declaration: its default, a good and a bad value, on its
command line and in its ini file, with the message of a shell. A new field is tested without an edit
here.
"""

from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.pytest_plugin.options import PytestRequest, requested
from attnbench.harness.verbs.request import Option, declared
from tests.harness.pytest_plugin.child_pytest import PLUGIN
from tests.harness.verbs.test_options import bad, bare, from_shell, good

pytest_plugins = ["pytester"]
KNOWN = declared(PytestRequest)
OF_RUN = bare("run")
NEEDED = {"against": ("--attnbench-fail-slower", "5%")}
"""What an option belongs to."""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def read(pytester: pytest.Pytester, *words: str, ini: str = "") -> PytestRequest:
    pytester.makeini(f"[pytest]\n{ini}\n")
    return requested(pytester.parseconfig("-p", PLUGIN, *words))


def flag(name: str) -> str:
    return f"--attnbench-{name.replace('_', '-')}"


def values(one: Option) -> tuple[str, list[str]]:
    """A good one, and bad ones, as text."""
    if one.parse is None or good(one) != "some":
        return str(good(one)), [str(wrong) for wrong in bad(one)]
    texts, refused = ["some", "5%"], []
    for text in texts:
        try:
            one.parse(text)
        except ValueError:
            refused.append(text)
    return next(text for text in texts if text not in refused), refused


def test_nothing_given_is_the_default_of_every_option(pytester: pytest.Pytester) -> None:
    found = read(pytester)
    assert found == PytestRequest(runs=pytester.path / "results")


@pytest.mark.parametrize("name", KNOWN)
def test_an_option_takes_a_good_value_and_refuses_a_bad_one_in_a_shells_words(
    name: str, pytester: pytest.Pytester
) -> None:
    one = KNOWN[name]
    text, wrong = values(one)
    more = NEEDED.get(name, ())
    words = [flag(name), *([] if one.is_switch else [text])]
    by_line = getattr(read(pytester, *words, *more), name)
    by_ini = getattr(read(pytester, *more, ini=f"attnbench_{name} = {text}"), name)
    assert by_line == by_ini
    assert by_line != one.default or not one.is_switch
    for also in one.also:
        assert getattr(read(pytester, flag(also), text, *more), name) == by_line
    for value in wrong:
        said = {refused(pytester, flag(name), value), refused(pytester, ini=(name, value))}
        assert len(said) == 1
        (problem,) = said
        assert problem.startswith(flag(name))
        if name in one_of_run():
            with pytest.raises(BadInput) as of_shell:
                from_shell(OF_RUN, {name: value})
            assert problem == str(of_shell.value).replace("--", "--attnbench-")


def refused(pytester: pytest.Pytester, *words: str, ini: tuple[str, str] | None = None) -> str:
    line = f"attnbench_{ini[0]} = {ini[1]}" if ini else ""
    with pytest.raises(pytest.UsageError) as error:
        read(pytester, *words, ini=line)
    return str(error.value)


def one_of_run() -> dict[str, Any]:
    """The options that `attnbench run` has too: of the same type, with the same words."""
    of_run = declared(OF_RUN)
    shared = {name: one for name, one in KNOWN.items() if one.of is None}
    assert shared.keys() <= of_run.keys()
    return shared


def test_the_command_line_is_before_the_ini_file_and_changes_of_both_hold(
    pytester: pytest.Pytester,
) -> None:
    ini = "attnbench_plan = quick\nattnbench_set =\n    plan.processes=1\n    grid.heads=2"
    words = ("--attnbench-plan", "rigorous", "--attnbench-set", "grid.heads=8")
    found = read(pytester, *words, ini=ini)
    assert found.plan == "rigorous"
    assert set(found.set) == {"plan.processes=1", "grid.heads=8"}
    assert len(found.set) == 2


def test_against_alone_is_refused_on_the_command_line(pytester: pytest.Pytester) -> None:
    told = "--attnbench-against needs --attnbench-fail-slower"
    assert refused(pytester, "--attnbench-against", "main") == told
    assert read(pytester, ini="attnbench_against = main").against == ("main",)
