"""reports/formatting.py: numbers as people write them, and text made safe to print."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from attnbench.reports import formatting

TEXTS: dict[Callable[..., str], dict[Any, str]] = {
    formatting.count_text: {1: "1", 128: "128", 1000: "1000", 1024: "1k", 131072: "128k"},
    formatting.bytes_text: {512: "512 B", 1 << 20: "1 MiB", 3 << 29: "1.5 GiB", None: ""},
    formatting.time_text: {3.2: "3.20 ms", 0.0123: "12.3 μs", 2500.0: "2.50 s", None: ""},
    formatting.flops_text: {1.07e9: "1.07 GFLOP"},
    # rounding never adds a digit and is done once
    formatting.number_text: {
        1.0: "1.00",
        12.34: "12.3",
        123.4: "123",
        0.05: "0.05",
        1e-5: "1.00e-05",
        2e6: "2.00e+06",
        9.996: "10.0",
        99.96: "100",
        999.6: "1000",
        0.996: "1.00",
        0.0996: "0.1",
        999_999.6: "1.00e+06",
        nan: "",
        None: "",
    },
    formatting.size_text: {
        0: "0 B",
        9: "9 B",
        1023: "1023 B",
        10_801: "11 KiB",
        1_048_346: "1 MiB",
        4 << 30: "4 GiB",
        3 << 29: "1.5 GiB",
        1073571733: "1 GiB",
        None: "",
    },
    formatting.whole_text: {3: "3", 1e6: "1000000", 2.5: "2.50", nan: "", None: ""},
    formatting.share_text: {
        0.81: "81.0 %",
        1.0: "100 %",
        1.004: "100 %",
        1.3: "130 % (impossible)",
    },
    formatting.list_text: {(): "", ("a",): "a", ("a", "b"): "a and b", tuple("abc"): "a, b and c"},
}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.__name__)
def test_numbers_read_well(text: Callable[..., str]) -> None:
    assert {value: text(value) for value in TEXTS[text]} == TEXTS[text]


def test_a_share_above_the_whole_is_impossible_for_a_reason() -> None:
    said = formatting.share_text(1.3, "from memory alone")
    assert said == "130 % (impossible from memory alone)"
    assert not formatting.beyond_whole(nan)
    assert not formatting.beyond_whole(inf)
