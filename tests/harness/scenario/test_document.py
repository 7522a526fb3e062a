import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import document, load_entries
from attnbench.harness.scenario.document import MAX_BYTES, MAX_NODES, WANTED, parse_yaml, read_yaml
from tests.counted_calls import calls

AT_ONCE = 200_000  # calls: less than 0.1 s of an idle machine


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        parse_yaml(text, "f.yaml")
    return str(caught.value)


def file_refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        read_yaml(path)
    return str(caught.value).replace(str(path), "f.yaml", 1)


def test_values_follow_the_core_schema_of_yaml_1_2() -> None:
    text = (
        "[1, -2, 010, 0x10, 0o10, 1.5, .5, 1e3, true, False, null, ~, yes, 1:30, '4', 2026-01-01]"
    )
    numbers = [1, -2, 10, 16, 8, 1.5, 0.5, 1000.0]
    values = [*numbers, True, False, None, None, "yes", "1:30", "4", "2026-01-01"]
    assert parse_yaml(text, "f.yaml").data == values


def test_every_key_and_value_has_its_place() -> None:
    document = parse_yaml("a:\n  b: [1,\n      2]\nempty:\n", "f.yaml")
    assert document.data == {"a": {"b": [1, 2]}, "empty": None}
    assert document.place(("a", "b"), of_key=True) == "f.yaml:2:3"
    assert document.place(("a", "b", 1)) == "f.yaml:3:7"
    assert document.place(("a", "b", 7, "nothing", "here")) == "f.yaml:2:6"
    assert document.place(("empty",)) == "f.yaml:4:1"


@pytest.mark.parametrize("text", ["", "# nothing but words\n", "---\n", "~"])
def test_a_file_without_values_is_none(text: str) -> None:
    assert parse_yaml(text, "f.yaml").data is None


NESTED = "more than 20 levels of nesting"
REFUSED = {
    "a: 1\n\tb: 2\n": "2:1: a tab where YAML wants spaces",
    "a: b: c": "1:5: not valid YAML: a colon where none can be",
    "a: 1\n---\nb: 2\n": "2:1: a second document starts here",
    "a: 1\nb: 2\na: 3\n": "3:1: key 'a' given twice, first at f.yaml:1:1",
    "a: !!python/object/apply:os.system ['x']": "1:4: tag !!python/object/apply:os.system",
    "a: !!int 4": "1:4: tag !!int",
    "!x a: 4": "1:1: tag !x; wanted a key",
    "a: &x [1, *x]": "1:4: anchor &x",
    "&x a: 1": "1:1: anchor &x; wanted a key",
    "a: *x": "1:4: alias *x",
    "[" * 100 + "]" * 100: f"1:22: {NESTED}",
    "\n".join(" " * level + "a:" for level in range(1000)): f"22:22: {NESTED}",
    "- " * 5000: f"1:43: {NESTED}",
    "a: " + "9" * 5000: "1:4: a number of 5000 digits",
    "a: .nan": "1:4: found .nan",
    "b: -.inf": "1:4: found -.inf",
    "c: 1e400": "1:4: found 1e400",
    "a: \x1b[31m": "1:4: control character U+001B",
    "[a]: 1": "1:1: a key that is not a word",
}


@pytest.mark.long
def test_the_parser_looks_no_further_than_a_thousand_open_brackets() -> None:
    assert calls(lambda: refusal("[" * 5000)) < 4_000_000


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.get)
def test_what_is_wrong_is_said_with_its_place_and_at_once(text: str) -> None:
    messages: list[str] = []
    assert calls(lambda: messages.append(refusal(text))) < AT_ONCE
    assert messages[0].startswith(f"f.yaml:{REFUSED[text]}")
    assert "\n" not in messages[0]


ENCODINGS = {
    "NUL": (b"a: 1\nb: \0", ":2:4: control character U+0000"),
    "invalid UTF-8": (b"a: 1\nb: \xff", ":2:4: byte 0xff is not UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), ":1:1: byte 0xff is not UTF-8"),
    "20 MB": (b"a: 1\n" * 4_000_000, ": larger than 1 MiB"),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_bytes_that_are_no_scenario_are_refused(case: str, tmp_path: Path) -> None:
    content, message = ENCODINGS[case]
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    messages: list[str] = []
    assert calls(lambda: messages.append(file_refusal(path))) < AT_ONCE
    assert messages[0].startswith(f"f.yaml{message}")


PLACES = {
    "pipe": "not a plain file",
    "none.yaml": "no such file",
    ".": "not a plain file",
    "loop": "a link, and links are not followed",
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_file_is_refused_without_waiting(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert file_refusal(tmp_path / name) == f"f.yaml: {PLACES[name]}; wanted {WANTED}"


HEAD = "name: mine\nquestion: Which?\nbackends: [naive]\n"
PROBLEM = "seq_len: 64, d_model: 32, heads: 2"
MAX_EVENTS = MAX_NODES + 200  # each is a key, a value or an end; a list of scalars has few ends
COSTLY = {
    "80 000 keys": "".join(f"k{n}: \n" for n in range(80_000)),
    "80 000 keys in a flow mapping": "{" + ",".join(f"k{n}: " for n in range(80_000)) + "}",
    "80 000 keys of many mappings": "- {a: 1, b: 1, c: 1, d: 1}\n" * 20_000,
    "80 000 repeated keys": "a: 1\n" * 80_000,
    "80 000 explicit keys": "? a\n" * 80_000,
    "200 000 scalars": "[" + "1," * 200_000 + "]",
    "200 000 empty items": "- \n" * 200_000,
    "100 000 tags": "- !x\n" * 100_000,
}
TOO_MUCH = re.compile(
    r"scenario:\d+:\d+: more than \d+ "
    r"(keys in one mapping|values); wanted a smaller scenario"
)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the parser was asked for: the work of reading, as it reads nothing ahead."""
    asked: list[Any] = []

    class Counted(YAML):
        def parse(self, text: Any) -> Iterator[Any]:
            for event in super().parse(text):
                asked.append(event)
                yield event

    monkeypatch.setattr(document, "YAML", Counted)
    return asked


def refusals(text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_entries(f"{text}\n")
    return list(caught.value.problems)


@pytest.mark.long
@pytest.mark.parametrize("case", COSTLY)
def test_text_is_refused_by_the_work_that_it_makes(case: str, events: list[Any]) -> None:
    assert len(COSTLY[case]) < MAX_BYTES
    *others, last = refusals(COSTLY[case])
    assert TOO_MUCH.fullmatch(last) or (len(others) == 20 and last == "and more; fix these first")
    assert len(events) < MAX_EVENTS * (1.3 if "mappings" in case else 1)


@pytest.mark.long
def test_a_large_scenario_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(HEAD + "cases:\n" + f"- {{{PROBLEM}}}\n" * 5000)
    assert len(read_yaml(tmp_path / "f.yaml").data["cases"]) == 5000
