"""reports/claims: verdicts follow the truth of made-up rows, each claim both ways."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.claims.ledger import CLAIMS
from attnbench.reports.claims.subjects import claims as page
from attnbench.reports.data import load
from attnbench.reports.data.run_meta import read_run, run_meta
from attnbench.reports.elements import Table
from tests.conftest import ROOT
from tests.made_runs import (
    Made,
    head_sweep,
    inexact,
    made,
    many_problems,
    problem,
    pruning,
    quickstart,
    run_of,
    training,
)
from tests.reports.fake_claims import LENGTHS, judged, layer, pruned, timed, work
from tests.reports.rendering import rows_of, subject_of

Rows = Sequence[Made]
FUSED, ALL = ("fused",), ("naive", "fused", "sdpa")
NAMES = [one.name for one in CLAIMS]
LOUD = {"contended_blocks": 8}
WIDTHS = (64, 128, 256, 512, 1024)


def score_matrices(lengths: tuple[int, ...] = LENGTHS, more: int = 0, **shape: Any) -> Rows:
    """Peak bytes of `fused`: two matrices of 4 bytes for 8 heads, and `more` bytes per pair."""
    cases = [problem(n, 8, **shape) for n in lengths]
    return [timed("fused", 1.0, of, peak_bytes=(64 + more) * of["seq_len"] ** 2) for of in cases]


def over_heads(
    *lengths: int, backends: tuple[str, ...] = FUSED, ratio: float = 1.0, **given: Any
) -> Rows:
    """8 heads, which take so many times the time, and one. `given`: of the problem or the row."""
    loud = {name: given.pop(name) for name in LOUD if name in given}
    cases = [(problem(n, h, **given), h) for n in lengths for h in (1, 8)]
    return [
        timed(one, ratio if h > 1 else 1.0, of, work_flops=work(of), **loud)
        for of, h in cases
        for one in backends
    ]


def both(n: int, heads: int, core_ms: float, layer_ms: float) -> Rows:
    """A problem in both scopes."""
    return [timed("fused", core_ms, problem(n, heads)), timed("fused", layer_ms, layer(n, heads))]


def two_backends(loop_ms: float, seq_len: int = 256, **changes: Any) -> Rows:
    of = layer(seq_len)
    return [timed("naive", loop_ms, of, **changes), timed("fused", 1.0, of)]


def growing(backend: str, per_token: float, per_pair: float, crossing: float = 0.0) -> Rows:
    """Layers whose FLOPs cross at 1024."""
    times = [(n, per_token * n + per_pair * n * (crossing + n)) for n in LENGTHS]
    return [timed(backend, ms, layer(n), work_flops=work(layer(n))) for n, ms in times]


def windowed() -> Rows:
    """By the FLOPs of a window N² never takes over, whatever a backend computes."""
    shapes = [(n, problem(n, 8, scope="layer", mask="local", window=64)) for n in LENGTHS]
    return [timed("fused", 2e-6 * n * (1024 + n), of, work_flops=4096 * n) for n, of in shapes]


def over_n(backend: str, power: float, degree: float = 1, **changes: Any) -> Rows:
    """Times as this power of N, bytes as that one."""
    return [
        timed(backend, 1e-5 * n**power, problem(n), peak_bytes=int(4096 * n**degree), **changes)
        for n in LENGTHS
    ]


def over_cache(power: float) -> Rows:
    return [timed("sdpa", 1e-4 * n**power, problem(1, 16, kv_seq_len=n)) for n in LENGTHS]


def shared_keys(time_ms: float, input_bytes: int) -> Rows:
    """A quarter of the key and value heads, against 4 ms and 4000 bytes."""
    whole, quarter = (problem(1, 16, kv_seq_len=512, kv_heads=kv) for kv in (16, 4))
    given = {"input_bytes": input_bytes}
    return [timed("sdpa", 4.0, whole, input_bytes=4000), timed("sdpa", time_ms, quarter, **given)]


def over_width(
    backend: str, power: float, n: int = 64, scope: str = "core", also: float = 0.0, **given: Any
) -> Rows:
    """Times as this power of d_model, and `also` times d_model; FLOPs as those of heads that share
    it, if not given.
    """
    times = {d: 1e-4 * (d**power + also * d) for d in WIDTHS}
    shapes = {d: problem(n, 1, d_model=d, scope=scope) for d in WIDTHS}
    return [
        timed(backend, times[d], of, **({"work_flops": work(of)} | given))
        for d, of in shapes.items()
    ]


def batches(n: int, times: float, bytes_: float = 4.0, **changes: Any) -> Rows:
    """One sequence and four, which take so many times the time and bytes."""
    shapes = [problem(n, 8, batch=batch) for batch in (1, 4)]
    costs = ((1.0, 1000.0), (times, 1000 * bytes_))
    return [
        timed("fused", ms, of, peak_bytes=int(size), **changes)
        for of, (ms, size) in zip(shapes, costs, strict=True)
    ]


UNFINISHED = made("fused", layer(16384), None, work_flops=None)
MASKED = score_matrices(more=1, batch=2, mask="local", window=64)
WHOLE, HALF = pruned(8, 8.0, 800), pruned(4, 4.0, 400)
METHODS = {"C11a": "sparse_local", "C11b": "sparse_random", "C11d": "linformer:64"}
METHODS |= {"C11e": "performer"}
JUDGED: list[tuple[str, Rows, str]] = [
    ("C1", score_matrices(), "supported"),
    ("C1", score_matrices(more=1), "refuted"),
    ("C1", score_matrices(LENGTHS[:3]), "not decided"),
    ("C1", [*score_matrices(), *MASKED], "supported"),
    ("C2", growing("fused", 2e-3, 2e-6), "supported"),
    ("C2", [*growing("fused", 2e-3, 2e-6), UNFINISHED], "supported"),
    ("C2", growing("sdpa", 2e-3, 0.0), "refuted"),
    ("C2", growing("fused", 0.0, 2e-6, 200), "refuted"),
    ("C2", growing("fused", 0.0, 2e-6, 512), "not decided"),
    ("C2", growing("fused", 0.0, 2e-6), "refuted"),  # N² from the first on
    ("C2", growing("fused", 0.0, 2e-6)[2:], "not decided"),  # no N below a quarter of 1024
    ("C2", windowed(), "not run"),
    ("C3a", over_heads(256), "supported"),
    ("C3a", [over_heads(256)[0], timed("fused", 1.0, problem(256, 8), work_flops=9)], "refuted"),
    ("C3b", over_heads(4096, backends=("naive",)), "supported"),
    ("C3b", over_heads(4096), "refuted"),
    ("C3b", over_heads(*LENGTHS, d_k=64, d_v=64), "not run"),
    ("C3c", over_heads(256, 512), "supported"),
    ("C3c", over_heads(512, ratio=8.0), "refuted"),
    ("C3c", over_heads(512, ratio=8.0, **LOUD), "not decided"),
    ("C3d", over_heads(*LENGTHS, backends=("naive", "sdpa")), "supported"),
    ("C3d", over_heads(*LENGTHS), "refuted"),
    ("C3d", over_heads(*LENGTHS[:3]), "not decided"),
    ("C4", two_backends(1.5), "supported"),
    ("C4", two_backends(0.8), "refuted"),
    ("C4", two_backends(1.0), "refuted"),  # the same is not faster
    ("C4", two_backends(1.5, **LOUD), "not decided"),
    ("C10", both(8192, 8, 9.0, 10.0), "supported"),
    ("C10", both(8192, 8, 3.0, 10.0), "refuted"),
    ("C10", [*both(8192, 8, 9.0, 10.0), *both(8192, 1, 3.0, 10.0)], "depends"),
    ("C10", both(512, 8, 3.0, 10.0), "not run"),  # too short
    *((name, over_n(one, 1.0), "supported") for name, one in METHODS.items()),
    *((name, over_n(one, 1.5), "refuted") for name, one in METHODS.items()),
    *((name, over_n(one, 1.0, degree=2), "refuted") for name, one in METHODS.items()),
    ("C11a", over_n("sparse_local", 1.5, **LOUD), "not decided"),
    ("C11a", over_n("sparse_local", 1.0)[-3:], "not run"),  # too few lengths
    ("C11c", over_n("sparse_strided", 1.5, degree=1.5), "supported"),
    ("C11c", over_n("sparse_strided", 1.5, degree=1.2), "refuted"),
    ("C11c", over_n("sparse_strided", 1.0, degree=1.5), "refuted"),
    ("C12a", over_n("rnn", 1.0), "supported"),
    ("C12a", over_n("rnn", 2.0), "refuted"),
    ("C12b", over_width("rnn", 2.0, scope="layer"), "supported"),
    ("C12b", over_width("rnn", 3.0, scope="layer"), "refuted"),
    ("C14", [WHOLE, HALF, pruned(1, 1.0, 100)], "supported"),
    ("C14", [WHOLE, pruned(4, 4.0, 700)], "refuted"),
    ("C14", [WHOLE, pruned(4, 4.0, 400, workspace_bytes=400)], "refuted"),  # kept bytes count
    ("C14", [WHOLE, HALF, pruned(4, 4.0, 400, seq_len=1024)], "supported"),
    ("C14", [WHOLE, pruned(4, 4.0, None)], "not decided"),  # half of it lacks
    ("C14", [timed("fused", 1.0 * h, problem(512, h, scope="layer")) for h in (8, 4)], "not run"),
    ("C17", over_width("fused", 1.0), "supported"),
    ("C17", over_width("fused", 1.5), "refuted"),
    ("C17", over_width("fused", 0.0, also=0.002), "not decided"),  # the softmax hides it
    ("C17", over_width("fused", 1.0, work_flops=4096), "refuted"),  # heads of a given width
    ("C18", over_width("fused", 2.0, scope="layer"), "supported"),
    ("C18", over_width("fused", 2.0, scope="layer", also=20.0), "supported"),  # 1.98 at 1024
    ("C18", over_width("fused", 2.0, scope="layer", also=500.0), "not decided"),
    ("C18", over_width("fused", 1.7, scope="layer"), "refuted"),
    ("C18", over_width("fused", 2.0, scope="layer", work_flops=None), "not decided"),
    ("C18", over_width("fused", 2.0, n=1024, scope="layer"), "not run"),  # no projections alone
    ("C20", batches(64, 4.0), "supported"),
    ("C20", batches(64, 1.5), "refuted"),  # a larger batch saves time, and no bytes
    ("C20", [*batches(64, 1.5), *batches(512, 4.0)], "depends"),
    ("C20", batches(64, 4.0, 5.0), "refuted"),
    ("C20", batches(64, 1.5, **LOUD), "not decided"),
    ("C21", over_n("sdpa", 2.0), "supported"),
    ("C21", over_n("sdpa", 2.0, degree=1.05), "supported"),
    ("C21", over_n("sdpa", 2.0, degree=1.5), "refuted"),
    ("C21", over_n("sdpa", 2.0, degree=2), "refuted"),
    ("C22", over_cache(1.0), "supported"),
    ("C22", over_cache(1.5), "refuted"),
    ("C23", shared_keys(1.0, 1000), "supported"),
    ("C23", shared_keys(4.0, 1000), "refuted"),
    ("C23", shared_keys(1.0, 4000), "refuted"),
]


@pytest.mark.parametrize(("name", "rows", "wanted"), JUDGED)
def test_rows_decide_their_claims(tmp_path: Path, name: str, rows: Rows, wanted: str) -> None:
    found = judged(tmp_path, *rows).get(name)
    assert (found.verdict if found else "not run") == wanted


@pytest.mark.parametrize("verdict", ["supported", "refuted"])
def test_every_claim_can_come_out_either_way(verdict: str) -> None:
    assert {name for name, _, wanted in JUDGED if wanted == verdict} == set(NAMES)


STEPS = [
    timed("naive", 1e-3 * n * (9 if n > 1000 else 1), layer(n), work_flops=work(layer(n)))
    for n in LENGTHS
]
OF_HEADS = (("naive", 1.3), ("fused", 1.0), ("sdpa", 1.05))
PARTS: list[tuple[str, Rows, dict[str, str]]] = [
    (
        "C3b",
        over_heads(4096, backends=ALL),
        {"naive": "supported", "fused": "refuted", "sdpa": "supported"},
    ),
    (
        "C3c",
        [
            timed(b, 1e-5 * n * (1 if h == 1 else ratio), problem(n, h))
            for n in (256, 512)
            for h in (1, 8)
            for b, ratio in OF_HEADS
        ],
        {"naive": "refuted", "fused": "supported", "sdpa": "not decided"},
    ),
    ("C2", [*growing("fused", 2e-3, 2e-6), *STEPS], {"fused": "supported", "naive": "not decided"}),
]


@pytest.mark.parametrize(("name", "rows", "wanted"), PARTS)
def test_each_backend_has_its_verdict(
    tmp_path: Path, name: str, rows: Rows, wanted: dict[str, str]
) -> None:
    assert {of: verdict for of, verdict, _ in judged(tmp_path, *rows)[name].parts} == wanted


WIDE = [timed("fused", 1.0, problem(n, 8, batch=2, dtype="bf16")) for n in LENGTHS]


@pytest.mark.parametrize(
    ("name", "rows", "wanted"),
    [
        ("C1", WIDE, "64 bytes per N², where 2 B h e is 64"),
        ("C2", growing("fused", 2e-3, 2e-6), "by FLOPs 1024"),  # 2 d
        ("C3b", over_heads(4096), "times the bytes, 8 heads against one"),
        ("C4", [*two_backends(1.5), *two_backends(0.8, seq_len=512)], "against fused (N = 512)"),
        ("C18", over_width("fused", 1.7, scope="layer"), "d_model^1.70 (1.69 to 1.71) in time"),
    ],
)
def test_numbers_are_those_that_decide(tmp_path: Path, name: str, rows: Rows, wanted: str) -> None:
    *_, (_, _, text) = judged(tmp_path, *rows)[name].parts
    assert wanted in text.replace("\u00a0", " ")


def test_the_interval_that_is_shown_is_the_one_that_decides(tmp_path: Path) -> None:
    for found in judged(tmp_path, *over_heads(256, 512))["C3c"].found:
        low, high = map(float, found.text.partition("(")[2].partition(")")[0].split(" to "))
        assert 1 / 1.05 < low < high < 1.05
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


# ---- the page ------------------------------------------------------------------------------------


def tables_of(*folders: Path, cpus: Sequence[str] = ()) -> list[Table]:
    """Of runs that test claims."""
    runs = [read_run(one) for one in folders]
    meta = run_meta(runs)
    for number, run in enumerate(meta.values()):
        run["scenario"] = run["scenario"] | {"name": "claims_made"}
        run["environment"] |= {"cpu": cpus[number]} if cpus else {}
    blocks = page.subject(load.rows_of(runs), meta).blocks
    return [one for one in blocks if isinstance(one, Table)]


def test_claims_on_attention_take_no_evidence_from_other_computations(tmp_path: Path) -> None:
    found = page.outcomes(CLAIMS, rows_of(inexact(tmp_path)))
    of = {one.claim.name: {part.backend for part in one.found} for one in found}
    assert of["C2"] == {"fused", "sdpa"}
    assert of["C11d"] == {"linformer", "linformer:64"}
    assert of["C12a"] == {"rnn"}


def test_the_ledger_has_the_claims_of_the_theory() -> None:
    theory = (ROOT / "docs/internals/theory.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (C\d[^|]*) \|", theory, re.MULTILINE)
    assert ", ".join(cells).split(", ") == NAMES
    assert len(set(NAMES)) == len(NAMES) >= 20


@pytest.mark.parametrize("run", [quickstart, head_sweep, many_problems])
def test_what_was_not_tested_is_not_listed_and_no_number_is_nan(
    tmp_path: Path, run: Callable[[Path], Path]
) -> None:
    (table,) = tables_of(run(tmp_path))
    names = [line[0] for line in table.texts]
    assert 0 < len(set(names)) == len(names) < len(NAMES)
    text = " ".join(cell for line in table.texts for cell in line)
    assert not re.search(r"\b(nan|None|inf|NaN|<NA>|not run)\b", text)


def test_runs_of_one_device_share_a_table_and_another_device_has_its_own(tmp_path: Path) -> None:
    runs = [quickstart(tmp_path / name, lengths=(128, 256, 512, 1024)) for name in "ab"]
    assert len(tables_of(*runs)) == 1
    two = tables_of(*runs, cpus=("A", "B"))
    assert [one.title.rpartition(" on ")[2] for one in two] == ["A (cpu)", "B (cpu)"]


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = (
        subject_of(page, *some).card for some in ([run], [run, training(tmp_path / "b")])
    )
    assert alone is not None
    assert alone == beside


def test_a_run_that_tests_no_claim_has_no_table(tmp_path: Path) -> None:
    assert tables_of(run_of(tmp_path, timed("sdpa", 1.0, problem(64, 1)))) == []
