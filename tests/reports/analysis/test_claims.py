"""reports/analysis/claims/ledger.py: every claim once in every ledger, and verdicts that follow the truth
of made-up rows.
"""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.reports.analysis.claims.ledger.claim_verdict import (
    Verdict,
    agreed,
    by_interval,
    jointly,
    over_problems,
)
from attnbench.reports.analysis.claims.ledger.ledger import (
    STATEMENTS,
    Claim,
    ledger,
    tally,
    together,
)
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.data.row_groups import records
from attnbench.reports.elements import Table, Text
from attnbench.reports.sections import claims as section

from tests.reports.fake_runs import case, head_sweep, many_problems, problem, quickstart, row, write_run

IDS = ["C1", "C2", "C3a", "C3b", "C3c", *(f"C{number}" for number in range(4, 17))]
LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
Made = tuple[dict[str, Any], dict[str, Any]]


def ledger_of(parent: Path, *made: Made, studies: Any = (), **meta: Any) -> dict[str, Claim]:
    read = read_run(
        write_run(parent, [planned for planned, _ in made], [one for _, one in made], **meta)
    )
    (run,) = run_meta([read]).values()
    return {claim.id: claim for claim in ledger(records(frame([read])), run | {"studies": studies})}


def timed(
    backend: str, time_ms: float, of: dict[str, Any], *, noise: float = 0.01, **changes: Any
) -> Made:
    """Eight blocks whose drift is that of the problem but for its heads, so that ratios over heads
    and backends are paired.
    """
    planned = case(backend, of)
    drift = Random(ascii((of["seq_len"], of["scope"])))
    own = Random(ascii(planned["case"]))
    blocks = [
        [time_ms * drift.lognormvariate(0, 0.03) * own.lognormvariate(0, noise)] for _ in range(8)
    ]
    return planned, row(planned, block_ms=[blocks], **changes)


def window(active: float) -> list[dict[str, Any]]:
    counters = [active + shift for shift in (-0.01, 0.0, 0.01)]
    return [
        {
            "way": "eager",
            "process": 0,
            "window_s": 2.0,
            "calls": 10,
            "sm_active_ratio": ratio,
            "energy_j": 1.0,
        }
        for ratio in counters
    ]


# ---- the ledger ----------------------------------------------------------------------------------


def test_the_ledger_is_that_of_the_theory() -> None:
    assert list(STATEMENTS) == IDS


def empty(parent: Path) -> Path:
    return write_run(parent, [], [])


def failed(parent: Path) -> Path:
    cases = [
        case(backend, problem(n, h))
        for n in LENGTHS
        for h in (1, 8)
        for backend in ("naive", "fused")
    ]
    return write_run(parent, cases, [row(one, "crashed") for one in cases])


def one_backend(parent: Path) -> Path:
    cases = [case("fused", problem(n, 8)) for n in LENGTHS]
    return write_run(parent, cases, [row(one) for one in cases])


def odd(parent: Path) -> Path:
    """Layers without a number, and windows without a counter."""
    cases = [
        case(backend, problem(n, h, scope="layer"))
        for n in LENGTHS
        for h in (1, 8)
        for backend in ("naive", "fused", "rnn")
    ]
    nothing = {"peak_bytes": None, "error_ratio": None, "session": None, "work_flops": 0}
    return write_run(parent, cases, [row(one, block_ms=[[[1.0]]], **nothing) for one in cases])


@pytest.mark.parametrize(
    "made", [empty, failed, one_backend, odd, quickstart, head_sweep, many_problems]
)
def test_every_claim_stands_once_in_every_ledger_and_no_number_is_nan(
    tmp_path: Path, made: Any
) -> None:
    read = read_run(made(tmp_path))
    found = list(section.render(frame([read]), run_meta([read])))
    lines = [line for block in found if isinstance(block, Table) for line in block.rows]
    assert sorted(line[0] for line in lines) == sorted(IDS)
    text = " ".join(cell for line in lines for cell in line)
    assert not re.search(r"\b(nan|None|inf|NaN|<NA>)\b", text)
    assert any(
        block.text.startswith("18 statements: ") for block in found if isinstance(block, Text)
    )


def test_several_runs_have_a_ledger_each(tmp_path: Path) -> None:
    runs = [read_run(quickstart(tmp_path / name, lengths=(128, 256, 512, 1024))) for name in "ab"]
    lines = [
        line
        for block in section.render(frame(runs), run_meta(runs))
        if isinstance(block, Table)
        for line in block.rows
    ]
    assert sorted(line[0] for line in lines) == sorted(2 * IDS)


def test_ledgers_of_several_runs_become_one(tmp_path: Path) -> None:
    one = ledger_of(tmp_path / "one", pruned(8, 8.0, 800), pruned(4, 4.0, 400), studies=MERGED)
    other = ledger_of(tmp_path / "other", studies=COPIES)
    both = {claim.id: claim for claim in together([list(one.values()), list(other.values())])}
    assert list(both) == IDS
    assert (one["C6"].verdict, other["C6"].verdict, both["C6"].verdict) == (
        "supported",
        "refuted",
        "depends",
    )
    assert both["C14"] == one["C14"]
    assert {claim.verdict for name, claim in both.items() if name not in ("C6", "C14")} == {
        "not run"
    }


def test_what_was_not_run_says_what_would_have_to_be(tmp_path: Path) -> None:
    claims = ledger_of(tmp_path)
    assert {claim.verdict for claim in claims.values()} == {"not run"}
    assert all(claim.to_run for claim in claims.values())
    assert tally(list(claims.values())) == "18 statements: 18 not run"


OUTCOMES: list[tuple[list[Verdict], Verdict, Verdict]] = [
    ([], "not run", "not run"),
    (["supported", "supported"], "supported", "supported"),
    (["supported", "refuted"], "depends", "refuted"),
    (["supported", "inconclusive"], "inconclusive", "inconclusive"),
    (["supported", "not run"], "supported", "inconclusive"),
    (["refuted", "inconclusive"], "inconclusive", "refuted"),
    (["supported", "refuted", "inconclusive"], "depends", "refuted"),
    (["not run", "not run"], "not run", "not run"),
]


@pytest.mark.parametrize(("verdicts", "side_by_side", "together"), OUTCOMES)
def test_verdicts_side_by_side_and_halves_of_one_claim(
    verdicts: list[Verdict], side_by_side: Verdict, together: Verdict
) -> None:
    assert agreed(verdicts) == side_by_side
    assert jointly(verdicts) == together
    # One backend: a problem that refutes a statement does so although others are open.
    assert over_problems(verdicts) == (
        "refuted" if set(verdicts) == {"refuted", "inconclusive"} else side_by_side
    )


def test_an_interval_that_does_not_exist_decides_nothing() -> None:
    assert by_interval(float("nan"), float("nan"), (0.9, 1.1)) == "inconclusive"


# ---- bytes and FLOPs -----------------------------------------------------------------------------


def test_the_score_matrix_is_2_b_h_n2_e_to_the_byte(tmp_path: Path) -> None:
    claim = ledger_of(
        tmp_path, *(timed("fused", 1.0, problem(n, 8, batch=2, dtype="bf16")) for n in LENGTHS)
    )["C1"]
    assert claim.verdict == "supported"
    assert claim.parts[0].numbers.startswith("64 bytes per N², where 2 B h e is 64")
    assert "100\u00a0000\u00a0000 elements, 190.7 MiB" in claim.parts[0].numbers


def test_one_byte_more_per_pair_refutes_it_and_three_lengths_decide_nothing(tmp_path: Path) -> None:
    def made(lengths: tuple[int, ...], more: int) -> list[Made]:
        cases = [problem(n, 8) for n in lengths]
        return [
            timed("fused", 1.0, of, peak_bytes=(64 + more) * of["seq_len"] ** 2) for of in cases
        ]

    assert ledger_of(tmp_path / "a", *made(LENGTHS, 1))["C1"].verdict == "refuted"
    assert ledger_of(tmp_path / "b", *made(LENGTHS[:3], 0))["C1"].verdict == "inconclusive"


def test_memory_of_heads_depends_on_the_backend(tmp_path: Path) -> None:
    found = ledger_of(
        tmp_path,
        *(
            timed(b, 1.0, problem(n, h))
            for n in LENGTHS
            for h in (1, 8)
            for b in ("naive", "fused", "sdpa")
        ),
    )
    assert found["C3a"].verdict == "supported"
    assert found["C3b"].verdict == "depends"
    assert {part.of: part.verdict for part in found["C3b"].parts} == {
        "naive": "supported",
        "fused": "refuted",
        "sdpa": "supported",
    }


def test_memory_of_heads_at_too_few_lengths_is_judged_by_the_peaks(tmp_path: Path) -> None:
    claim = ledger_of(
        tmp_path, *(timed(b, 1.0, problem(4096, h)) for h in (1, 8) for b in ("fused", "sdpa"))
    )["C3b"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "fused": "refuted",
        "sdpa": "supported",
    }


def test_heads_of_a_fixed_width_are_another_matter(tmp_path: Path) -> None:
    made = [timed("fused", 1.0, problem(n, h, d_k=64, d_v=64)) for n in LENGTHS for h in (1, 4)]
    found = ledger_of(tmp_path, *made)
    assert {found[name].verdict for name in ("C3a", "C3b", "C3c")} == {"not run"}


# ---- times ---------------------------------------------------------------------------------------


def test_the_time_of_heads_is_judged_by_equivalence(tmp_path: Path) -> None:
    more = {"naive": 1.3, "fused": 1.0, "sdpa": 1.05}
    made = [
        timed(b, 1e-5 * n * (1 if h == 1 else ratio), problem(n, h))
        for n in (256, 512)
        for h in (1, 8)
        for b, ratio in more.items()
    ]
    claim = ledger_of(tmp_path, *made)["C3c"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "naive": "refuted",
        "fused": "supported",
        "sdpa": "inconclusive",
    }
    assert claim.verdict == "depends"


def layer(n: int, heads: int = 8) -> dict[str, Any]:
    return problem(n, heads, scope="layer")


def work(of: dict[str, Any]) -> int:
    projections = 8 * of["seq_len"] * of["d_model"] ** 2 if of["scope"] == "layer" else 0
    return 4 * int(of["seq_len"]) ** 2 * int(of["d_model"]) + projections


def test_two_regimes_need_both_terms_beyond_doubt(tmp_path: Path) -> None:
    both = [
        timed("fused", 2e-3 * n + 2e-6 * n * n, layer(n), work_flops=work(layer(n)))
        for n in LENGTHS
    ]
    linear = [timed("sdpa", 2e-3 * n, layer(n), work_flops=work(layer(n))) for n in LENGTHS]
    steps = [
        timed("naive", 1e-3 * n * (9 if n > 1000 else 1), layer(n), work_flops=work(layer(n)))
        for n in LENGTHS
    ]
    claim = ledger_of(tmp_path, *both, *linear, *steps)["C2"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "fused": "supported",
        "sdpa": "refuted",
        "naive": "inconclusive",
    }
    assert "by FLOPs at N = 1024" in claim.parts[0].numbers  # 2 d


def test_one_projection_must_be_as_right_and_faster(tmp_path: Path) -> None:
    def made(loop: float, **changes: Any) -> list[Made]:
        return [timed("naive", loop, layer(256), **changes), timed("fused", 1.0, layer(256))]

    assert ledger_of(tmp_path / "a", *made(1.5))["C4"].verdict == "supported"
    assert ledger_of(tmp_path / "b", *made(0.8))["C4"].verdict == "refuted"
    assert ledger_of(tmp_path / "c", *made(1.5, error_ratio=None))["C4"].verdict == "inconclusive"
    study = [{"study": "projection_equality", "holds": False}]
    assert ledger_of(tmp_path / "d", *made(1.5), studies=study)["C4"].verdict == "refuted"


def test_core_and_layer_split_the_time(tmp_path: Path) -> None:
    def made(lengths: tuple[int, ...], projections: float) -> list[Made]:
        cores = [
            timed("fused", 2e-6 * n * n, problem(n), work_flops=work(problem(n))) for n in lengths
        ]
        return cores + [
            timed("fused", 2e-6 * n * n + projections * n, layer(n), work_flops=work(layer(n)))
            for n in lengths
        ]

    long = ledger_of(tmp_path / "a", *made((4096, 8192), 2e-3))
    assert (long["C10"].verdict, long["C16"].verdict) == ("supported", "refuted")
    assert "11% of the layer is outside its core at N = 8k" in long["C10"].parts[0].numbers
    short = ledger_of(tmp_path / "b", *made((128, 512), 2e-3))
    assert (short["C10"].verdict, short["C16"].verdict) == ("inconclusive", "inconclusive")
    slow = ledger_of(tmp_path / "c", *made((4096, 8192), 8e-2))
    assert (slow["C10"].verdict, slow["C16"].verdict) == ("refuted", "inconclusive")


def test_sparse_and_linear_backends_are_judged_by_their_exponent_and_bytes(tmp_path: Path) -> None:
    made = [timed("sparse_local", 1e-3 * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [timed("linformer", 1e-3 * n, problem(n), peak_bytes=4096 * n + n * n) for n in LENGTHS]
    made += [timed("performer", 1.0 + 1e-5 * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [timed("sparse_random", 1e-6 * n * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [
        timed("sparse_strided", 1e-5 * n**1.5, problem(n), peak_bytes=int(n**1.5)) for n in LENGTHS
    ]
    claim = ledger_of(tmp_path, *made)["C11"]
    wanted = {"sparse_local": "supported", "linformer": "refuted", "performer": "inconclusive"}
    assert {part.of: part.verdict for part in claim.parts} == wanted | {
        "sparse_random": "refuted",
        "sparse_strided": "supported",
    }
    assert claim.verdict == "depends"


def counted(
    backend: str, active: float, of: dict[str, Any], time_ms: float = 1.0, tier: str = "gpm"
) -> Made:
    return timed(backend, time_ms, of, windows=window(active), utilization_tier=tier)


def test_use_of_the_gpu_is_judged_by_counters_only(tmp_path: Path) -> None:
    def verdict(name: str, loop: float, fused: float, tier: str = "gpm") -> str:
        made = [
            counted("naive", loop, layer(256), tier=tier),
            counted("fused", fused, layer(256), tier=tier),
        ]
        return ledger_of(tmp_path / name, *made)["C13"].verdict

    assert verdict("a", 0.2, 0.8) == "supported"
    assert verdict("b", 0.8, 0.2) == "refuted"
    assert verdict("c", 0.5, 0.51) == "inconclusive"
    assert verdict("d", 0.2, 0.8, tier="busy") == "not run"


def test_a_recurrent_layer_is_open_until_counters_are_there(tmp_path: Path) -> None:
    times = [timed("rnn", 1e-2 * n, layer(n)) for n in LENGTHS]
    assert ledger_of(tmp_path / "a", *times)["C12"].verdict == "inconclusive"
    made = [counted("rnn", 0.1, layer(n), 1e-2 * n) for n in LENGTHS] + [
        counted("fused", 0.9, layer(n)) for n in LENGTHS
    ]
    assert ledger_of(tmp_path / "b", *made)["C12"].verdict == "supported"
    idle = [counted("rnn", 0.1, layer(n), 1e-6 * n * n) for n in LENGTHS] + [
        counted("fused", 0.9, layer(n)) for n in LENGTHS
    ]
    assert ledger_of(tmp_path / "c", *idle)["C12"].verdict == "refuted"


# ---- studies -------------------------------------------------------------------------------------


def variance(d_k: int, *, scaled: bool, ratio: float, reach: float = 0.02) -> dict[str, Any]:
    value = ratio * (1 if scaled else d_k)
    bounds = {"score_variance_low": value * (1 - reach), "score_variance_high": value * (1 + reach)}
    return {"study": "score_scale", "d_k": d_k, "scaled": scaled, "score_variance": value, **bounds}


def held(name: str, *, holds: bool) -> dict[str, Any]:
    return {
        "study": "layer_properties",
        "property": name,
        "holds": holds,
        "worst_error_ratio": 1e-15,
    }


def parameters(rule: str, *counts: int) -> list[dict[str, Any]]:
    return [
        {"study": "parameter_count", "d_k_rule": rule, "heads": 2**i, "parameter_count": count}
        for i, count in enumerate(counts)
    ]


COPIES = [
    {"study": "head_copies", "layout": "batched", "heads": h, "copied_bytes": 0 if h == 1 else 4096}
    for h in (1, 2, 8)
]
MERGED = [
    {"study": "head_copies", "layout": "merged", "heads": h, "copied_bytes": 0} for h in (1, 2, 8)
]
SHARE = {
    "study": "output_share",
    "backend": "fused",
    "seq_len": 4096,
    "share_ratio": 0.1,
    "share_low_ratio": 0.08,
    "share_high_ratio": 0.12,
}
STUDIES: list[tuple[str, list[Any], str]] = [
    (
        "C5",
        [variance(d, scaled=s, ratio=1.0) for d in (8, 512) for s in (False, True)],
        "supported",
    ),
    ("C5", [variance(8, scaled=False, ratio=1.0), variance(8, scaled=True, ratio=2.0)], "depends"),
    ("C5", [variance(8, scaled=True, ratio=1.0, reach=0.2)], "inconclusive"),
    ("C6", COPIES, "refuted"),
    ("C6", MERGED, "supported"),
    ("C6", COPIES + MERGED, "depends"),
    ("C6", COPIES[:1], "not run"),
    (
        "C7",
        [held("rows_sum_to_one", holds=True), held("outputs_between_values", holds=True)],
        "supported",
    ),
    ("C7", [held("rows_sum_to_one", holds=True)], "inconclusive"),
    (
        "C7",
        [held("rows_sum_to_one", holds=True), held("outputs_between_values", holds=False)],
        "refuted",
    ),
    ("C8", [held("order_permutes_outputs", holds=True)], "supported"),
    ("C9", [held("scaling_inputs_keeps_weights", holds=False)], "refuted"),
    ("C15", parameters("d_model / heads", 100, 100, 100), "refuted"),
    ("C15", parameters("fixed", 100, 200, 400), "supported"),
    ("C15", parameters("d_model / heads", 100, 100) + parameters("fixed", 100, 200), "depends"),
    ("C16", [SHARE], "refuted"),
    (
        "C16",
        [SHARE | {"share_ratio": 0.7, "share_low_ratio": 0.6, "share_high_ratio": 0.8}],
        "supported",
    ),
]


@pytest.mark.parametrize(("name", "studies", "verdict"), STUDIES)
def test_studies_decide_their_claims(
    tmp_path: Path, name: str, studies: list[Any], verdict: str
) -> None:
    assert ledger_of(tmp_path, studies=studies)[name].verdict == verdict


@pytest.mark.parametrize(
    "studies",
    [
        None,
        "all",
        [None, 3, "x", [], {}],
        [
            {"study": name}
            for name in (
                "score_scale",
                "head_copies",
                "layer_properties",
                "parameter_count",
                "output_share",
            )
        ],
        [
            {**variance(8, scaled=True, ratio=1.0), "score_variance": "1"},
            {**COPIES[1], "heads": None},
            {**held("x", holds=True), "holds": 1},
        ],
        [
            {**SHARE, "share_low_ratio": float("nan"), "share_high_ratio": "x"},
            {"study": ["score_scale"], "d_k": {}},
        ],
    ],
)
def test_findings_that_are_none_are_passed_over(tmp_path: Path, studies: Any) -> None:
    assert {claim.verdict for claim in ledger_of(tmp_path, studies=studies).values()} == {"not run"}


def pruned(kept: int, time_ms: float, peak_bytes: int | None, seq_len: int = 512) -> Made:
    """A layer of 8 heads, 64 wide, of which some are left."""
    widths = {"d_k": 64, "d_v": 64, "scope": "layer"}
    return timed("fused", time_ms, problem(seq_len, kept, **widths), peak_bytes=peak_bytes)


PRUNED: list[tuple[list[Made], Verdict]] = [
    ([pruned(8, 8.0, 800), pruned(4, 4.0, 400), pruned(1, 1.0, 100)], "supported"),
    ([pruned(8, 8.0, 800), pruned(4, 6.0, 700), pruned(1, 5.0, 600)], "refuted"),
    ([pruned(8, 8.0, 800), pruned(4, 4.0, 700)], "depends"),
    (
        [pruned(8, 8.0, 800), pruned(4, 4.0, 400), pruned(4, 4.0, 400, seq_len=1024)],
        "supported",
    ),  # one has nothing to be held against
    ([pruned(8, 8.0, 800)], "not run"),
    (
        [
            timed("fused", 8.0, problem(512, 8, scope="layer")),
            timed("fused", 4.0, problem(512, 4, scope="layer")),
        ],
        "not run",
    ),
]


@pytest.mark.parametrize(("made", "verdict"), PRUNED)
def test_pruned_heads_save_in_proportion_or_not(
    tmp_path: Path, made: list[Made], verdict: str
) -> None:
    assert ledger_of(tmp_path, *made)["C14"].verdict == verdict


def test_a_study_that_failed_says_why(tmp_path: Path) -> None:
    read = read_run(write_run(tmp_path, [], []))
    (run,) = run_meta([read]).values()
    asked = [{"study": "score_scale", "status": "timeout", "reason": "took more than 60 s"}]
    claims = {claim.id: claim for claim in ledger([], run | {"unanswered": asked})}
    assert claims["C5"].open_because == "the study found nothing: took more than 60 s"
    assert claims["C6"].open_because == ""
