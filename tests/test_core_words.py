"""The core knows of no pack: its files have no word of one, but where users are told of them."""

import re

from attnbench.harness.studies import every
from tests.conftest import ROOT

PACKS = ("advise", "claims", "fleet", "heads", "models", "pytest_plugin", "studies")
ENGLISH = {"generation", "precision"}
"""Studies whose names are words of their own."""
WORDS = re.compile(
    rf"\b(fleet|ray|advise|checkpoints?|{'|'.join({*every()} - ENGLISH)})\b",
    re.IGNORECASE,
)
ALLOWED = {
    "harness/verbs/app.py": "verbs and where their files are",
    "harness/verbs/run.py": "options that ask for a pack",
    "harness/verbs/wall.py": "a message that names a verb",
    "reports/data/typed.py": "verbs of the Python interface",
    "reports/subjects/stored_keys.py": "says which study measures it",
}


def test_files_of_the_core_have_no_word_of_a_pack() -> None:
    found = set()
    for file in (*ROOT.glob("harness/**/*.py"), *ROOT.glob("reports/**/*.py")):
        place = file.relative_to(ROOT)
        if place.parts[1] not in PACKS and WORDS.search(file.read_text(encoding="utf-8")):
            found.add(place.as_posix())
    assert found == set(ALLOWED)
