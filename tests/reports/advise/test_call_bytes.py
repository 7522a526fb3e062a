"""Bytes of a call at any length, and what walls that were found say where bytes do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.reports.advise.memory import CallBytes, Memory
from tests.reports.fake_advice import (
    EAGER,
    FLEX,
    SDPA,
    FakeShapes,
    inquiry,
    measured,
    problem_of,
    rows_of,
    searched,
)

FORMULA = FakeShapes(formulas={"hf:sdpa": 7})  # with the inputs, 1,007 bytes a token


def needed(asked, rows, implementation, problem):
    return CallBytes(asked, rows, implementation, problem).needed(problem)


def longest(asked, rows, implementation=SDPA, phase="prefill"):
    return Memory(inquiry=asked, rows=rows).longest(implementation, phase)


# ---- walls ---------------------------------------------------------------------------------------


def test_what_runs_at_a_length_needs_no_more_at_shorter_ones(tmp_path: Path):
    asked = inquiry(implementations=(FLEX,))
    rows = rows_of(asked, measured(tmp_path, asked, changes={FLEX.backend: {"peak_bytes": 9}}))
    found = needed(asked, rows, FLEX, problem_of("prefill", 512, 8))
    assert found.at_most


def test_beyond_what_was_measured_bytes_grow_at_most_as_scores_do(tmp_path: Path):
    """Of a layer with a window, or of what compiles, nothing was said beyond."""
    asked = inquiry(implementations=(FLEX,), phases=("prefill", "decode"))
    rows = rows_of(asked, measured(tmp_path, asked, changes={FLEX.backend: {"peak_bytes": 9}}))
    for phase, peak in (("prefill", 16 * 9), ("decode", 4 * 9)):
        found = needed(asked, rows, FLEX, problem_of(phase, 4096, 8))
        assert (found.value, found.at_most) == (4096 * 1000 + peak, True)
    end = longest(asked, rows, FLEX)
    assert (end.limit, end.at_least) == ("memory", True)
    assert end.context > 1024


FITS = "a search found that N = 2\u202f000 fits into 2 MiB and 2\u202f010 does not"


@pytest.mark.parametrize(
    ("implementation", "wall", "found"),
    [
        # it bounds what no bytes are known of
        (EAGER, (2000, 2010, {"memory_bytes": 2_100_000}), (2000, "unknown")),
        (EAGER, (2000, 2010, {"input_order": None}), (None, "none")),
        # it was found earlier than bytes say, or beside them
        (SDPA, (1190, 1200, {"memory_bytes": 1 << 30}), (1199, "memory")),
        (SDPA, (995, 1003, {"memory_bytes": 1_007_000}), (3604, "memory")),
        # the implementation fails, and memory does not count
        (SDPA, (400, 500, {"limited_by": "backend"}), (499, "backend")),
        # a search that time ended says what fits and not what fails
        (SDPA, (400, 500, {"limited_by": "time"}), (3604, "memory")),
    ],
)
def test_a_wall_that_was_found_counts(tmp_path: Path, implementation, wall, found):
    asked, (low, high, changes) = inquiry(shapes=FORMULA), wall
    rows = rows_of(asked, searched(tmp_path, asked, implementation, low, high, **changes))
    end = longest(asked, rows, implementation)
    assert (end.context, end.limit) == found
    if end.limit == "unknown":
        assert (end.at_least, end.source) == (True, FITS)
        assert end.total_bytes == 10_000 + 100 * 2000 + 2_100_000
    if end.limit == "backend":
        assert "fails from N = 500 on: oom at 500" in end.source


def test_a_case_that_ran_out_of_memory_is_a_wall_too(tmp_path: Path):
    asked = inquiry(shapes=FORMULA, memory_bytes=3 << 30, contexts=(1024,))
    oom = measured(tmp_path, asked, changes={SDPA.backend: {"status": "oom"}})
    found = needed(asked, rows_of(asked, oom), SDPA, problem_of("prefill", 2048, 8))
    assert found.value == (2 << 30) + 1
    assert found.words == "N = 1\u202f024 ran out of 2 GiB"


class Cross(FakeShapes):
    """Layers whose queries are the context, over the 1,500 keys of an encoder."""

    def asked(self, phase, context):
        over = {"kv_seq_len": 1500, "causal": False, "causal_align": ""}
        some = super().asked(phase, context)
        return [replace(one, problem={**one.problem, **over}) for one in some]

    def input_bytes(self, problem):
        return 1000 * problem["seq_len"]


def test_a_wall_over_as_many_keys_as_an_encoder_has_counts_for_cross_attention(tmp_path: Path):
    asked = inquiry(shapes=Cross())
    wall = searched(tmp_path, asked, EAGER, 2000, 2010, memory_bytes=2_100_000, kv_seq_len=1500)
    end = longest(asked, rows_of(asked, wall), EAGER)
    assert end.context == 2000
    other = searched(tmp_path / "other", asked, EAGER, 2000, 2010, kv_seq_len=1499)
    assert longest(asked, rows_of(asked, other), EAGER).context is None


def test_bytes_of_cross_attention_follow_from_shorter_contexts(tmp_path: Path):
    asked = inquiry(shapes=Cross(), implementations=(SDPA,))
    folders = [
        measured(tmp_path / str(n), asked, (n,), {SDPA.backend: {"peak_bytes": 50 * n}})
        for n in (128, 256, 512, 1024)
    ]
    (longer, *_) = asked.shapes.asked("prefill", 2048)
    found = needed(asked, rows_of(asked, *folders), SDPA, longer.problem)
    assert found.value == (1000 + 50) * 2048
    assert found.words == "by the exact bytes measured at N = 128, 256, 512, 1\u202f024"


class Local(FakeShapes):
    """Layers that see the last 128 tokens."""

    def asked(self, phase, context):
        local = {"mask": "local", "window": 127}
        some = super().asked(phase, context)
        return [replace(one, problem={**one.problem, **local}) for one in some]


class Windowed(Local):
    """The same as a model asks for them: a context that is no longer needs no mask."""

    def asked(self, phase, context):
        return (super() if context > 128 else FakeShapes()).asked(phase, context)


def test_a_wall_with_the_window_of_the_layers_counts_beyond_the_window(tmp_path: Path):
    asked, local = inquiry(shapes=Windowed()), inquiry(shapes=Local())
    wall = searched(tmp_path, local, EAGER, 2000, 2010, memory_bytes=2_100_000)
    rows = rows_of(asked, wall)
    (beyond, *_), (within, *_) = (asked.shapes.asked("prefill", n) for n in (1999, 100))
    assert needed(asked, rows, EAGER, beyond.problem).value == 2_100_000
    assert needed(asked, rows, EAGER, within.problem).value is None


def test_a_decode_step_that_ran_out_of_memory_ends_the_context(tmp_path: Path):
    asked = inquiry(phases=("decode",), shapes=FORMULA, memory_bytes=3 << 30)
    oom = measured(tmp_path, asked, changes={SDPA.backend: {"status": "oom"}})
    end = longest(asked, rows_of(asked, oom), phase="decode")
    assert (end.context, end.limit) == (4096, "model")
    little = replace(asked, memory_bytes=2 << 30)
    end = longest(little, rows_of(little, oom), phase="decode")
    assert (end.context, end.limit) == (1023, "memory")
    assert "ran out of" in end.source


# ---- what layers keep ----------------------------------------------------------------------------

TRAINING = {"phases": ("training",), "implementations": (SDPA,)}


def trained(tmp_path: Path, *lengths: int, **changes):
    """Rows whose forward pass leaves 40 bytes a token, of 100 at the highest point."""
    asked = inquiry(**{**TRAINING, **changes})
    folders = []
    for n in lengths:
        sizes = {"peak_bytes": 100 * n, "saved_bytes": 40 * n, "workspace_bytes": 8}
        folders.append(measured(tmp_path / str(n), asked, (n,), {SDPA.backend: sizes}))
    return asked, rows_of(asked, *folders)


def test_all_layers_keep_their_inputs_and_what_the_forward_pass_leaves(tmp_path: Path):
    asked, rows = trained(tmp_path, 128, 256, 512, 1024)
    need = Memory(inquiry=asked, rows=rows).need(SDPA, "training", 2048)
    assert need.cache_bytes == 0
    assert need.kept_bytes == 5 * (1000 + 40) * 2048
    assert need.attention_bytes == (100 - 40) * 2048 + 8
    assert need.total_bytes == 10_000 + need.kept_bytes + need.attention_bytes
    end = longest(asked, rows, phase="training")
    assert end.context == (4_000_000 - 10_000 - 8) // (5 * 1040 + 60)
    assert (end.limit, end.at_least) == ("memory", False)
    bound = trained(tmp_path / "one", 512)[1]  # a longer length bounds what a layer keeps
    end = longest(asked, bound, phase="training")
    assert (end.context, end.limit, end.at_least) == (512, "unknown", True)
    need = Memory(inquiry=asked, rows=bound).need(SDPA, "training", 100)
    assert (need.at_most, need.kept_bytes) == (True, 5 * (100_000 + 40 * 512))
