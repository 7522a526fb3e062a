"""A message names an option as its reader wrote it."""

import pytest

from attnbench.harness.files.errors import BadInput, Spelling, option, spelled

FOUND = BadInput(
    f"{option('memory_gib')} 0: wanted more; add {option('wait', True)} or"
    f" {option('device', 'cpu')}"
)


@pytest.mark.parametrize(
    ("spelling", "wanted"),
    [
        (Spelling.SHELL, "--memory-gib 0: wanted more; add --wait or --device cpu"),
        (Spelling.PYTHON, "memory_gib 0: wanted more; add wait=True or device='cpu'"),
        (
            Spelling.PYTEST,
            "--attnbench-memory-gib 0: wanted more; add --attnbench-wait or --attnbench-device cpu",
        ),
    ],
)
def test_each_reader_gets_its_own_spelling(spelling: Spelling, wanted: str) -> None:
    assert FOUND.spelled(spelling) == wanted


def test_as_text_a_refusal_is_for_a_shell() -> None:
    assert str(FOUND) == FOUND.spelled(Spelling.SHELL)
    assert spelled(str(FOUND), Spelling.PYTHON) == str(FOUND)
