"""Text that is small and costs much is refused after little work, which is counted, not timed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_text, load_entries, messages, yaml_text
from attnbench.harness.scenario.suite_file import MOST_ENTRIES
from attnbench.harness.scenario.yaml_text import MAX_BYTES, MAX_NODES, read_yaml

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
    r"f\.yaml:\d+:\d+: more than \d+ "
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

    monkeypatch.setattr(yaml_text, "YAML", Counted)
    return asked


def refusal(text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        from_text(text, "f.yaml")
    return list(caught.value.problems)


@pytest.mark.parametrize("case", COSTLY)
def test_text_is_refused_by_the_work_that_it_makes(case: str, events: list[Any]) -> None:
    assert len(COSTLY[case]) < MAX_BYTES
    *others, last = refusal(COSTLY[case])
    assert TOO_MUCH.fullmatch(last) or (len(others) == 20 and last == "and more; fix these first")
    assert len(events) < MAX_EVENTS * (1.3 if "mappings" in case else 1)


def test_a_change_by_an_option_is_limited_alike(events: list[Any]) -> None:
    with pytest.raises(BadInput) as caught:
        from_text(HEAD, "f.yaml", [f"grid.seq_len=[{'1,' * 60_000}]"])
    assert str(caught.value).startswith("--set 'grid.seq_len=[")
    assert str(caught.value).endswith("more than 50000 values; wanted a smaller scenario")
    assert len(events) < MAX_EVENTS


def test_a_large_scenario_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(HEAD + "cases:\n" + f"- {{{PROBLEM}}}\n" * 5000)
    assert 35_000 < read_yaml(tmp_path / "f.yaml").nodes < MAX_NODES


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words for which a close name was looked for, which is the costly part of a message."""
    compared: list[str] = []
    original = messages.get_close_matches

    def counted(word: str, *others: Any, **options: Any) -> list[str]:
        compared.append(word)
        return original(word, *others, **options)

    monkeypatch.setattr(messages, "get_close_matches", counted)
    return compared


@pytest.mark.parametrize(
    "fields",
    [
        "cases:\n" + "- {aa: 1, bb: 1, cc: 1, dd: 1}\n" * 4000,
        "cases:\n" + "- {dtype: float31, mask: paddings}\n" * 4000,
        f"grid: {{{PROBLEM}, dtype: [{'float31,' * 1000}]}}",
        "".join(f"k{n}: 1\n" for n in range(490)),
        f"measure: [{'latencies,' * 200}]",
    ],
)
def test_only_what_is_shown_is_compared_with_known_names(
    fields: str, comparisons: list[str]
) -> None:
    found = refusal(HEAD + fields)
    assert len(found) == 21
    assert re.fullmatch(r"and \d+ more; fix these first", found[-1])
    assert len(comparisons) < 600


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("backends: [" + "x," * 30_000 + "]", 256),
        ("studies: [" + "x," * 30_000 + "]", 256),
        ("contrast: [" + "heads," * 30_000 + "]", 256),
        ("measure: [" + "latency," * 30_000 + "]", 256),
        (f"grid: {{{PROBLEM}, batch: [" + "1," * 30_000 + "]}", 1024),
        ("watch: {batch: [" + "2," * 30_000 + "]}", 1024),
    ],
)
def test_a_list_of_too_many_names_or_values_is_one_line(
    field: str, most: int, comparisons: list[str]
) -> None:
    head = HEAD if "backends" not in field else HEAD.replace("backends: [naive]\n", "")
    (line,) = refusal(head + field)
    assert line.startswith(f"f.yaml:{head.count(chr(10)) + 1}:")
    assert line.endswith(f"found a list of 30000; wanted at most {most} of them")
    assert not comparisons


# ---- suites --------------------------------------------------------------------------------------


def suite_refusal(folder: Path, text: str) -> str:
    (folder / "s.yaml").write_text(text)
    with pytest.raises(BadInput) as caught:
        load_entries(str(folder / "s.yaml"))
    return str(caught.value)


def test_a_suite_of_large_scenarios_is_refused_before_all_are_read(
    tmp_path: Path, events: list[Any]
) -> None:
    scenario = tmp_path / "large.yaml"
    scenario.write_text(f"{HEAD}grid: {{{PROBLEM}}}\ncases:\n" + f"- {{{PROBLEM}}}\n" * 1000)
    most = yaml_text.MAX_NODES * 3
    fit = most // read_yaml(scenario).nodes
    events.clear()
    message = suite_refusal(tmp_path, "- large.yaml\n" * MOST_ENTRIES)
    assert re.fullmatch(
        rf".*s\.yaml:{fit + 1}:3: the scenarios up to here hold more than {most} values together;"
        r" wanted a smaller suite; make several of it",
        message,
    )
    assert len(events) < 1.5 * most


def test_an_entry_has_a_limited_number_of_changes(tmp_path: Path) -> None:
    changes = "".join(f"    grid.k{n}: 1\n" for n in range(100))
    message = suite_refusal(tmp_path, f"- scenario: quickstart\n  set:\n{changes}")
    assert re.search(r"s\.yaml:3:5: \[0\]\.set: found a mapping of 100; wanted at most 64", message)


def test_a_suite_file_is_read_with_the_limits_of_a_scenario(
    tmp_path: Path, events: list[Any]
) -> None:
    message = suite_refusal(tmp_path, "- quickstart\n" * 60_000)
    assert re.search(r"s\.yaml:50000:3: more than 50000 values", message)
    assert len(events) < MAX_EVENTS
