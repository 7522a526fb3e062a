"""Advice in words: nothing is claimed that is not decided, and what is not known is said."""

from dataclasses import replace
from pathlib import Path

from attnbench.reports.advice.answer import advise
from attnbench.reports.advice.stored import StoredRows
from attnbench.reports.pages.advice.sentences import (
    decision_sentence,
    headline,
    longest_sentence,
    measure_command,
    run_commands,
    sentences,
)
from attnbench.reports.pages.advice.tables import about, choice_tables
from tests.reports.fake_advice import (
    EAGER,
    FLEX,
    SDPA,
    FakeShapes,
    inquiry,
    measured,
    rows_of,
    searched,
)

SLOW = {"hf:eager": {"speed": 8.0}}


def advice_of(folder: Path, **changes):
    asked = inquiry(**{"implementations": (EAGER, SDPA), **changes})
    return advise(asked, rows_of(asked, measured(folder, asked, changes=SLOW)))


def test_a_clear_winner_is_named_with_what_it_beats(tmp_path: Path):
    assert headline(advice_of(tmp_path)) == (
        'Use attn_implementation="sdpa" for prefill of 1,024 tokens (faster than eager).'
    )


def test_a_tie_is_no_victory(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked)))
    end = "for prefill of 1,024 tokens (undecided: sdpa may be as fast or faster)."
    assert headline(advice).endswith(end)
    (table,) = choice_tables(advice)
    assert [row[3] for row in table.rows] == ["fastest seen", "undecided"]
    assert advice.is_doubtful


def test_beside_a_clear_loser_what_is_undecided_is_said(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA, FLEX))
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked, changes=SLOW)))
    assert "(faster than eager; undecided against " in headline(advice)


def test_times_that_other_work_disturbed_come_with_a_caution(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    calm = advice_of(tmp_path / "calm")
    assert not any("competed" in one for one in sentences(calm))
    assert not calm.is_doubtful
    disturbed = {"hf:eager": {"speed": 8.0}, "hf:sdpa": {"contended_blocks": 8}}
    folder = measured(tmp_path / "busy", asked, changes=disturbed)
    busy = advise(asked, rows_of(asked, folder))
    (caution,) = [one for one in sentences(busy) if "competed" in one]
    kinds = len(asked.shapes.asked("prefill", 1024))
    assert f"in most blocks of {kinds} of these {2 * kinds} times: measure again" in caution
    assert busy.is_doubtful


def test_without_rows_the_headline_says_that_nothing_is_measured():
    advice = advise(inquiry(), StoredRows())
    assert headline(advice).startswith("Nothing is measured yet for mine on this device")


def test_a_model_without_measurable_attention_says_so():
    class Nothing(FakeShapes):
        def asked(self, phase, context):
            return [one for one in super().asked(phase, context) if one.problem is None]

    advice = advise(inquiry(shapes=Nothing(strange=True)), StoredRows())
    assert headline(advice) == "mine has no attention here that attnbench can measure."
    assert "Not measured: 1 layer of latent: has latent heads." in list(sentences(advice))


def test_a_decision_names_times_with_intervals_kernels_and_ratios(tmp_path: Path):
    (decision,) = advice_of(tmp_path).decisions
    text = decision_sentence(decision)
    assert text.startswith("Prefill of 1,024 tokens: sdpa (kernel hf:sdpa kernel) takes ")
    assert " in 5 layers; eager (kernel hf:eager kernel) takes " in text
    assert text.count(" to ") == 2


def test_memory_is_added_up_and_compared_with_the_budget(tmp_path: Path):
    advice = advice_of(tmp_path)
    (said,) = [one for one in sentences(advice) if one.startswith("Memory for")]
    assert "weights 9.8 KiB, keys and values 100 KiB (200 KiB in an engine" in said
    ((_, _, need),) = advice.needs
    assert need.total is not None
    assert said.endswith(
        f"which {'fits' if need.total <= 4_000_000 else 'does not fit'} in 3.8 MiB."
    )


def test_contexts_that_are_equal_stand_together_and_unknown_ones_last():
    shapes = FakeShapes(formulas={"hf:sdpa": 7, "hf:eager": 7})
    advice = advise(inquiry(shapes=shapes), StoredRows())
    assert longest_sentence(advice.longest) == (
        "3,604 tokens with eager and sdpa (memory is the limit); not known for flex_attention."
    )


def test_what_is_missing_comes_with_the_command_that_measures_it(tmp_path: Path):
    asked = inquiry(implementations=(SDPA, FLEX), arguments=["./my model", "--context", "1k"])
    folder = measured(tmp_path, asked, implementations=(SDPA,))
    advice = advise(asked, rows_of(asked, folder))
    assert measure_command(advice) == "attnbench advise './my model' --context 1k --measure"
    assert f"To measure what is missing: {measure_command(advice)}" in list(sentences(advice))


def test_commands_measure_every_question_again(tmp_path: Path):
    (command,) = run_commands(advice_of(tmp_path, tp=2))
    assert command == (
        "attnbench run --model ./mine --phase prefill --seq-len 1024 --batch 1 --dtype fp32 --tp 2"
        " --backends hf:eager,hf:sdpa --device cpu"
    )


def test_own_backends_that_stand_for_transformers_functions_are_named():
    own = (replace(EAGER, backend="fused", own=True),)
    advice = advise(inquiry(implementations=own), StoredRows())
    assert any("transformers is not installed" in one for one in sentences(advice))
    assert any("(fused for eager)" in one for one in sentences(advice))


def test_weights_that_are_not_known_are_said_to_come_on_top():
    advice = advise(inquiry(weight_bytes=None, others={"mamba": 3}), StoredRows())
    said = list(sentences(advice))
    assert any("weights are not known and come on top" in one for one in said)
    assert "Not measured: 3 layers of mamba, which is no softmax attention." in said


def test_decode_is_judged_by_bandwidth_and_says_what_is_lacking(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), phases=("decode",))
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked)))
    said = list(sentences(advice))
    assert "B/s (" in said[0]
    assert any("attnbench doctor --calibrate" in one for one in said)


def test_prefill_has_no_bandwidth(tmp_path: Path):
    assert "B/s" not in " ".join(sentences(advice_of(tmp_path)))


def test_one_that_was_seen_to_take_longer_is_not_advised_for_both_phases(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA), phases=("prefill", "decode"))
    prefill = inquiry(implementations=(EAGER, SDPA))
    decode = inquiry(implementations=(EAGER, SDPA), phases=("decode",))
    folders = (
        measured(tmp_path / "a", prefill, changes=SLOW),
        measured(tmp_path / "b", decode, changes={"hf:sdpa": {"speed": 8.0}}),
    )
    said = headline(advise(asked, rows_of(asked, *folders)))
    assert said == (
        'Use attn_implementation="sdpa" for prefill of 1,024 tokens (faster than eager);'
        ' "eager" for decode after 1,024 tokens (faster than sdpa).'
    )


def test_what_fits_is_beside_the_weights_where_those_are_not_known():
    shapes = FakeShapes(formulas={"hf:sdpa": 7})
    unknown = " ".join(sentences(advise(inquiry(shapes=shapes, weight_bytes=None), StoredRows())))
    assert "fits in 3.8 MiB beside the weights" in unknown
    assert "Longest context in 3.8 MiB beside the weights, prefilled at once" in unknown
    known = " ".join(sentences(advise(inquiry(shapes=shapes), StoredRows())))
    assert "beside the weights" not in known


def test_rows_without_a_time_are_called_so(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked, changes={"hf:sdpa": {"block_ms": None}})
    advice = advise(asked, rows_of(asked, folder))
    assert headline(advice) == (
        "No time is measured yet for mine on this device: what follows is about bytes."
    )
    assert "; rows of 1 run, without a time; " in about(advice)


def test_a_limit_of_time_is_said_with_the_time_that_is_taken(tmp_path: Path):
    lengths = (128, 256, 512, 1024, 2048)
    asked = inquiry(
        implementations=(SDPA,),
        shapes=FakeShapes(formulas={"hf:sdpa": 7}),
        max_seconds={"prefill": 0.001},
        memory_bytes=1 << 30,
    )
    said = " ".join(sentences(advise(asked, rows_of(asked, measured(tmp_path, asked, lengths)))))
    assert "Longest context in 1 GiB and 0.001 s of attention, prefilled at once: " in said
    assert "tokens with sdpa (time is the limit: it takes " in said


def test_a_wall_that_decides_is_said_beside_what_the_bytes_say(tmp_path: Path):
    asked = inquiry(shapes=FakeShapes(formulas={"hf:sdpa": 7}), memory_bytes=1_600_000)
    wall = searched(tmp_path, asked, SDPA, 1190, 1200, memory_bytes=1_500_000)
    said = " ".join(sentences(advise(asked, rows_of(asked, wall))))
    assert "1,199 tokens with sdpa (memory is the limit, by a wall that was found)" in said
    assert "The wall of sdpa: a search found that one layer's call fits into 1.4 MiB at N" in said


def test_training_says_what_layers_keep_in_place_of_a_cache(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), phases=("training",), memory_bytes=1 << 30)
    kept = {"hf:sdpa": {"saved_bytes": 40 * 1024}}
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked, changes=kept)))
    said = " ".join(sentences(advice))
    assert "Memory for a training step on 1,024 tokens: weights 9.8 KiB, kept for the" in said
    assert "keys and values" not in said
    assert "in training: At least 1,024 tokens with sdpa (nothing is known beyond)" in said


def test_a_context_that_follows_from_a_bound_is_at_least_that_long():
    class Bounded(FakeShapes):
        def predicted_peak(self, implementation, problem):
            return replace(super().predicted_peak(implementation, problem), at_most=True)

    advice = advise(inquiry(shapes=Bounded(formulas={"hf:sdpa": 7})), StoredRows())
    assert longest_sentence(advice.longest).startswith("At least 3,604 tokens with sdpa (memory")
