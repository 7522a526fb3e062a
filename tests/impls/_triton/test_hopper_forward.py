"""The forward kernel in Gluon: its units of work by its own source."""

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.impls import _triton
from tests.impls._triton.conftest import child, needs_triton

SOURCE = Path(_triton.__file__).with_name("hopper_forward.py")


def scheduling(program: int, programs: int) -> dict[str, Any]:
    """The functions of the source that say which work, as one program of a launch calls them."""
    gl = SimpleNamespace(
        program_id=lambda _axis: program, num_programs=lambda _axis: programs, constexpr=None,
        cdiv=lambda a, b: -(-a // b), minimum=min, maximum=max,
    )  # fmt: skip
    found = {"gl": gl, "gluon": SimpleNamespace(jit=lambda function: function)}
    found |= {"CONSUMERS": 2, "BLOCK_M": 64}
    text = SOURCE.read_text().partition("# ---- which work")[2].partition("# ---- the producer")[0]
    exec(f"#{text}", found)
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_every_unit_is_taken_once_and_the_work_is_balanced(causal: bool) -> None:
    for tiles, entries, section, programs in product(
        (1, 2, 7, 128), (1, 3, 16), (1, 2, 5, 16), (1, 2, 7, 132)
    ):
        if section > entries or programs > tiles * entries:
            continue
        by_program = units(tiles, entries, section, programs, causal=causal)
        taken = [unit for units in by_program for unit in units]
        assert sorted(unit for unit in taken if unit[0] < tiles) == list(
            product(range(tiles), range(entries))
        )
        assert all(tile <= tiles for tile, _ in taken)
        # The busiest program has at most one pair, or unit, beyond the mean; but where the number
        # of tiles is odd, the tile in the middle is half a pair.
        costs = [sum(cost(tile, tiles, causal) for tile, _ in units) for units in by_program]
        odd = (tiles + 1) / tiles if tiles % 2 and causal else 1.0
        one = tiles + 1 if causal else 1
        assert max(costs) <= sum(costs) / programs * odd + one


def cost(tile: int, tiles: int, causal: bool) -> int:
    """Tiles of keys that a tile of queries sees, relative to those of others."""
    return 0 if tile >= tiles else tile + 1 if causal else 1


def units(
    tiles: int, entries: int, section: int, programs: int, *, causal: bool
) -> list[list[tuple[int, int]]]:
    """Those of each program, in order."""
    found = []
    for number in range(programs):
        of = scheduling(number, programs)
        turns = range(of["turns_of"](tiles, entries, causal))
        found.append([of["unit_in"](turn, tiles, entries, section, causal) for turn in turns])
    return found


def test_sections_come_one_after_the_other_and_long_units_before_short_ones() -> None:
    (pairs,) = units(3, 3, 2, 1, causal=True)
    first = [(2, 0), (0, 0), (2, 1), (0, 1), (1, 0), (3, 0), (1, 1), (3, 1)]
    assert pairs == [*first, (2, 2), (0, 2), (1, 2), (3, 2)]
    (singly,) = units(2, 3, 2, 1, causal=False)
    assert singly == [(1, 0), (1, 1), (0, 0), (0, 1), (1, 2), (0, 2)]


@pytest.mark.parametrize(
    ("first_row", "n_q", "causal", "seen"),
    [
        (0, 128, True, (328, 201)),
        (128, 300, True, (456, 329)),
        (256, 300, True, (500, 457)),
        (384, 300, True, (0, 585)),  # the unit beside the one in the middle has no queries
        (0, 128, False, (1000, 1000)),
    ],
)
def test_keys_that_no_query_of_a_unit_sees_are_none_of_its_work(
    first_row: int, n_q: int, causal: bool, seen: tuple[int, int]
) -> None:
    assert scheduling(0, 1)["keys_seen"](first_row, n_q, 1000, 200, causal) == seen


@pytest.mark.long
@needs_triton
def test_what_it_does_not_take_goes_to_the_portable_kernel_with_a_reason() -> None:
    found = child("compiled", "refusals")
    assert found.pop("taken") == ["hopper_forward_kernel", None]
    wanted = {
        "a key mask": "no key mask",
        "fp32": "fp16 and bf16 only",
        "wide heads": "up to 128 wide",
        "columns apart": "no descriptor fits",
        "one for all heads": "no descriptor fits",
        "no Gluon": "has not the Gluon",
    }
    assert set(found) == set(wanted)
    for name, (kernel, why_not) in found.items():
        assert kernel == "forward_kernel"
        assert wanted[name] in why_not
