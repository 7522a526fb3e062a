"""Every option of every verb, found by its declaration: its default, a good and a bad value, from a
shell and from Python. A new field is tested without an edit here.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any, get_args

import pytest

from attnbench.harness.files.errors import BadInput, Spelling
from attnbench.harness.verbs.app import HOMES, verb
from attnbench.harness.verbs.request import Option, Verb, declared, function
from attnbench.harness.verbs.shell import command
from attnbench.impls.problem import AXES

OPTIONS = [(name, one) for name in HOMES for one in declared(verb(name).request)]


def types_of(annotation: Any) -> Iterator[Any]:
    """The types and literals that it is made of."""
    yield annotation
    for one in get_args(annotation) if not callable(annotation) or get_args(annotation) else ():
        yield from types_of(one)


def good(one: Option) -> Any:
    """As Python gives it."""
    found = [*types_of(one.type)]
    if one.is_switch:
        return True
    words = [part for part in found if isinstance(part, str)]
    if words or str in found:
        return words[0] if words else "some"
    if int in found or float in found:
        return 1 if one.least is None else one.least
    return Path("some") if Path in found else print


def bad(one: Option) -> list[Any]:
    """What neither may give; of text there is none."""
    found = [*types_of(one.type)]
    if one.is_switch or (str in found and one.parse is None) or Path in found:
        return []
    if str in found or Callable in found:
        return []
    above = [one.most + 1] if one.most is not None else []
    below = [one.least - 1] if one.least is not None else []
    below += [one.above] if one.above is not None else []
    return ["no such", *above, *below]


def bare(name: str) -> Any:
    """A verb's request, without what it refuses of fields together."""
    kept: dict[str, Any] = {"__post_init__": lambda self: None, "__slots__": ()}
    return type("Bare", (verb(name).request,), kept)


def from_shell(request: Any, given: dict[str, Any]) -> Any:
    got = []

    def tell(request: Any) -> int:
        got.append(request)
        return 0

    tell.__annotations__["request"] = request
    words: list[str] = []
    for one in declared(request).values():
        if one.name in given and not one.argument:
            words += [f"--{one.name.replace('_', '-')}"]
            words += [] if one.is_switch else [str(given[one.name])]
    words += [
        str(given[one.name])
        for one in declared(request).values()
        if one.name in given and one.argument
    ]
    command("verb", Verb(tell=tell))(words, standalone_mode=False)
    return got[0]


def from_python(request: Any, given: dict[str, Any]) -> Any:
    def answer(request: Any) -> Any:
        return request

    answer.__annotations__["request"] = request
    return function(answer)(**given)


@pytest.mark.parametrize(("name", "field"), OPTIONS)
def test_an_option_has_its_default_takes_a_good_value_and_refuses_a_bad_one(
    name: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    request = bare(name)
    known = declared(request)
    one = known[field]
    needed = {
        key: good(of) for key, of in known.items() if of.default is MISSING or key == one.needs
    }
    readers = {Spelling.SHELL: from_shell, Spelling.PYTHON: from_python}
    takes = [take for reader, take in readers.items() if one.of in (None, reader)]
    said = set()
    for take in takes:
        if one.default is not MISSING:
            is_quiet = field == "quiet" and take is from_python
            assert getattr(take(request, needed), field) == (is_quiet or one.default)
        values = {getattr(take(request, {**needed, field: good(one)}), field)}
        assert values != {one.default} or one.default is MISSING or one.type is not bool
        for wrong in bad(one):
            with pytest.raises(BadInput) as caught:
                take(request, {**needed, field: wrong if take is from_python else str(wrong)})
            place, _, found = str(caught.value).partition(": ")
            flag = one.value if one.argument else f"--{field.replace('_', '-')}"
            assert place == (field if take is from_python else flag)
            said.add(found.replace("'", ""))
    assert len(said) == len(bad(one))


def test_both_give_the_same_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in HOMES:
        request = bare(name)
        known = declared(request)
        single = {key for key, one in known.items() if one.default is MISSING or not one.is_many}
        given = {
            key: good(one)
            for key, one in known.items()
            if one.of is None and key in single and one.needs in (*single, "")
        }
        shell, python = from_shell(request, given), from_python(request, given)
        assert [str(getattr(shell, key)) for key in given] == [
            str(getattr(python, key)) for key in given
        ]


@pytest.mark.parametrize("name", HOMES)
def test_a_name_stands_for_one_option_and_each_says_what_it_is_for(name: str) -> None:
    known = declared(verb(name).request)
    names = [name for one in known.values() for name in (one.name, *one.also)]
    assert len(names) == len(set(names))
    shorts = [one.short for one in known.values() if one.short]
    assert len(shorts) == len(set(shorts))
    assert all(one.help for one in known.values() if not one.hidden)
    assert set(verb(name).usual.split()) <= set(known)


@pytest.mark.parametrize(("name", "without"), [("run", ()), ("wall", ("seq_len",))])
def test_every_axis_of_a_problem_is_an_option_that_has_its_help(
    name: str, without: tuple[str, ...]
) -> None:
    known = declared(verb(name).request)
    assert [one for one in AXES if one in known or one in without] == [*AXES]
    for axis in {*AXES} - {*without}:
        assert known[axis].help == (AXES[axis].option or AXES[axis].meaning)
        assert known[axis].for_shell == bool(AXES[axis].option)
        assert known[axis].is_switch == (AXES[axis].type is bool)
