"""Text that is small and costs much is refused after little work, which is counted, not timed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import document, from_text
from attnbench.harness.scenario.document import MAX_BYTES, MAX_NODES, read_yaml

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

    monkeypatch.setattr(document, "YAML", Counted)
    return asked


def refusal(text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        from_text(text, "f.yaml")
    return list(caught.value.problems)


@pytest.mark.long
@pytest.mark.parametrize("case", COSTLY)
def test_text_is_refused_by_the_work_that_it_makes(case: str, events: list[Any]) -> None:
    assert len(COSTLY[case]) < MAX_BYTES
    *others, last = refusal(COSTLY[case])
    assert TOO_MUCH.fullmatch(last) or (len(others) == 20 and last == "and more; fix these first")
    assert len(events) < MAX_EVENTS * (1.3 if "mappings" in case else 1)


def test_a_large_scenario_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(HEAD + "cases:\n" + f"- {{{PROBLEM}}}\n" * 5000)
    assert 35_000 < read_yaml(tmp_path / "f.yaml").nodes < MAX_NODES


# ---- suites --------------------------------------------------------------------------------------
