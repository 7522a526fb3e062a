"""Advice as JSON: what is not known is null, and numbers have their bounds."""

import json
from pathlib import Path
from typing import Any

from attnbench.reports.advise.answer import advise
from attnbench.reports.advise.asked import Inquiry
from attnbench.reports.advise.stored import StoredRows
from attnbench.reports.advise.tables import document
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of


def as_document(asked: Inquiry, rows: StoredRows) -> dict[str, Any]:
    """As a program reads it: what JSON has."""
    return json.loads(json.dumps(document(advise(asked, rows)), allow_nan=False))


def test_the_answer_carries_every_number_with_its_run_and_interval(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA), shapes=FakeShapes(formulas={"hf:sdpa": 7}))
    folder = measured(tmp_path, asked, changes={"hf:eager": {"speed": 8.0}})
    found = as_document(asked, rows_of(asked, folder))
    (decision,) = found["decisions"]
    assert decision["attn_implementation"] == "sdpa"
    first, second = decision["choices"]
    assert first["against_fastest"] is None
    assert second["against_fastest"]["verdict"] == "slower"
    assert second["against_fastest"]["low"] < second["against_fastest"]["ratio"]
    layer = first["layers"][0]
    assert layer["run"] == folder.name
    assert layer["count"] == 3
    assert layer["call_ms"]["low"] <= layer["call_ms"]["value"] <= layer["call_ms"]["high"]
    assert found["memory"][0]["total_bytes"] > found["memory"][0]["cache_bytes"]
    assert found["measure"] is None
    assert found["runs"] == [str(folder)]


def test_what_is_not_known_is_null():
    found = as_document(inquiry(weight_bytes=None), StoredRows())
    assert found["decisions"][0]["attn_implementation"] is None
    assert found["decisions"][0]["choices"][0]["total_ms"] is None
    assert found["weight_bytes"] is None
    assert found["longest"][0]["context"] is None
    assert found["longest"][0]["source"] == "no formula for hf:eager"
    missing = [one["implementation"] for one in found["missing"]]
    assert missing == ["eager", "sdpa", "flex_attention"]
    assert found["measure"] == "attnbench advise ./mine --context 1k --measure"
