import os
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario.yaml_text import parse_yaml, read_yaml
from tests.counted_calls import calls

AT_ONCE = 200_000  # calls: less than 0.1 s of an idle machine


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        parse_yaml(text, "f.yaml")
    return str(caught.value)


def file_refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        read_yaml(path)
    return str(caught.value).replace(str(path), "f.yaml")


def test_values_follow_the_core_schema_of_yaml_1_2() -> None:
    text = (
        "[1, -2, 010, 0x10, 0o10, 1.5, .5, 1e3, true, False, null, ~, yes, 1:30, '4', 2026-01-01]"
    )
    values = [
        1,
        -2,
        10,
        16,
        8,
        1.5,
        0.5,
        1000.0,
        True,
        False,
        None,
        None,
        "yes",
        "1:30",
        "4",
        "2026-01-01",
    ]
    assert parse_yaml(text, "f.yaml").data == values


def test_every_key_and_value_has_its_place() -> None:
    document = parse_yaml("a:\n  b: [1,\n      2]\nempty:\n", "f.yaml")
    assert document.data == {"a": {"b": [1, 2]}, "empty": None}
    assert document.keys[("a", "b")] == "f.yaml:2:3"
    assert document.values[("a", "b", 1)] == "f.yaml:3:7"
    assert document.place(("a", "b", 7, "nothing", "here")) == "f.yaml:2:6"
    assert document.place(("empty",)) == "f.yaml:4:1"


@pytest.mark.parametrize("text", ["", "# nothing but words\n", "---\n", "~"])
def test_a_file_without_values_is_none(text: str) -> None:
    assert parse_yaml(text, "f.yaml").data is None


REFUSED = {
    "tab": ("a: 1\n\tb: 2\n", "f.yaml:2:1: a tab where YAML wants spaces; indent with spaces"),
    "colon in text": (
        "a: b: c",
        "f.yaml:1:5: not valid YAML: a colon where none can be; put text that has one in quotes, or"
        " check the indentation",
    ),
    "two documents": (
        "a: 1\n---\nb: 2\n",
        "f.yaml:2:1: a second document starts here; one document expected; use one file for each",
    ),
    "repeated key": (
        "a: 1\nb: 2\na: 3\n",
        "f.yaml:3:1: key 'a' given twice, first at f.yaml:1:1; wanted it once; remove one",
    ),
    "python tag": (
        "a: !!python/object/apply:os.system ['x']",
        "f.yaml:1:4: tag !!python/object/apply:os.system; wanted a value without a tag; remove it",
    ),
    "core tag": ("a: !!int 4", "f.yaml:1:4: tag !!int; wanted a value without a tag; remove it"),
    "tagged key": ("!x a: 4", "f.yaml:1:1: tag !x; wanted a key without a tag; remove it"),
    "anchor": (
        "a: &x [1, *x]",
        "f.yaml:1:4: anchor &x; wanted a value without one; write the value out",
    ),
    "anchor of a key": (
        "&x a: 1",
        "f.yaml:1:1: anchor &x; wanted a key without one; write the value out",
    ),
    "alias": ("a: *x", "f.yaml:1:4: alias *x; wanted a value without one; write the value out"),
    "open brackets": (
        "a: " + "[" * 5000,
        "f.yaml:1:260: more than 64 levels of nesting; wanted a scenario, which has four",
    ),
    "nested flow": (
        "[" * 100 + "]" * 100,
        "f.yaml:1:66: more than 64 levels of nesting; wanted a scenario, which has four",
    ),
    "nested blocks": (
        "\n".join(" " * level + "a:" for level in range(1000)),
        "f.yaml:66:66: more than 64 levels of nesting; wanted a scenario, which has four",
    ),
    "nested dashes": (
        "- " * 5000,
        "f.yaml:1:131: more than 64 levels of nesting; wanted a scenario, which has four",
    ),
    "5000 digits": ("a: " + "9" * 5000, "f.yaml:1:4: a number of 5000 digits; wanted at most 18"),
    "not finite": (
        "a: .nan\nb: -.inf\nc: 1e400",
        (
            "f.yaml:1:4: found .nan; finite number required\n"
            "f.yaml:2:4: found -.inf; finite number required\n"
            "f.yaml:3:4: found 1e400; finite number required"
        ),
    ),
    "escape byte": (
        "a: \x1b[31m",
        "f.yaml:1:4: control character U+001B; wanted plain text; remove it",
    ),
    "key that is a list": ("[a]: 1", "f.yaml:1:1: a key that is not a word; wanted `field: value`"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_with_its_place_and_at_once(case: str) -> None:
    text, message = REFUSED[case]
    messages: list[str] = []
    assert calls(lambda: messages.append(refusal(text))) < AT_ONCE
    assert messages == [message]


ENCODINGS = {
    "NUL": (b"a: 1\nb: \0", "f.yaml:2:4: a NUL byte; wanted UTF-8 text"),
    "invalid UTF-8": (
        b"a: 1\nb: \xff",
        "f.yaml:2:4: byte 0xff is not UTF-8; save the file as UTF-8",
    ),
    "UTF-16": (
        "a: 1".encode("utf-16"),
        "f.yaml:1:1: UTF-16 text; wanted UTF-8; convert it with `iconv -f UTF-16 -t UTF-8`",
    ),
    "20 MB": (
        b"a: 1\n" * 4_000_000,
        "f.yaml: larger than 1 MiB; wanted a scenario, which takes a few KiB",
    ),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_bytes_that_are_no_scenario_are_refused(case: str, tmp_path: Path) -> None:
    content, message = ENCODINGS[case]
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    messages: list[str] = []
    assert calls(lambda: messages.append(file_refusal(path))) < AT_ONCE
    assert messages == [message]


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert file_refusal(tmp_path / "pipe") == "f.yaml: a pipe; wanted a file"


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    assert (
        file_refusal(tmp_path / "none.yaml")
        == "f.yaml: no such file; check the path, or see `attnbench list scenarios`"
    )


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert file_refusal(tmp_path) == "f.yaml: a directory; wanted a file"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert (
        file_refusal(tmp_path / "loop")
        == "f.yaml: symbolic links that go in a circle; wanted a file"
    )


def test_a_file_that_may_not_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:  # root may read everything, so the system's answer is played
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert (
        file_refusal(tmp_path / "secret.yaml") == "f.yaml: may not be read; check its permissions"
    )
