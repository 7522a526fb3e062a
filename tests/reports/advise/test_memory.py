"""Bytes over the context, and the longest context that fits."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from attnbench.reports.advise.memory import MemoryOver
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import EAGER, FLEX, SDPA, FakeShapes, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024)


def test_what_was_measured_at_this_length_counts_with_its_inputs_and_workspace(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(
        tmp_path, asked, changes={"hf:sdpa": {"peak_bytes": 7_000, "workspace_bytes": 500}}
    )
    need = MemoryOver(inquiry=asked, rows=rows_of(asked, folder)).need(SDPA, "prefill", 1024)
    assert need.attention == 1000 * 1024 + 7_500
    assert need.words == "measured at this length"
    assert need.total == 10_000 + 100 * 1024 + 1000 * 1024 + 7_500
    assert need.paged_cache == 200 * 1024


class Cached(FakeShapes):
    """Of a layer's 1,000 bytes of inputs a token 600 are in the cache; appending takes 900."""

    def asked(self, phase, context):
        some = super().asked(phase, context)
        more = {"cached_bytes": 600 * context, "appended_bytes": 900 * context}
        return [replace(one, **more) for one in some]


def test_keys_and_values_in_the_cache_count_once():
    """They counted among those of all layers, and again among the inputs of one."""
    memory = MemoryOver(
        inquiry=inquiry(shapes=Cached(formulas={"hf:sdpa": 700, "hf:eager": 7})), rows=StoredRows()
    )
    called = memory.need(SDPA, "decode", 100)
    assert (called.attention, called.words) == (100 * (1000 + 700 - 600), "by the formula")
    assert called.total == 10_000 + 100 * 100 + 100 * 1100
    appended = memory.need(EAGER, "decode", 100)
    assert (appended.attention, appended.words) == (100 * 900, "copied into the cache")
    assert memory.need(FLEX, "decode", 100).attention is None


def test_other_lengths_follow_exactly_from_four_measured_ones(tmp_path: Path):
    asked = inquiry(implementations=(EAGER,))
    rows = rows_of(asked, measured(tmp_path, asked, LENGTHS))
    need = MemoryOver(inquiry=asked, rows=rows).need(EAGER, "prefill", 2048)
    # the made-up rows: two outputs of 512 numbers a token and 16 bytes
    assert need.attention == 1000 * 2048 + 2 * 2048 * 512 * 4 + 16
    assert need.words == "by the exact bytes measured at N = 128, 256, 512, 1,024"


def test_without_enough_lengths_a_formula_counts_and_without_one_nothing_is_known(tmp_path: Path):
    shapes = FakeShapes(formulas={"hf:sdpa": 7})
    asked = inquiry(shapes=shapes)
    memory = MemoryOver(inquiry=asked, rows=StoredRows())
    assert memory.need(SDPA, "prefill", 100).attention == 1007 * 100
    unknown = memory.need(EAGER, "prefill", 100)
    assert unknown.attention is None
    assert unknown.total is None
    assert unknown.words == "no formula for hf:eager"


def test_the_longest_context_is_the_last_that_fits():
    asked = inquiry(shapes=FakeShapes(formulas={"hf:sdpa": 7}), weight_bytes=10_000)
    found = MemoryOver(inquiry=asked, rows=StoredRows()).longest(SDPA, "prefill")
    per_token = 100 + 1007
    assert found.context == Fraction(4_000_000 - 10_000, per_token).__floor__()
    assert found.limit == "memory"
    assert found.need is not None
    assert found.need.total is not None
    assert found.need.total <= 4_000_000 < found.need.total + per_token


def test_the_models_own_limit_binds_where_memory_does_not():
    asked = inquiry(shapes=FakeShapes(formulas={"hf:sdpa": 7}), memory_bytes=1 << 40)
    found = MemoryOver(inquiry=asked, rows=StoredRows()).longest(SDPA, "prefill")
    assert (found.context, found.limit) == (4096, "model")


def test_a_bound_of_the_bytes_makes_the_longest_context_a_bound_too():
    class Bounded(FakeShapes):
        def predicted_peak(self, implementation, problem):
            return replace(super().predicted_peak(implementation, problem), at_most=True)

    shapes = Bounded(formulas={"hf:sdpa": 7})
    found = MemoryOver(inquiry=inquiry(shapes=shapes), rows=StoredRows()).longest(SDPA, "prefill")
    assert found.at_least
    assert found.words == "at most, by the formula"
    wide = inquiry(shapes=shapes, memory_bytes=1 << 40)
    assert not MemoryOver(inquiry=wide, rows=StoredRows()).longest(SDPA, "prefill").at_least


def test_weights_that_do_not_fit_leave_no_context():
    asked = inquiry(shapes=FakeShapes(formulas={"hf:sdpa": 7}), weight_bytes=5_000_000)
    found = MemoryOver(inquiry=asked, rows=StoredRows()).longest(SDPA, "prefill")
    assert (found.context, found.limit) == (0, "memory")


def test_without_bytes_or_memory_the_longest_is_not_known_and_says_why():
    memory = MemoryOver(inquiry=inquiry(), rows=StoredRows())
    found = memory.longest(EAGER, "prefill")
    assert (found.context, found.words) == (None, "no formula for hf:eager")
    nowhere = MemoryOver(inquiry=inquiry(memory_bytes=None), rows=StoredRows())
    assert "--memory-gib" in nowhere.longest(EAGER, "prefill").words


def test_a_kind_of_layer_that_is_not_measured_leaves_the_bytes_of_attention_open():
    shapes = FakeShapes(formulas={"hf:sdpa": 7}, strange=True)
    memory = MemoryOver(inquiry=inquiry(shapes=shapes), rows=StoredRows())
    need = memory.need(SDPA, "prefill", 100)
    assert need.total is None
    assert "not known for latent: has latent heads" in need.words
    assert memory.longest(SDPA, "prefill").context is None
