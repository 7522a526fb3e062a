"""What approximates attention, or is none, is told with its mark and its error, and wins
nothing.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import approximate, recurrence, speed
from attnbench.reports.sections._badges import badges
from attnbench.reports.analysis.claims.ledger.ledger import ledger
from attnbench.reports.analysis.winner_map import winner_map
from attnbench.reports.analysis.crossover import overtaking
from attnbench.reports.analysis.speedup import baseline, finding, speed_ups
from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.data.exactness import note
from attnbench.reports.data.load import frame, load
from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.data.row_groups import Row, groups, records
from attnbench.reports.pages.exactness_marks import marked, marked_names
from attnbench.reports.elements import Block, Figure, Table, Text
from attnbench.reports.pages import terminal_summary as closing
from tests.reports.rendering import page_of
from attnbench.reports.sections import approximate as approximate_section
from attnbench.reports.sections import correctness, summary
from attnbench.reports.sections import recurrence as recurrence_section

from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.fake_inexact import LENGTHS, inexact, layer, made


def rows_of(run: Path) -> list[Row]:
    return records(frame([read_run(run)]))


def blocks_of(section: Any, run: Path) -> list[Block]:
    read = read_run(run)
    return list(section.render(frame([read]), run_meta([read])))


def said(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


# ---- ranking -------------------------------------------------------------------------------------


def test_what_is_not_exact_wins_no_race_and_is_told_beside_it(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path))
    (group,) = groups(rows, "seq_len")
    words = speed.finding(group)
    assert words.startswith("sdpa is fastest at N\u00a0=\u00a04k: ")
    assert re.search(
        r"; linformer:64 \(approximate, error 34 %\) takes 0\.2\d times as long as sdpa$", words
    )
    assert {cell.winner for cell in winner_map(rows)} == {"sdpa"}
    assert {cell.runner_up for cell in winner_map(rows)} == {"fused"}


def test_what_is_slower_than_the_fastest_is_not_told_of(tmp_path: Path) -> None:
    (group,) = groups(rows_of(inexact(tmp_path, lengths=(256, 512))), "seq_len")
    assert "approximate" not in speed.finding(group)


def test_without_an_exact_backend_nobody_is_fastest(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("linformer", "rnn"))
    (group,) = groups(rows_of(run), "seq_len")
    assert speed.finding(group) == "no exact backend has a latency"
    assert {cell.verdict for cell in winner_map(rows_of(run))} == {"nobody"}
    table = next(block for block in blocks_of(summary, run) if isinstance(block, Table))
    assert not table.strong
    assert "fastest" not in str(table.rows)
    assert page_of(run)


def test_the_first_table_gives_the_error_and_makes_only_exact_ones_bold(tmp_path: Path) -> None:
    table = next(
        block for block in blocks_of(summary, inexact(tmp_path)) if isinstance(block, Table)
    )
    columns = dict(zip(table.columns, range(len(table.columns)), strict=True))
    assert {column for _, column in table.strong} == {columns["sdpa"]}
    assert re.fullmatch(
        r"6\.\d+ ms · 0\.\d+× · approximate, error 12 %", table.rows[-1][columns["linformer"]]
    )
    assert re.fullmatch(r"20\d ms · 1\d\.\d× · not attention", table.rows[-1][columns["rnn"]])
    assert (
        "Not ranked: ~ approximates attention, with the error that is told; ≠ computes something"
        " else" in said(blocks_of(summary, tmp_path / next(tmp_path.iterdir()).name))
    )


def test_the_baseline_is_exact_unless_the_scenario_says_otherwise(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path, backends=("linformer", "fused", "sdpa")))
    planned = {"backends": ["linformer", "fused", "sdpa"]}
    assert baseline({"scenario": planned}, rows) == "fused"
    assert baseline({"scenario": planned | {"baseline": "linformer"}}, rows) == "linformer"
    (group,) = groups(rows, "seq_len")
    words = finding(group, "fused")
    assert words.index("sdpa is") < words.index("linformer (approximate, error 12 %) is")
    assert len(speed_ups(group.rows, "fused")) == 2 * len(LENGTHS)


def test_a_note_says_what_a_row_is() -> None:
    assert (
        note({})
        == note({"exactness": "exact", "error_l2_ratio": 1e-7})
        == note({"exactness": None})
        == ""
    )
    assert note({"exactness": "approximate", "error_l2_ratio": 34.2}) == "approximate, error 3400 %"
    assert note({"exactness": "approximate", "error_l2_ratio": None}) == "approximate"
    assert note({"exactness": "other", "error_l2_ratio": None}) == "not attention"


def test_the_gate_s_badge_and_section_speak_of_exact_cases(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    (badge,) = (
        one for one in badges(rows_of(run), run_meta([read_run(run)])) if one.label == "correctness"
    )
    assert badge.state == "good"
    assert (
        badge.text
        == "Every timed exact case first passed against a float64 reference; 20 of 30 timed cases"
        " claim no exact result."
    )
    blocks = blocks_of(correctness, run)
    assert "20 cases of linformer, linformer:64, performer and rnn are not held to that" in said(
        blocks
    )
    table = next(block for block in blocks if isinstance(block, Table))
    assert [line[0] for line in table.rows] == ["fused", "sdpa"]
    (badge,) = (
        one
        for one in badges(
            [one for one in rows_of(run) if one["backend"] == "rnn"], run_meta([read_run(run)])
        )
        if one.label == "correctness"
    )
    assert (badge.state, badge.text) == ("unknown", "No timed case is exact attention.")


def test_claims_on_attention_take_no_evidence_from_what_is_none(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    claims = {claim.id: claim for claim in ledger(rows_of(run), {})}
    assert {part.of for part in claims["C2"].parts} == {"fused", "sdpa"}
    assert {part.of for part in claims["C11"].parts} == {"linformer", "linformer:64", "performer"}
    assert {part.of for part in claims["C12"].parts} == {"rnn"}


def test_a_rate_is_that_of_work_that_was_done(tmp_path: Path) -> None:
    table = load(inexact(tmp_path))
    known = table.groupby("exactness")["achieved_flops_per_s"].agg(
        lambda column: column.notna().all() if column.notna().any() else None
    )
    assert known["exact"]
    assert known.isna()["approximate"]
    assert known.isna()["other"]


# ---- marks ---------------------------------------------------------------------------------------


def test_names_carry_their_mark_wherever_a_page_says_them(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    page = page_of(run)
    visible = unescape(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    for name, mark in (("linformer", "~"), ("linformer:64", "~"), ("performer", "~"), ("rnn", "≠")):
        shown = re.findall(rf"(?<![\w:/.-]){name}(?!:?[\w-])(.{{2}})", visible)
        assert len(shown) > 20
        assert set(shown) == {f" {mark}"}
    assert re.search(r"linformer-b1-n256", visible)
    assert "fused ~" not in visible


def test_marks_leave_questions_ids_and_other_words_alone() -> None:
    names = {
        "fused": "fused",
        "rnn": "rnn ≠",
        "linformer": "linformer ~",
        "linformer:64": "linformer:64 ~",
    }
    texts = {
        "rnn: unsupported": "rnn ≠: unsupported",
        "linformer:64, linformer and fused": "linformer:64 ~, linformer ~ and fused",
        "linformer-b1-n256-d512": "linformer-b1-n256-d512",
        "impls/rnn.py, linformer_2 and my-rnn": "impls/rnn.py, linformer_2 and my-rnn",
    }
    for text, wanted in texts.items():
        (block,) = marked([Text(text=text)], names)
        assert isinstance(block, Text)
        assert block.text == wanted
        for kind in ("question", "log"):
            assert list(marked([Text(text=text, kind=kind)], names)) == [Text(text=text, kind=kind)]  # type: ignore[arg-type]


def test_walls_of_what_is_not_exact_are_marked(tmp_path: Path) -> None:
    wall = {"backend": "linformer", "exactness": "approximate"}
    table = frame([read_run(inexact(tmp_path, backends=("fused",)))])
    assert marked_names(table, {"run": {"walls": [wall, {"backend": "sdpa"}]}}) == {
        "fused": "fused",
        "linformer": "linformer ~",
        "sdpa": "sdpa",
    }


def test_the_last_words_of_a_run_are_marked_too(tmp_path: Path) -> None:
    words = closing.closing(inexact(tmp_path))
    assert any(
        re.search(r"linformer:64 ~ \(approximate, error 34 %\) takes", sentence)
        for sentence in words
    )
    assert any(sentence.startswith("rnn ≠ is not faster than fused and sdpa") for sentence in words)


# ---- overtaking ----------------------------------------------------------------------------------


def test_overtaking_is_found_between_two_lengths_and_placed_by_interpolation(
    tmp_path: Path,
) -> None:
    rows = rows_of(inexact(tmp_path))
    found = overtaking(rows, "linformer", "sdpa")
    assert found is not None
    assert (found.slower_to, found.faster_from) == (1024, 2048)
    assert found.even_at == pytest.approx(1536, rel=0.05)
    assert found.text == "from N = 2k on (slower up to 1k, even at about 1500)"
    never, always = overtaking(rows, "rnn", "sdpa"), overtaking(rows, "sdpa", "fused")
    assert never is not None
    assert always is not None
    assert (never.faster_from, never.text) == (None, "not up to N = 4k")
    assert (always.faster_from, always.text) == (256, "at every N from 256 on")
    assert overtaking(rows, "linformer", "naive") is None


def test_a_length_at_which_two_are_not_told_apart_belongs_to_neither(tmp_path: Path) -> None:
    blocks = {128: [2.0, 2.02], 256: [0.5, 2.2], 512: [0.5, 0.51]}
    pairs = [
        (case(name, problem(n)), blocks[n] if name == "b" else [1.0, 1.01])
        for n in blocks
        for name in ("a", "b")
    ]
    rows = [row(planned, block_ms=[[[value] for value in given * 4]]) for planned, given in pairs]
    found = overtaking(
        rows_of(write_run(tmp_path, [planned for planned, _ in pairs], rows)), "b", "a"
    )
    assert found is not None
    assert (found.slower_to, found.faster_from) == (128, 512)


# ---- sections ------------------------------------------------------------------------------------


def test_the_section_on_approximations_draws_errors_and_times(tmp_path: Path) -> None:
    errors, times = (
        block
        for block in blocks_of(approximate_section, inexact(tmp_path))
        if isinstance(block, Figure)
    )
    over_size, over_n = errors.panels
    assert {series.backend: series.x for series in over_size.series} == {
        "linformer": (64, 256),
        "performer": (256,),
    }
    assert next(
        series.y for series in over_size.series if series.backend == "linformer"
    ) == pytest.approx((0.34, 0.12))
    assert {series.x for series in over_n.series} == {LENGTHS}
    assert errors.title == "at N\u00a0=\u00a04k performer is off by 5 %, linformer:64 by 34 %"
    assert len(errors.table.rows) == 3 * len(LENGTHS)
    assert (
        times.title.replace("\u00a0", " ")
        == "faster than fused and sdpa: performer from N = 4k on (error 5 % at N = 4k) and"
        " linformer from N = 2k on (error 12 % at N = 4k)"
    )
    assert [series.backend for series in times.panels[0].series] == [
        "fused",
        "sdpa",
        "linformer",
        "linformer:64",
        "performer",
    ]
    assert (
        "linformer",
        "sdpa",
        "from N = 2k on (slower up to 1k, even at about 1500)",
    ) in times.table.rows


def test_with_no_exact_backend_beside_it_the_section_has_the_errors_alone(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("linformer",))
    blocks = blocks_of(approximate_section, run)
    assert [type(block) for block in blocks] == [Text, Figure]
    (group,) = approximate.approximating(rows_of(run))
    assert (
        approximate.finding(group) == "approximate attention was timed with no exact one beside it"
    )


def test_a_recurrent_layer_does_as_many_flops_as_attention_where_n_is_d(tmp_path: Path) -> None:
    (group,) = recurrence.recurring(rows_of(inexact(tmp_path)))
    assert recurrence.even_by_flops(group) == 512
    assert (
        recurrence.finding(group)
        == "rnn is not faster than fused and sdpa up to N\u00a0=\u00a04k; it does fewer FLOPs from"
        " N\u00a0=\u00a0512 on"
    )
    first = recurrence.steps(group)[0]
    assert first.step_ms == pytest.approx(50e-3, rel=0.02)
    assert first.flops_per_s == pytest.approx(12 * 512**2 / 50e-6, rel=0.02)
    assert first.attention is not None
    assert first.attention["backend"] == "sdpa"


def test_the_section_on_recurrence_has_a_figure_for_each_width(tmp_path: Path) -> None:
    pairs = [
        made(backend, layer(n, d))
        for d in (256, 512)
        for n in LENGTHS
        for backend in ("fused", "rnn")
    ]
    run = write_run(tmp_path, [planned for planned, _ in pairs], [one for _, one in pairs])
    blocks = blocks_of(recurrence_section, run)
    figures = [block for block in blocks if isinstance(block, Figure)]
    assert [figure.title.partition(":")[0] for figure in figures] == [
        "For d_model\u00a0=\u00a0256",
        "For d_model\u00a0=\u00a0512",
    ]
    latency, per_token = figures[0].panels
    mine, steps = (
        next(series for series in panel.series if series.backend == "rnn")
        for panel in (latency, per_token)
    )
    assert steps.y == pytest.approx([(y or 0) / n for y, n in zip(mine.y, mine.x, strict=True)])
    (crossings,) = (block for block in blocks if isinstance(block, Table))
    assert [line[-1] for line in crossings.rows] == ["N = 256", "N = 512"]


def test_flops_of_an_unknown_cell_are_not_made_up(tmp_path: Path) -> None:
    planned, one = made("rnn", layer(256), configuration={"cell": "QRNN"})
    (found,) = rows_of(write_run(tmp_path, [planned], [one]))
    assert recurrence.flops(found) is None


@pytest.mark.parametrize("section", [approximate_section, recurrence_section])
def test_a_run_without_them_is_told_in_one_line(tmp_path: Path, section: Any) -> None:
    for name, run in (
        ("none", write_run(tmp_path / "a", [], [])),
        ("exact", inexact(tmp_path / "b", backends=("fused", "sdpa"))),
    ):
        (block,) = blocks_of(section, run)
        assert isinstance(block, Text), name
        assert block.kind == "note"


# ---- files and comparisons -----------------------------------------------------------------------


def test_rows_of_before_are_exact_and_other_words_are_refused(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    old = write_run(tmp_path / "old", [planned], [row(planned)])
    assert "exactness" not in (old / "rows.jsonl").read_text()
    assert (load(old)["latency_ms"].notna() & load(old)["achieved_flops_per_s"].notna()).all()
    bad = write_run(tmp_path / "bad", [planned], [row(planned, exactness="nearly")])
    with pytest.raises(
        BadRun,
        match=r"rows\.jsonl:1: exactness: found 'nearly', wanted one of exact, approximate, other",
    ):
        load(bad)


def test_a_comparison_of_backends_says_what_is_not_exact(tmp_path: Path) -> None:
    comparison = compare_backends(inexact(tmp_path, lengths=(4096,)), "sdpa", None)
    _, lines = compare_text.table(comparison)
    assert {line[0] for line in lines} == {
        "fused",
        "linformer (approximate, error 12 %)",
        "linformer:64 (approximate, error 34 %)",
        "performer (approximate, error 5 %)",
        "rnn (not attention)",
    }
    assert (
        "Not exact attention, so not the same result: linformer, linformer:64, performer and rnn."
        in set(compare_text.sentences(comparison))
    )
    cases = json.loads(compare_text.as_json(comparison))["cases"]
    assert {one["backend"]: one["exactness"] for one in cases}["rnn"] == "other"


# ---- strides -------------------------------------------------------------------------------------


def test_strides_that_are_the_root_of_n_are_one_problem_over_n(tmp_path: Path) -> None:
    def strided(parent: Path, windows: dict[int, int]) -> list[Row]:
        pairs = [
            case("sparse_strided", problem(n, mask="strided", window=window))
            for n, window in windows.items()
        ]
        return rows_of(write_run(parent, pairs, [row(planned) for planned in pairs]))

    (group,) = groups(strided(tmp_path / "a", {1024: 32, 4096: 64, 2048: 45}), "seq_len")
    assert group.problem["window"] == "√N"
    (group,) = groups(strided(tmp_path / "b", {1024: 64, 4096: 64, 2048: 64}), "seq_len")
    assert group.problem["window"] == 64
    assert len(groups(strided(tmp_path / "c", {1024: 32, 4096: 128}), "seq_len")) == 2
