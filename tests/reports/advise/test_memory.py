"""Bytes over the context, and the longest context that fits, and that time allows."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.reports.advise.memory import Memory
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import EAGER, FLEX, SDPA, FakeShapes, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024)
SEVEN = {"hf:sdpa": 7}
FORMULA = FakeShapes(formulas=SEVEN)
PER_TOKEN = 100 + 1007  # in the cache, and of a call with its inputs


class Bounded(FakeShapes):
    def predicted_peak(self, implementation, problem):
        return replace(super().predicted_peak(implementation, problem), at_most=True)


class Cached(FakeShapes):
    """Of a layer's 1,000 bytes of inputs a token 600 are in the cache; appending takes 900."""

    def asked(self, phase, context):
        some = super().asked(phase, context)
        more = {"cached_bytes": 600 * context, "appended_bytes": 900 * context}
        return [replace(one, **more) for one in some]


def memory_of(rows=None, **changes) -> Memory:
    return Memory(inquiry=inquiry(**changes), rows=rows or StoredRows())


def test_what_was_measured_at_this_length_counts_with_its_inputs_and_workspace(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    sizes = {"hf:sdpa": {"peak_bytes": 7_000, "workspace_bytes": 500}}
    rows = rows_of(asked, measured(tmp_path, asked, changes=sizes))
    need = memory_of(rows).need(SDPA, "prefill", 1024)
    assert need.attention_bytes == 1000 * 1024 + 7_500
    assert need.total_bytes == 10_000 + 100 * 1024 + 1000 * 1024 + 7_500
    assert need.paged_cache_bytes == 200 * 1024


def test_keys_and_values_in_the_cache_count_once():
    """They counted among those of all layers, and again among the inputs of one."""
    memory = memory_of(shapes=Cached(formulas={"hf:sdpa": 700, "hf:eager": 7}))
    called = memory.need(SDPA, "decode", 100)
    assert (called.attention_bytes, called.source) == (100 * (1000 + 700 - 600), "by the formula")
    assert called.total_bytes == 10_000 + 100 * 100 + 100 * 1100
    appended = memory.need(EAGER, "decode", 100)
    assert (appended.attention_bytes, appended.source) == (100 * 900, "the cache's copy of k and v")
    assert memory.need(FLEX, "decode", 100).attention_bytes is None


def test_other_lengths_follow_exactly_from_four_measured_ones(tmp_path: Path):
    asked = inquiry(implementations=(EAGER,))
    rows = rows_of(asked, measured(tmp_path, asked, LENGTHS))
    need = memory_of(rows).need(EAGER, "prefill", 2048)
    # the made-up rows: two outputs of 512 numbers a token and 16 bytes
    assert need.attention_bytes == 1000 * 2048 + 2 * 2048 * 512 * 4 + 16


def test_without_enough_lengths_a_formula_counts_and_without_one_nothing_is_known():
    memory = memory_of(shapes=FORMULA)
    assert memory.need(SDPA, "prefill", 100).attention_bytes == 1007 * 100
    unknown = memory.need(EAGER, "prefill", 100)
    assert (unknown.attention_bytes, unknown.total_bytes) == (None, None)
    assert unknown.source == "no formula for hf:eager"


@pytest.mark.parametrize(
    ("changes", "context", "limit", "at_least"),
    [
        ({}, (4_000_000 - 10_000) // PER_TOKEN, "memory", False),
        ({"memory_bytes": 1 << 40}, 4096, "model", False),
        ({"weight_bytes": 5_000_000}, 0, "weights", False),
        ({"weight_bytes": 3_999_999}, 0, "memory", False),
        ({"shapes": Bounded(formulas=SEVEN)}, (4_000_000 - 10_000) // PER_TOKEN, "memory", True),
        ({"shapes": Bounded(formulas=SEVEN), "memory_bytes": 1 << 40}, 4096, "model", False),
    ],
)
def test_the_longest_context_is_the_last_that_fits(changes, context, limit, at_least):
    found = memory_of(**{"shapes": FORMULA, **changes}).longest(SDPA, "prefill")
    assert (found.context, found.limit, found.at_least) == (context, limit, at_least)
    assert found.source == ("" if limit == "weights" else "by the formula")


def test_where_a_bound_does_not_fit_one_token_the_longest_context_is_not_known():
    tight = memory_of(shapes=Bounded(formulas=SEVEN), weight_bytes=3_999_999)
    found = tight.longest(SDPA, "prefill")
    assert (found.context, found.limit, found.source) == (None, "none", "by the formula")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shapes": FakeShapes()}, "no formula for hf:sdpa"),
        ({"memory_bytes": None}, "the size of the memory is not known: give --memory-gib"),
        (
            {"shapes": FakeShapes(formulas=SEVEN, strange=True)},
            "by the formula; some layers were not measured (below)",
        ),
    ],
)
def test_without_bytes_or_memory_the_longest_is_not_known_and_says_why(changes, words):
    found = memory_of(**{"shapes": FORMULA, **changes}).longest(SDPA, "prefill")
    assert (found.context, found.source) == (None, words)
