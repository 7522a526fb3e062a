from pathlib import Path

import pytest

from attnbench.impls import exactness, names
from tests.impls.discovery.conftest import FAKE


def test_declarations_are_read_without_importing_the_file(folder: Path) -> None:
    (folder / "near.py").write_text('EXACTNESS = "approximate"\n' + FAKE.format(boom="1 / 0"))
    (folder / "plain.py").write_text(FAKE.format(boom="1 / 0"))
    expected = {
        "near": "approximate",
        "near:left": "approximate",
        "plain": "exact",
        "sdpa:math": "exact",
        "sparse_local": "exact",
        "linformer:64": "approximate",
        "performer": "approximate",
        "rnn": "other",
    }
    assert {name: exactness(name) for name in expected} == expected


def test_a_changed_file_is_read_again(folder: Path) -> None:
    (folder / "mine.py").write_text(FAKE.format(boom=0))
    assert exactness("mine") == "exact"
    (folder / "mine.py").write_text('EXACTNESS = "approximate"\n' + FAKE.format(boom=0))
    assert exactness("mine") == "approximate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def prepare(:\n", r"broken\.py:1: invalid syntax; wanted valid Python"),
        (
            "NEEDS = ['x']\ndef prepare(): ...\n",
            r"broken\.py:1: NEEDS must be a plain tuple of strings",
        ),
        (
            "EXACTNESS = 'nearly'\ndef prepare(): ...\n",
            r"broken\.py:1: EXACTNESS must be one of 'exact', 'approximate', 'other', written out",
        ),
        (
            "VARIANTS = make()\ndef prepare(): ...\n",
            r"broken\.py:1: VARIANTS must be a plain tuple of strings",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        names()
