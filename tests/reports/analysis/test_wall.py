"""reports/analysis/wall.py: where each backend runs out of memory, in one sentence."""

from pathlib import Path

import pytest

from attnbench.reports.analysis import wall
from attnbench.reports.data.row_groups import groups
from tests.reports.fake_runs import case, problem
from tests.reports.rendering import rows_with_statuses

WALLS = [
    (
        {"a": ("ok", "oom"), "b": ("ok", "ok")},
        "a runs out of memory at N = 256; b still fits at N = 256",
    ),
    (
        {"a": ("oom", "oom"), "b": ("ok", "ok")},
        "a runs out of memory at N = 128; b goes on to N = 256",
    ),
    (
        {"a": ("ok", "predicted_oom"), "b": ("oom", "crashed")},
        "b runs out of memory at N = 128; a at N = 256 (predicted)",
    ),
    (
        {"a": ("ok", "ok"), "b": ("ok", "crashed")},
        "a fits up to N = 256; b was measured up to N = 128",
    ),
    (
        {"a": ("ok", "oom"), "b": ("ok", "crashed")},
        "a runs out of memory at N = 256; b was measured up to N = 128",
    ),
    ({"a": ("ok", "oom"), "b": ("ok", "oom")}, "a and b run out of memory at N = 256"),
    ({"a": ("error", "error")}, "no case was measured or ran out of memory"),
]


@pytest.mark.parametrize(("statuses", "text"), WALLS)
def test_the_sentence_says_what_was_tried_and_what_predicted(
    tmp_path: Path, statuses: dict[str, tuple[str, str]], text: str
) -> None:
    found = rows_with_statuses(
        tmp_path,
        *(
            (case(name, problem(n)), status[at])
            for name, status in statuses.items()
            for at, n in enumerate((128, 256))
        ),
    )
    (group,) = groups(found, "seq_len")
    assert wall.finding(wall.memory_ends(group)).replace("\xa0", " ") == text
