"""Which rows count: this device, this torch, the same problem; the newest first."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.reports.advise.asked import key, key_over, length
from attnbench.reports.advise.stored import Device, is_warm, stored_rows
from tests.reports.fake_advice import EAGER, HERE, SDPA, inquiry, measured, problem_of, rows_of

PREFILL, DECODE = problem_of("prefill", 1024, 8), problem_of("decode", 1024, 8)
CROSS = {**PREFILL, "kv_seq_len": 1500}
ASKED = inquiry(implementations=(SDPA,))


def latency(rows) -> float | None:
    found = rows.of(PREFILL).get("hf:sdpa")
    return found.row["block_ms"][0][0][0] if found else None


def of(folder: Path, **changes) -> Path:
    """A run of a row with these changes."""
    return measured(folder, ASKED, changes={"hf:sdpa": changes})


def test_problems_are_one_where_they_are_the_same_computation():
    assert key(PREFILL) == key({**PREFILL, "d_model": 999}) != key({**PREFILL, "heads": 4})
    old = {name: value for name, value in PREFILL.items() if name not in ("mask", "window")}
    assert key(old) == key(PREFILL)


def test_lengths_are_of_queries_and_keys_alike_unless_one_of_them_is_fixed():
    assert key_over(PREFILL) == key_over(problem_of("prefill", 64, 8))
    assert key_over(DECODE) == key_over(problem_of("decode", 64, 8))
    assert key_over({**DECODE, "causal_align": "top_left"}) != key_over(PREFILL)
    few = {**CROSS, "seq_len": 64}
    assert (length(few), length(CROSS)) == (64, 1024)
    assert key_over(few) == key_over(CROSS) != key_over({**few, "kv_seq_len": 1501})


def test_another_processor_torch_or_kind_of_device_does_not_count(tmp_path: Path):
    folder = measured(tmp_path, ASKED)
    for other in (
        Device(kind="cpu", facts={"cpu": "Imaginary CPU 9000", "torch": "2.16.0"}),
        Device(kind="cpu", facts={"cpu": "Another CPU", "torch": "2.15.0"}),
        Device(kind="cuda", facts={"torch": "2.15.0"}),
    ):
        assert not stored_rows([folder], other, [PREFILL], [SDPA]).of(PREFILL)
    assert stored_rows([folder], HERE, [PREFILL], [SDPA]).of(PREFILL)


def test_calls_that_read_keys_from_memory_come_before_newer_ones_that_may_not(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA), phases=("decode",))
    cold = {"hf:sdpa": {"kv_copies": 4}}
    newest = measured(tmp_path / "newest", asked)
    lacking = {"hf:sdpa": {"status": "unsupported", "reason": "keeps its keys"}}
    folders = [newest, measured(tmp_path / "cold", asked, changes=cold)]
    found = stored_rows(folders, HERE, [DECODE], asked.implementations).of(DECODE)
    assert {name: one.row.get("kv_copies") for name, one in found.items()} == {"hf:sdpa": 4}
    warm = stored_rows([newest], HERE, [DECODE], asked.implementations).of(DECODE)
    assert sorted(warm) == ["hf:eager", "hf:sdpa"], "better than none"
    refused = measured(tmp_path / "refused", asked, changes=lacking)
    found = stored_rows([newest, refused], HERE, [DECODE], asked.implementations).of(DECODE)
    assert found["hf:sdpa"].row["status"] == "ok"


def test_of_prefill_and_on_a_gpu_no_call_is_taken_for_one_that_reads_from_caches(tmp_path: Path):
    row = {**DECODE, "status": "ok", "device": "cpu", "block_ms": [[[1.0]]]}
    assert is_warm(row)
    changes = [{**PREFILL}, {"device": "cuda"}, {"kv_copies": 2}, {"block_ms": None}]
    assert not any(is_warm({**row, **one}) for one in changes)


def test_a_run_without_anything_wanted_is_not_read(tmp_path: Path):
    folder = measured(tmp_path, ASKED)
    (folder / "rows.jsonl").write_text("this is no JSON\n")
    rows = stored_rows([folder], HERE, [problem_of("prefill", 1024, 3)], [SDPA])
    assert not rows.notes
    rows = stored_rows([folder], HERE, [PREFILL], [SDPA])
    assert "rows.jsonl" in rows.notes[0]


def test_the_newest_row_with_a_time_counts(tmp_path: Path):
    new, old = of(tmp_path / "new", speed=2.0), of(tmp_path / "old")
    bytes_only = of(tmp_path / "bytes", block_ms=None)
    time_ms = latency(rows_of(ASKED, old))
    assert latency(rows_of(ASKED, new, old)) == 2 * time_ms
    both = rows_of(ASKED, bytes_only, old)
    assert latency(both) == time_ms
    assert [one.run.path for one in both.over_lengths(PREFILL, "hf:sdpa").values()] == [old]
    (only,) = rows_of(ASKED, bytes_only).over_lengths(PREFILL, "hf:sdpa").values()
    assert only.row["block_ms"] is None


def test_a_court_an_environment_and_what_was_interrupted_do_not_count(tmp_path: Path):
    court = measured(tmp_path / "court", ASKED, court=True)
    others = of(tmp_path / "python", python="old"), of(tmp_path / "cut", status="interrupted")
    assert not rows_of(ASKED, court, *others).of(PREFILL)
    cut = of(tmp_path / "of now", status="interrupted", input_order=None)
    assert not rows_of(ASKED, cut).notes, "nothing here is of an earlier version"


def test_rows_of_inputs_in_another_order_are_left_out_and_said_to_be(tmp_path: Path):
    old = of(tmp_path / "old", input_order=None)
    found = rows_of(ASKED, old)
    assert not found.of(PREFILL)
    assert found.notes[-1].startswith("left out: 2 rows of an earlier version")
    both = rows_of(ASKED, of(tmp_path / "new"), old)
    assert latency(both) is not None
    assert not both.notes
    # what cannot run cannot, whatever the order of its inputs
    never = rows_of(ASKED, of(tmp_path / "never", status="unsupported", input_order=None))
    assert never.of(PREFILL)["hf:sdpa"].row["status"] == "unsupported"


@pytest.mark.parametrize(("order", "counts"), [(None, True), ("heads", True), ("model", False)])
def test_our_own_backends_have_their_inputs_head_by_head(tmp_path: Path, order, counts):
    own = inquiry(implementations=(replace(SDPA, backend="sdpa", own=True),))
    folder = measured(tmp_path, own, changes={"sdpa": {"input_order": order}})
    assert bool(rows_of(own, folder).of(PREFILL)) == counts
