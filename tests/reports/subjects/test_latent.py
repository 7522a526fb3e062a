"""reports/subjects/latent.py: the two forms of latent attention over the number of queries."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import latent
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of, subject_of

KEYS, HEADS, WIDE, MORE = 4096, 16, 131_072, 768  # per key or query, and per pair and head


def flops(form: str, queries: int) -> int:
    """Of DeepSeek's widths, as the docs of theory have them, without a mask."""
    pairs = queries * KEYS
    per_pair = 320 if form == "unabsorbed" else 320 + MORE
    return 2 * HEADS * (WIDE * (KEYS if form == "unabsorbed" else queries) + per_pair * pairs)


def call(form: str, queries: int, ms: float) -> Any:
    of = problem(queries, heads=HEADS, kv_seq_len=KEYS) | {"latent": 512, "rope": 64}
    configuration = {"form": form, "form_flops": flops(form, queries)}
    return made(f"mla:{form}", of, ms, configuration=configuration, session=str(queries))


def over(times: dict[int, tuple[float, float]]) -> list[Any]:
    forms = ("absorbed", "unabsorbed")
    return [
        call(form, n, ms) for n, each in times.items() for form, ms in zip(forms, each, strict=True)
    ]


def test_the_faster_form_is_told_by_queries_beside_the_crossing_by_flops(tmp_path: Path) -> None:
    run = run_of(tmp_path, *over({1: (5, 90), 16: (40, 100), 64: (160, 120), 256: (640, 200)}))
    (some,) = latent.comparisons(rows_of(run))
    assert [one.row["seq_len"] for one in some] == [1, 16, 64, 256]
    assert latent.even_by_flops(some) == pytest.approx(WIDE * KEYS / (WIDE + MORE * KEYS))
    assert len(subject_of(latent, run).lines) == 1
    assert [one.time.value for one in some] == pytest.approx([18, 2.5, 0.75, 0.3125], rel=0.03)


@pytest.mark.parametrize("queries", [(16,), (16, 64)])
def test_with_few_lengths_no_crossing_by_flops_is_told(
    queries: tuple[int, ...], tmp_path: Path
) -> None:
    run = run_of(tmp_path, *over(dict.fromkeys(queries, (40.0, 100.0))))
    (line,) = subject_of(latent, run).lines
    assert "FLOPs" not in line


def test_one_form_alone_says_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path, call("absorbed", 16, 40.0), call("unabsorbed", 64, 40.0))
    assert not subject_of(latent, run).lines
    assert subject_of(latent, run).lacking


@pytest.mark.parametrize(
    "said",
    [
        {"form": "absorbed"},
        {"form": "mine", "form_flops": 1},
        {"form": "absorbed", "form_flops": "1"},
    ],
)
def test_what_another_backend_says_of_itself_is_no_form(
    said: dict[str, Any], tmp_path: Path
) -> None:
    other = call("absorbed", 16, 40.0)
    other[1]["configuration"] = said
    run = run_of(tmp_path, other, call("unabsorbed", 16, 40.0))
    assert subject_of(latent, run).lacking
