"""Which rows count: this device, this torch, the same problem; the newest first."""

from dataclasses import replace
from pathlib import Path

from attnbench.reports.advise.asked import key, key_of_wall, key_over, length
from attnbench.reports.advise.stored import Device, stored_rows
from tests.reports.fake_advice import HERE, SDPA, inquiry, measured, problem_of, rows_of


def latency(rows, problem) -> float | None:
    found = rows.of(problem).get("hf:sdpa")
    return found.row["block_ms"][0][0][0] if found else None


def test_d_model_does_not_make_another_problem_but_heads_do():
    one = problem_of("prefill", 1024, 8)
    assert key(one) == key({**one, "d_model": 999})
    assert key(one) != key({**one, "heads": 4})


def test_a_row_without_a_mask_has_none():
    one = problem_of("prefill", 1024, 8)
    old = {name: value for name, value in one.items() if name not in ("mask", "window")}
    assert key(old) == key(one)


def test_square_problems_and_single_queries_have_lengths_of_their_own():
    prefill, decode = problem_of("prefill", 1024, 8), problem_of("decode", 1024, 8)
    assert key_over(prefill) == key_over(problem_of("prefill", 64, 8))
    assert key_over(decode) == key_over(problem_of("decode", 64, 8))
    assert key_over({**decode, "causal_align": "top_left"}) != key_over(prefill)


def test_the_context_is_of_queries_where_the_keys_are_those_of_an_encoder():
    few, more = ({**problem_of("prefill", n, 8), "kv_seq_len": 1500} for n in (64, 448))
    assert (length(few), length(more)) == (64, 448)
    assert key_over(few) == key_over(more)
    assert key_over(few) != key_over({**few, "kv_seq_len": 1501})


def test_a_wall_is_about_its_own_mask_window_and_fixed_keys_and_none_is_about_decoding():
    square, decode = problem_of("prefill", 1024, 8), problem_of("decode", 1024, 8)
    windowed = {**square, "mask": "local", "window": 127}
    cross = {**square, "kv_seq_len": 1500}
    problems = (square, windowed, cross, decode)
    for about in (square, windowed, cross):
        wall = {**about, "kv_seq_len": 1500 if about is cross else None}
        del wall["seq_len"]
        assert [key_of_wall(wall) == key_over(one) for one in problems] == [
            one is about for one in problems
        ]


def test_the_newest_row_counts(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    new = measured(tmp_path / "new", asked, changes={"hf:sdpa": {"speed": 2.0}})
    old = measured(tmp_path / "old", asked)
    problem = problem_of("prefill", 1024, 8)
    newest, first = (
        latency(rows_of(asked, new, old), problem),
        latency(rows_of(asked, old), problem),
    )
    assert newest is not None
    assert first is not None
    assert newest == 2 * first


def test_a_row_without_a_time_counts_only_where_there_is_no_other(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    bytes_only = measured(tmp_path / "bytes", asked, changes={"hf:sdpa": {"block_ms": None}})
    timed = measured(tmp_path / "timed", asked)
    problem = problem_of("prefill", 1024, 8)
    both = rows_of(asked, bytes_only, timed)
    assert latency(both, problem) == latency(rows_of(asked, timed), problem)
    assert [one.run.path for one in both.over_lengths(problem, "hf:sdpa")] == [timed]
    (only,) = rows_of(asked, bytes_only).over_lengths(problem, "hf:sdpa")
    assert only.row["block_ms"] is None


def test_another_processor_torch_or_kind_of_device_does_not_count(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked)
    problem = problem_of("prefill", 1024, 8)
    for other in (
        Device(kind="cpu", facts={"cpu": "Imaginary CPU 9000", "torch": "2.16.0"}),
        Device(kind="cpu", facts={"cpu": "Another CPU", "torch": "2.15.0"}),
        Device(kind="cuda", facts={"torch": "2.15.0"}),
    ):
        assert not stored_rows([folder], other, [problem], [SDPA]).of(problem)
    assert stored_rows([folder], HERE, [problem], [SDPA]).of(problem)


def test_a_run_without_anything_wanted_is_not_read(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked)
    (folder / "rows.jsonl").write_text("this is no JSON\n")
    rows = stored_rows([folder], HERE, [problem_of("prefill", 1024, 3)], [SDPA])
    assert not rows.notes
    rows = stored_rows([folder], HERE, [problem_of("prefill", 1024, 8)], [SDPA])
    assert "rows.jsonl" in rows.notes[0]


def test_a_court_an_environment_and_what_was_interrupted_do_not_count(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    problem = problem_of("prefill", 1024, 8)
    folders = [
        measured(tmp_path / "court", asked, court=True),
        measured(tmp_path / "python", asked, changes={"hf:sdpa": {"python": "old"}}),
        measured(tmp_path / "cut", asked, changes={"hf:sdpa": {"status": "interrupted"}}),
    ]
    assert not rows_of(asked, *folders).of(problem)


def test_rows_of_inputs_in_another_order_are_left_out_and_said_to_be(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    problem = problem_of("prefill", 1024, 8)
    old = measured(tmp_path / "old", asked, changes={"hf:sdpa": {"input_order": None}})
    found = rows_of(asked, old)
    assert not found.of(problem)
    assert found.notes[-1].startswith("left out: 2 rows of an earlier version")
    both = rows_of(asked, measured(tmp_path / "new", asked), old)
    assert latency(both, problem) is not None
    assert not both.notes


def test_what_cannot_run_cannot_whatever_the_order_of_its_inputs(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    changes = {"hf:sdpa": {"status": "unsupported", "input_order": None}}
    rows = rows_of(asked, measured(tmp_path, asked, changes=changes))
    assert rows.of(problem_of("prefill", 1024, 8))["hf:sdpa"].row["status"] == "unsupported"


def test_our_own_backends_have_their_inputs_head_by_head(tmp_path: Path):
    own = replace(SDPA, backend="sdpa", own=True)
    asked = inquiry(implementations=(own,))
    problem = problem_of("prefill", 1024, 8)
    for order, counts in ((None, True), ("heads", True), ("model", False)):
        folder = measured(tmp_path / str(order), asked, changes={"sdpa": {"input_order": order}})
        assert bool(rows_of(asked, folder).of(problem)) == counts
