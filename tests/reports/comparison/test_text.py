"""reports/comparison/text.py: a comparison of backends names the inexact ones."""

import json
from pathlib import Path

from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import compare_backends
from tests.reports.fake_inexact import inexact


def test_a_comparison_of_backends_names_the_inexact_ones(tmp_path: Path) -> None:
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
