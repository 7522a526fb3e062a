"""Which rows count: this device, this torch, the same problem; the newest first."""

from pathlib import Path

from attnbench.reports.advice.asked import key, key_over
from attnbench.reports.advice.stored import Device, stored_rows
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


def test_another_processor_torch_or_kind_of_device_does_not_count(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked)
    problem = problem_of("prefill", 1024, 8)
    for other in (
        Device(kind="cpu", facts={"cpu": "Imaginary CPU 9000", "torch": "2.16.0"}),
        Device(kind="cpu", facts={"cpu": "Another CPU", "torch": "2.15.0"}),
        Device(kind="cuda", facts={"torch": "2.15.0"}),
    ):
        assert not stored_rows([folder], other, [problem], ["hf:sdpa"]).of(problem)
    assert stored_rows([folder], HERE, [problem], ["hf:sdpa"]).of(problem)


def test_a_run_without_anything_wanted_is_not_read(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked)
    (folder / "rows.jsonl").write_text("this is no JSON\n")
    rows = stored_rows([folder], HERE, [problem_of("prefill", 1024, 3)], ["hf:sdpa"])
    assert not rows.notes
    rows = stored_rows([folder], HERE, [problem_of("prefill", 1024, 8)], ["hf:sdpa"])
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
