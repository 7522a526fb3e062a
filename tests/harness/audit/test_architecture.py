"""How a user may write compute capabilities."""

import pytest

from attnbench.harness.audit.architecture import capabilities
from attnbench.harness.errors import BadInput


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("80,90,100", ((8, 0), (9, 0), (10, 0))),
        ("8.6", ((8, 6),)),
        (" sm_89 , 12.0,120", ((8, 9), (12, 0))),
        ("9.0,8.0", ((9, 0), (8, 0))),
    ],
)
def test_every_way_of_writing_is_understood_and_each_counts_once(
    text: str, wanted: tuple[tuple[int, int], ...]
) -> None:
    assert capabilities(text) == wanted


@pytest.mark.parametrize("text", ["", "9", "80,,90", "hopper", "90a", "1000", "-80", "8.", "80;90"])
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="no compute capability; wanted such as 80, 90, 100"):
        capabilities(text)


def test_what_our_kernels_cannot_run_on_is_refused() -> None:
    with pytest.raises(BadInput, match=r"75: our kernels need compute capability 8\.0"):
        capabilities("80,75")
