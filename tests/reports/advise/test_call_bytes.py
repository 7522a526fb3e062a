"""Bytes of a call at any length, and what longer ones that ran, or ran out of memory, say."""

from dataclasses import replace
from pathlib import Path

from attnbench.reports.advise.memory import CallBytes, Memory
from tests.reports.fake_advice import (
    FLEX,
    SDPA,
    FakeShapes,
    inquiry,
    measured,
    problem_of,
    rows_of,
)

FORMULA = FakeShapes(formulas={"hf:sdpa": 7})  # with the inputs, 1,007 bytes a token


def needed(asked, rows, implementation, problem):
    return CallBytes(asked, rows, implementation, problem).needed(problem)


def longest(asked, rows, implementation=SDPA, phase="prefill"):
    return Memory(inquiry=asked, rows=rows).longest(implementation, phase)


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


def test_a_case_that_ran_out_of_memory_says_what_longer_ones_need(tmp_path: Path):
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
