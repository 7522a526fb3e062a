"""The answers of all kept and made-up runs as facts, which were read and approved, and how many.

A fact that is known to be wrong has the reason beside it: known_faults.json says which and why.
After a change on purpose, `make approve` renews them; review the diff.
"""

import csv
import io
import json
import shlex
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.printable import visible
from tests.approved.printing import HERE, MEANT, RENEW, printed

FACTS, COUNTS = HERE / "facts", HERE / "facts.json"
FAULTS = json.loads((HERE / "known_faults.json").read_text())
REFERENCE = HERE.parents[1] / "results" / "reference"
KEPT = sorted(path.parent.name for path in REFERENCE.glob("*/run.json"))
MADE = sorted(path.parent.name for path in (HERE / "runs").glob("*/run.json"))
QUICKSTART = "cpu-20261121-quickstart"
COLUMNS = ("answer", "place", "quantity", "value", "low", "high", "mark", "reason", "fault")
COMMANDS = {
    **{run: f"show {run} --format json" for run in MADE},
    **{run: f"show '{REFERENCE / run}' --format json" for run in KEPT},
    "advise": "show advise/20261121T093000Z-advise-1a2b3c4d --format json",
    "compare_runs": "compare before after",
    "compare_one_process": "compare before one_process",
    "compare_decode": "compare decode decode",
    "compare_backends": f"compare {QUICKSTART} --against fused",
    "compare_cpu": f"compare '{REFERENCE}/cpu-20261124-quickstart' --against fused",
    "compare_h200": f"compare '{REFERENCE}/h200-20261126-quickstart' --against sdpa",
    "gate_fails": "compare before after --gate 'latency: 5%, peak_bytes: 0%'",
    "gate_passes": "compare before before --gate 'latency: 5%'",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_facts_were_approved(name: str, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = facts(name, runs, monkeypatch)
    approved = FACTS / f"{name}.csv"
    if RENEW:
        FACTS.mkdir(exist_ok=True)
        approved.write_text(as_csv(found))
        counts = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
        counts = {one: counts[one] for one in counts if one in COMMANDS} | {name: by_answer(found)}
        COUNTS.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n")
    wanted = list(csv.DictReader(io.StringIO(approved.read_text())))
    lost, new = (
        [" ".join(one.values()) for one in some if one not in others]
        for some, others in ((wanted, found), (found, wanted))
    )
    changes = [*(f"- {one}" for one in lost), *(f"+ {one}" for one in new)]
    assert found == wanted, "\n".join([f"{name}:", *changes, MEANT])
    assert by_answer(found) == json.loads(COUNTS.read_text())[name]
    places = Counter((one["answer"], one["place"], one["quantity"]) for one in found)
    assert not [one for one, count in places.items() if count > 1]


def test_every_approved_file_has_its_command() -> None:
    assert {path.stem for path in FACTS.iterdir()} == set(COMMANDS)
    assert set(json.loads(COUNTS.read_text())) == set(COMMANDS)


def test_every_known_fault_is_still_there() -> None:
    """One that was mended is taken out of known_faults.json."""
    approved = [
        (path.stem, row)
        for path in FACTS.iterdir()
        for row in csv.DictReader(io.StringIO(path.read_text()))
    ]
    for fault in FAULTS:
        for of in fault["facts"]:
            assert any(fits(of, name, row) for name, row in approved), of


def facts(name: str, runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    words = shlex.split(COMMANDS[name])
    words += ["--format", "json"] if words[0] == "compare" else []
    document = json.loads(printed(words, runs, monkeypatch)[0])
    every = [
        as_texts(one) for one in (document if isinstance(document, list) else document["facts"])
    ]
    for one in every:
        wrong = [fault["wrong"] for fault in FAULTS for of in fault["facts"] if fits(of, name, one)]
        one["fault"] = "; ".join(dict.fromkeys(wrong))
    return every


def as_texts(fact: dict[str, Any]) -> dict[str, str]:
    """Numbers with four digits: what no other version of numpy changes."""
    place = " ".join(f"{key}={value}" for key, value in fact["place"].items() if key != "run")
    texts = {key: fact[key] or "" for key in ("answer", "quantity", "mark", "reason")}
    texts = {key: visible(text) for key, text in (texts | {"place": place}).items()}
    numbers = {key: number(fact[key]) for key in ("value", "low", "high")}
    return {column: (texts | numbers).get(column, "") for column in COLUMNS}


def number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def fits(of: dict[str, str], name: str, fact: dict[str, str]) -> bool:
    """`of`: a file, or a pattern of files, and columns of the fact."""
    columns = {key: value for key, value in of.items() if key != "file"}
    return fnmatchcase(name, of["file"]) and all(fact[key] == columns[key] for key in columns)


def by_answer(found: list[dict[str, str]]) -> dict[str, int]:
    return dict(sorted(Counter(one["answer"] for one in found).items()))


def as_csv(found: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()
