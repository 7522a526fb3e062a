"""reports/sections/worked_example.py: every number of it, whatever findings contain."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.sections import worked_example
from tests.reports.fake_studies import with_study
from tests.reports.rendering import blocks_of, page_of, section_of, sentences, tables_of, text_of

NUMBERS = [[1.0, 0.0], [0.5, 0.33333]]


def finding(mask: str, **more: Any) -> dict[str, Any]:
    rows = ("query_rows", "key_rows", "value_rows", "score_rows", "weight_rows", "output_rows")
    return {
        "mask": mask,
        **dict.fromkeys(rows, NUMBERS),
        "backends": ["naive", "sdpa"],
        "dtype": "fp32",
        "worst_error": 6e-8,
        **more,
    }


@pytest.mark.long
def test_every_number_of_the_example_is_in_a_table(tmp_path: Path) -> None:
    filled = [[0.5, -1e9], [None, 0.33333]]
    run = with_study(
        tmp_path, "worked_example", [finding("none"), finding("causal", score_rows=filled)]
    )
    steps, masks = tables_of(blocks_of(worked_example, run))
    assert steps.rows[1] == ("2", *["0.5, 0.333"] * 6)
    assert masks.rows[0] == ("causal", "1", "0.5, -1e9", "1, 0", "1, 0")
    assert masks.rows[1][2] == "–, 0.333"
    assert sentences(blocks_of(worked_example, run))[-1] == (
        "These are the numbers of the formula in fp32; the outputs of naive and sdpa in fp32 are at"
        " most 6.00e-08 away."
    )
    assert "Step by step, without a mask" in text_of(section_of(page_of(run), "worked_example"))


@pytest.mark.parametrize(
    "broken",
    [
        {"query_rows": 3},
        {"query_rows": []},
        {"score_rows": [[1.0]]},
        {"weight_rows": [["<img src=x>"], []]},
        {"worst_error": None},
        {"backends": "naive"},
        {"mask": None},
        {"dtype": None},
    ],
)
def test_a_finding_that_is_no_example_is_not_shown(tmp_path: Path, broken: dict[str, Any]) -> None:
    run = with_study(tmp_path, "worked_example", [finding("none") | broken])
    (only,) = sentences(blocks_of(worked_example, run))
    assert "No example." in only
