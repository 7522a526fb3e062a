"""How users may write compute capabilities."""

import pytest

from attnbench.harness.audit.occupancy import parse_capabilities
from attnbench.harness.files.errors import BadInput


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80,90,100", ((8, 0), (9, 0), (10, 0))),
        ("8.6", ((8, 6),)),
        (" sm_89 , 12.0,120", ((8, 9), (12, 0))),
        ("9.0,8.0", ((9, 0), (8, 0))),
    ],
)
def test_every_notation_is_understood_and_each_capability_counts_once(
    text: str, expected: tuple[tuple[int, int], ...]
) -> None:
    assert parse_capabilities(text) == expected


@pytest.mark.parametrize("text", ["", "9", "80,,90", "hopper", "90a", "1000", "-80", "8.", "80;90"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match=r"is not a compute capability; expected e\.g\. 80, 90, 100"):
        parse_capabilities(text)


def test_older_gpus_are_refused() -> None:
    with pytest.raises(BadInput, match=r"75: our kernels need compute capability 8\.0"):
        parse_capabilities("80,75")
