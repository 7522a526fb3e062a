"""reports/sections/attention_maps.py: maps of attention weights, whatever the findings contain."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.sections import attention_maps
from tests.reports.fake_studies import with_study
from tests.reports.rendering import blocks_of, markdown_of, page_of, sentences

pytestmark = pytest.mark.long


ROWS = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]


def finding(head: int, entropy: float) -> dict[str, Any]:
    return {
        "head": head,
        "heads": 2,
        "causal": False,
        "mean_entropy_nats": entropy,
        "weight_rows": ROWS,
    }


def test_heads_are_drawn_with_one_scale_and_described_in_numbers(tmp_path: Path) -> None:
    run = with_study(tmp_path, "attention_maps", [finding(1, 1.0), finding(2, 0.5)])
    page = page_of(run)
    assert (
        "Of 2 heads with random weights, head 2 attends to the fewest tokens and head 1 to the most"
        in page
    )
    assert page.count("<image ") == 3  # two heads and the scale
    assert page == page_of(run)
    text = markdown_of(run)
    assert "| 1 | 2.72 | 1.00 |" in text


@pytest.mark.parametrize(
    "broken",
    [
        {"weight_rows": [[0.5, 0.5], [1.0]]},
        {"weight_rows": []},
        {"weight_rows": [["<img src=x>", 0]]},
        {"weight_rows": [[7.0]]},
        {"head": "<script>"},
        {"mean_entropy_nats": None},
    ],
)
def test_a_finding_that_is_no_map_is_not_drawn(tmp_path: Path, broken: dict[str, Any]) -> None:
    run = with_study(tmp_path, "attention_maps", [finding(1, 1.0) | broken])
    (only,) = sentences(blocks_of(attention_maps, run))
    assert "No maps." in only
