"""reports/cards/heads.py: one common N, one word per cell, counts said once."""

from pathlib import Path

from attnbench.reports.cards import heads
from attnbench.reports.elements import Card, DotPlot
from tests.reports.fake_contrasts import pruning
from tests.reports.fake_runs import case, grid, head_sweep, problem, quickstart, row, write_run
from tests.reports.rendering import card_of


def heads_card(*runs: Path) -> Card:
    found = card_of(heads, *runs)
    assert found is not None
    return found


def words(found: Card) -> dict[tuple[str, str], str]:
    assert isinstance(found.picture, DotPlot)
    return {
        (one.group, one.label): one.dot.word if one.dot else one.missing
        for one in found.picture.rows
    }


def test_counts_that_are_equal_for_all_backends_have_one_row(tmp_path: Path) -> None:
    found = heads_card(quickstart(tmp_path, lengths=(256, 512, 1024)))
    assert words(found)["FLOPs", "all"] == "same"
    assert words(found)["Exponentials", "all"] == "more"
    assert found.sentence.startswith("Same FLOPs, 8 times the softmax exponentials.")


def test_peak_memory_is_counted_per_backend(tmp_path: Path) -> None:
    found = words(heads_card(quickstart(tmp_path, lengths=(256, 512, 1024))))
    assert found["Peak memory", "fused"] == "more"
    assert found["Peak memory", "sdpa"] == "same"


def test_one_process_leaves_the_time_undecided_and_the_note_says_why(tmp_path: Path) -> None:
    found = heads_card(quickstart(tmp_path, lengths=(256, 512, 1024)))
    assert words(found)["Time", "fused"] == "undecided"
    assert "Undecided: the interval allows for" in found.note


def test_the_common_n_is_the_longest_at_which_every_backend_ran_with_both(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (256, 512, 1024), heads=(1, 8))
    rows = [
        row(one, "oom" if one["backend"] == "fused" and one["seq_len"] == 1024 else "ok")
        for one in cases
    ]
    found = heads_card(write_run(tmp_path, cases, rows))
    assert "N\u00a0=\u00a0512" in found.subtitle


def test_a_backend_without_a_pair_there_says_so(tmp_path: Path) -> None:
    cases = [
        *grid(("fused", "sdpa"), (512,), heads=(1, 8)),
        *grid(("naive",), (256,), heads=(1, 8)),
    ]
    found = words(heads_card(write_run(tmp_path, cases, [row(one) for one in cases])))
    assert (found["Time", "naive"], found["Peak memory", "naive"]) == ("no pair", "no pair")


def test_of_many_heads_the_most_that_every_backend_ran_count(tmp_path: Path) -> None:
    """fused with 64 heads is out of memory."""
    assert heads_card(head_sweep(tmp_path)).title == "32 heads against one"


def test_older_rows_have_no_exponentials(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (256,), heads=(1, 8))
    rows = [{key: v for key, v in row(one).items() if key != "work_exps"} for one in cases]
    found = heads_card(write_run(tmp_path, cases, rows))
    assert not any(group == "Exponentials" for group, _ in words(found))
    assert found.sentence.startswith("Same FLOPs.")


def test_one_number_of_heads_has_no_card(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (256, 512))
    assert card_of(heads, write_run(tmp_path, cases, [row(one) for one in cases])) is None


def test_runs_in_which_everything_failed_have_no_card(tmp_path: Path) -> None:
    cases = [case("fused", problem(256, h)) for h in (1, 8)]
    run = write_run(tmp_path, cases, [row(one, "crashed") for one in cases])
    assert card_of(heads, run) is None


def test_removed_heads_of_a_given_width_are_left_to_their_contrast(tmp_path: Path) -> None:
    assert card_of(heads, pruning(tmp_path)) is None
