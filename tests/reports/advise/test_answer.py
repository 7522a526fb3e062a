"""The whole answer: what is advised, traps, what is missing, and what a longer run may decide."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.advise.answer import Advice, advise, close_choices
from attnbench.reports.advise.sentences import beside_tables, headline, use
from attnbench.reports.advise.stored import StoredRows
from attnbench.reports.advise.tables import blocks
from attnbench.reports.elements import Table
from tests.reports.fake_advice import EAGER, FLEX, SDPA, FakeShapes, inquiry, measured, rows_of

SLOW = {"hf:eager": {"speed": 8.0}}
ASKED = inquiry(implementations=(EAGER, SDPA))


def answered(folder: Path, changes=SLOW) -> Advice:
    return advise(ASKED, rows_of(ASKED, measured(folder, ASKED, changes=changes)))


def test_sdpa_on_the_kernel_math_is_a_trap_with_its_likely_reasons(tmp_path: Path):
    advice = answered(tmp_path, SLOW | {"hf:sdpa": {"kernel": "math"}})
    assert len(advice.traps) == 2
    assert "writes all scores; it is fp32" in advice.traps[0]
    assert answered(tmp_path / "fine").traps == []


def test_where_sdpa_cannot_serve_the_cost_of_what_serves_instead_is_told(tmp_path: Path):
    refused = {"hf:sdpa": {"status": "unsupported", "reason": "it has no softcap"}}
    asked = inquiry(implementations=(EAGER, SDPA, FLEX))
    for flex, said in ((0.125, ["sdpa cannot serve prefill: it has no softcap."]), (9.0, [])):
        changes = refused | {"hf:flex_attention": {"speed": flex}}
        rows = rows_of(asked, measured(tmp_path / str(flex), asked, changes=changes))
        found = advise(asked, rows).fallbacks
        assert [one[: len(said[0])] for one in found] == said
        for one in found:
            slower, of = one.split(" times the time of ")
            assert float(slower.rpartition("takes eager, ")[2]) == pytest.approx(8, rel=0.05)
            assert of == "flex_attention in all layers"
    assert answered(tmp_path / "served").fallbacks == []


def test_a_tie_is_no_victory_and_worth_a_longer_run(tmp_path: Path):
    advice = answered(tmp_path, {})
    end = "for prefill of 1\u202f024 tokens (not confirmed: sdpa may be as fast or faster)."
    assert headline(advice).endswith(end)
    table = next(blocks(advice))
    assert [row[3] for row in table.rows] == ["fastest seen", "seen here, not confirmed"]
    assert advice.is_doubtful
    assert len(close_choices(advice.decisions[0])) == 2


def test_times_that_other_work_disturbed_come_with_a_caution(tmp_path: Path):
    busy = answered(tmp_path / "busy", SLOW | {"hf:sdpa": {"contended_blocks": 8}})
    (caution,) = [one for one in beside_tables(busy) if "competed" in one]
    assert "in most blocks of 2 of these 4 times: measure again" in caution
    assert busy.is_doubtful
    conditions = [[{"processor_ms": 2.0}] * 4] * 4
    known = SLOW | {"hf:sdpa": {"contended_blocks": 8, "conditions": conditions}}
    table = next(blocks(answered(tmp_path / "known", known)))
    times = {name.cell: time.cell for name, time, *_ in table.rows}
    assert times["sdpa"].endswith(", processor 10.0 ms")  # of five layers
    assert "processor" not in times["eager"]
    assert not any("competed" in one for one in beside_tables(answered(tmp_path / "calm")))


def test_one_that_was_seen_to_take_longer_is_not_advised_for_both_phases(tmp_path: Path):
    prefill, decode, both = (
        inquiry(implementations=(EAGER, SDPA), phases=phases)
        for phases in (("prefill",), ("decode",), ("prefill", "decode"))
    )
    folders = (
        measured(tmp_path / "a", prefill, changes=SLOW),
        measured(tmp_path / "b", decode, changes={"hf:sdpa": {"speed": 8.0}}),
    )
    assert use(advise(both, rows_of(both, *folders))) == (
        'Use attn_implementation="sdpa" for prefill of 1\u202f024 tokens (faster than eager);'
        ' "eager" for decode after 1\u202f024 tokens (faster than sdpa).'
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {},
            "3.8 MiB - 9.8 KiB of weights in fp32 = 3.8 MiB -> 3\u202f604 tokens of prefill with"
            " sdpa (memory is the limit).",
        ),
        (
            {"weight_bytes": 9_000_000},
            "The weights, 8.6 MiB in fp32, do not fit in 3.8 MiB: they alone take 3 devices of"
            " 3.8 MiB.",
        ),
        (
            {"weight_bytes": 5_000_000, "tp": 2, "weights_in": "in gptq"},
            "The weights, 4.8 MiB in gptq, on each of 2 devices, do not fit in 3.8 MiB: they alone"
            " take 3 devices of 3.8 MiB.",
        ),
        (
            {"weight_bytes": None},
            "3.8 MiB - weights of unknown size; without them -> 3\u202f613 tokens of prefill with"
            " sdpa (memory is the limit).",
        ),
        (
            {"weight_bytes": None, "beside_weights": True, "shapes": FakeShapes()},
            "3.8 MiB beside the weights -> no longest context is known for prefill.",
        ),
        ({"memory_bytes": None}, "How much memory there is is not known: give --memory-gib."),
    ],
)
def test_the_first_sentence_says_whether_the_model_fits(changes: dict[str, Any], said: str):
    shapes = FakeShapes(formulas={"hf:sdpa": 7})
    asked = inquiry(**{"shapes": shapes, "implementations": (EAGER, SDPA), **changes})
    assert headline(advise(asked, StoredRows())).startswith(said)


def test_what_is_not_known_of_weights_and_their_dtype_is_said():
    unknown = inquiry(weight_bytes=None, weights_words="vocab_size is not given")
    guess = inquiry(dtype_guess="config.json has no dtype")
    for asked, said in ((unknown, "vocab_size is not given"), (guess, "is a guess: config.json")):
        told = " ".join(beside_tables(advise(asked, StoredRows())))
        assert said in told


def titles_and_rows(**changes: Any) -> dict[str, tuple[tuple[Any, ...], ...]]:
    advice = advise(inquiry(phases=("prefill", "decode"), **changes), StoredRows())
    return {one.title: one.rows for one in blocks(advice) if isinstance(one, Table)}


def test_no_longest_context_is_told_where_the_weights_do_not_fit():
    assert list(titles_and_rows(memory_bytes=9_999)) == ["Memory of 9.8 KiB"]


def test_phases_of_which_the_same_is_said_share_a_row():
    shapes = FakeShapes(formulas={"hf:eager": 40})
    told = next(iter(titles_and_rows(implementations=(EAGER, SDPA), shapes=shapes).values()))
    assert [(name, phase) for name, phase, *_ in told] == [
        ("eager", "prefill, decode"),
        ("sdpa", "prefill, decode"),
    ]


@pytest.mark.parametrize(
    ("device", "copies", "said"),
    [
        ("cpu", {}, "caches may"),
        ("cpu", dict.fromkeys(("hf:eager", "hf:sdpa", "hf:flex_attention"), 4), "from memory"),
        ("cuda", {}, "L2 was flushed"),
    ],
)
def test_decode_says_what_its_calls_found_in_caches(
    tmp_path: Path, device: str, copies: dict[str, int], said: str
):
    asked = replace(ASKED, phases=("decode",))
    changes = {backend: {"kv_copies": count} for backend, count in copies.items()}
    rows = rows_of(asked, measured(tmp_path, asked, changes=changes))
    (found,) = (
        one
        for one in beside_tables(advise(replace(asked, device=device), rows))
        if one.startswith("Decode on a")
    )
    assert said in found
