"""The forward kernel in Gluon, by its own source on the CPU; compiled where triton is installed."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.impls._triton.conftest import child, needs_triton
from tests.impls._triton.gluon_emulator import SOURCE, Deadlock, Emulator, Hazard, Program

LOG2_E = 1.4426950408889634
EPSILON = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # of a rounded weight or output


@dataclass(frozen=True, kw_only=True)
class Shape:
    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    n_q: int = 130
    n_kv: int = 130
    d_k: int = 64
    d_v: int = 64
    causal: bool = False
    offset: int = 0
    dtype: torch.dtype = torch.bfloat16
    # of the launch
    block_kv: int = 128
    stages: int = 2
    programs: int = 132
    section: int = 10**6

    def inputs(self) -> list[Tensor]:
        make = torch.Generator().manual_seed(self.n_q * 1000 + self.n_kv)
        shapes = (
            (self.batch, self.heads, self.n_q, self.d_k),
            (self.batch, self.kv_heads, self.n_kv, self.d_k),
            (self.batch, self.kv_heads, self.n_kv, self.d_v),
        )
        return [torch.randn(shape, generator=make).to(self.dtype) for shape in shapes]

    def seen(self) -> Tensor:
        """[n_q, n_kv]"""
        keys, rows = torch.arange(self.n_kv), torch.arange(self.n_q)[:, None]
        return keys <= rows + self.offset if self.causal else keys == keys + rows * 0


def run(shape: Shape, *, seed: int = 0, kernel: Emulator | None = None) -> list[Program]:
    """Run it and compare with the formula in float64; AssertionError if results are wrong."""
    s, (q, k, v) = shape, shape.inputs()
    o = torch.full((s.batch, s.n_q, s.heads, s.d_v), torch.nan, dtype=s.dtype).transpose(1, 2)
    lse = torch.full((s.batch, s.heads, s.n_q), torch.nan)
    pad_k, pad_v = (64 if width <= 64 else 128 for width in (s.d_k, s.d_v))
    scale, entries = s.d_k**-0.5, s.batch * s.heads
    tiles = ((q, 64, pad_k), (k, s.block_kv, pad_k), (v, s.block_kv, pad_v))
    described = [
        SimpleNamespace(base=x, block_shape=[1, 1, rows, width]) for x, rows, width in tiles
    ]
    sizes = (entries, s.heads, s.heads // s.kv_heads, s.n_q, s.n_kv, s.offset)
    section = min(s.section, entries)
    programs = (kernel or Emulator()).launch(
        min(s.programs, -(-s.n_q // 128) * entries),
        (*described, o, lse, *o.stride()[:3], *sizes, section, scale * LOG2_E),
        {
            "D_V": s.d_v,
            "PAD_K": pad_k,
            "PAD_V": pad_v,
            "CAUSAL": s.causal,
            "BLOCK_KV": s.block_kv,
            "STAGES": s.stages,
            "CONSUMER_REGISTERS": 240,
            "PRODUCER_REGISTERS": 24,
        },
        seed=seed,
    )
    compare(shape, (q, k, v), o, lse)
    return programs


def compare(shape: Shape, inputs: tuple[Tensor, ...], o: Tensor, lse: Tensor) -> None:
    q, k, v = (x.double() for x in inputs)
    group = shape.heads // shape.kv_heads
    scores = q @ k.repeat_interleave(group, 1).mT * shape.d_k**-0.5
    scores = scores.masked_fill(~shape.seen(), -torch.inf)
    expected_lse = scores.logsumexp(-1) * LOG2_E
    expected = scores.softmax(-1).nan_to_num(0.0) @ v.repeat_interleave(group, 1)
    empty = expected_lse == -torch.inf
    assert bool((lse[empty] == -torch.inf).all())
    assert not o[empty].any()
    assert bool(((lse - expected_lse)[~empty].abs() < 1e-5).all())
    # Row by row: one that is wrong does not hide among others. The error of a weight counts at most
    # in full, as that of the output does.
    error = torch.linalg.vector_norm(o.double() - expected, dim=-1)
    limit = 2 * EPSILON[shape.dtype] * torch.linalg.vector_norm(v, dim=-1).amax()
    assert bool((error <= limit).all()), f"{float(error.max())} > {float(limit)}"


LENGTHS = (1, 64, 127, 129, 257, 400)
SHAPES = {
    "one query, one key": Shape(n_q=1, n_kv=1),
    "one key": Shape(n_q=200, n_kv=1),
    "many keys": Shape(n_q=70, n_kv=1000),
    "fp16": Shape(n_q=200, n_kv=150, dtype=torch.float16),
    "wide heads": Shape(n_q=140, n_kv=300, d_k=128, d_v=128),
    "wide keys": Shape(d_k=128, d_v=64),
    "wide values": Shape(d_k=64, d_v=128),
    "padded widths": Shape(d_k=40, d_v=72),
    "batch and heads": Shape(batch=2, heads=3, kv_heads=3),
    "grouped": Shape(batch=2, heads=6, kv_heads=2, causal=True),
    "one group": Shape(heads=4, causal=True, n_q=150),
    "three places": Shape(n_q=256, n_kv=900, stages=3, causal=True, offset=644),
    "one place": Shape(n_q=256, n_kv=600, stages=1),
    "two programs": Shape(heads=4, n_q=300, causal=True, programs=2),
    "one program": Shape(heads=3, n_q=300, n_kv=200, programs=1),
    "sections": Shape(batch=2, heads=4, n_q=300, causal=True, programs=3, section=3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_it_computes_attention(name: str) -> None:
    for seed in range(3):
        run(SHAPES[name], seed=seed)


@pytest.mark.parametrize("n_q", LENGTHS)
def test_it_computes_attention_of_lengths_that_fit_no_tile(n_q: int) -> None:
    kernel = Emulator()
    for n_kv, causal in product(LENGTHS, (False, True)):
        offset = max(n_kv - n_q, 0)
        run(Shape(n_q=n_q, n_kv=n_kv, causal=causal, offset=offset), seed=n_kv, kernel=kernel)


@pytest.mark.parametrize(
    "offset", [-400, -129, -128, -65, -64, -1, 0, 1, 31, 32, 64, 100, 129, 400]
)
def test_the_diagonal_may_be_anywhere(offset: int) -> None:
    """Queries before it see no key: whole tiles of a block, or some rows, or all but some."""
    for n_q, n_kv, block_kv in ((300, 300, 128), (130, 260, 128), (300, 500, 256)):
        run(Shape(n_q=n_q, n_kv=n_kv, causal=True, offset=offset, block_kv=block_kv, programs=2))


def test_it_is_right_and_free_of_races_whoever_is_slow() -> None:
    kernel = Emulator()
    shape = Shape(heads=2, n_q=300, n_kv=300, causal=True, programs=2, stages=2)
    for seed in range(25):
        run(shape, seed=seed, kernel=kernel)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_no_number_of_tiles_ends_in_a_deadlock(stages: int) -> None:
    kernel = Emulator()
    for tiles, seed in product(range(7), range(3)):
        # Of two units that one program takes: the second, the first half, sees none at all.
        keys = max(128 * tiles - 5, 1)
        shape = Shape(n_q=256, n_kv=keys, causal=True, offset=keys - 256, stages=stages, programs=1)
        run(shape, seed=seed, kernel=kernel)


@pytest.mark.parametrize("causal", [False, True])
def test_every_unit_is_taken_once_and_the_work_is_balanced(causal: bool) -> None:
    module = Emulator().module.__dict__
    for tiles, entries, section, programs in product(
        (1, 2, 7, 128), (1, 3, 16), (1, 2, 5, 16), (1, 2, 7, 132)
    ):
        if section > entries or programs > tiles * entries:
            continue
        by_program = units(module, tiles, entries, section, programs, causal=causal)
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
    module: dict[str, Any], tiles: int, entries: int, section: int, programs: int, *, causal: bool
) -> list[list[tuple[int, int]]]:
    """Those of each program, in order."""
    found = []
    for number in range(programs):
        module["gl"].program_id = lambda _axis, number=number: number
        module["gl"].num_programs = lambda _axis: programs
        turns = range(module["turns_of"](tiles, entries, causal))
        found.append([module["unit_in"](turn, tiles, entries, section, causal) for turn in turns])
    return found


def test_sections_come_one_after_the_other_and_long_units_before_short_ones() -> None:
    module = Emulator().module.__dict__
    (pairs,) = units(module, 3, 3, 2, 1, causal=True)
    first = [(2, 0), (0, 0), (2, 1), (0, 1), (1, 0), (3, 0), (1, 1), (3, 1)]
    assert pairs == [*first, (2, 2), (0, 2), (1, 2), (3, 2)]
    (singly,) = units(module, 2, 3, 2, 1, causal=False)
    assert singly == [(1, 0), (1, 1), (0, 0), (0, 1), (1, 2), (0, 2)]


def test_tiles_that_no_query_sees_are_not_read() -> None:
    (program,) = run(Shape(n_q=128, n_kv=1000, causal=True, offset=200))
    assert program.tiles_read == 2 + 2 * 3  # queries of two consumers; 328 keys and their values


# ---- the check can fail --------------------------------------------------------------------------

CAUSAL = Shape(n_q=200, n_kv=600, causal=True, offset=350, programs=1, heads=2)
FULL = Shape(n_q=200, n_kv=610, programs=1, heads=2, stages=2)
WAIT_QK, FREE_K = (
    "qk = warpgroup_mma_wait(1, deps=(qk,))",
    "mbarrier.arrive(k_empty.index(number % STAGES))",
)
WAIT_PV, FREE_V = (
    "acc, weights = warpgroup_mma_wait(0, deps=(acc, weights))",
    "mbarrier.arrive(v_empty.index((number - 1) % STAGES))",
)
LEFT_OUT = {
    "keys are not waited for": "mbarrier.wait(k_full.index(place), phase)",
    "values are not waited for": "mbarrier.wait(v_full.index(place), phase)",
    "queries are not waited for": "mbarrier.wait(q_full.index(C), loaded & 1)",
    "the producer waits for no room for keys": "mbarrier.wait(k_empty.index(place), phase ^ 1)",
    "the producer waits for no room for values": "mbarrier.wait(v_empty.index(place), phase ^ 1)",
    "the producer overwrites queries": "mbarrier.wait(q_empty.index(c), loaded & 1 ^ 1)",
    "queries are not given back": "mbarrier.arrive(q_empty.index(C))",
}
# By the shape on which it is noticed, and by what it breaks: a text of the kernel, its replacement.
MUTATIONS = {
    FULL: {
        **{name: (line, "pass") for name, line in LEFT_OUT.items()},
        "the last key is dropped": ("n_seen - 1, gl.int32", "n_seen - 2, gl.int32"),
        "keys beyond the end are seen": ("n_seen - 1, gl.int32", "n_seen + BLOCK_KV, gl.int32"),
        "a tile of keys is dropped": ("range(masked, n_tiles)", "range(masked, n_tiles - 1)"),
        "old sums are not rescaled": ("l_i * alpha +", "l_i +"),
        "the output is not rescaled": (
            "acc * gl.convert_layout(alpha",
            "acc * gl.convert_layout(1 + 0 * alpha",
        ),
        "both consumers have the same queries": ("q_s.index(C).reshape", "q_s.index(0).reshape"),
        "values are those of the next tile": (
            "place, phase = number % STAGES, number // STAGES & 1\n    mbarrier.wait(v_full",
            "place, phase = (number + 1) % STAGES, number // STAGES & 1\n    mbarrier.wait(v_full",
        ),
        "rows beyond the end are written": (
            "(o_rows < n_q)[:, None]",
            "(o_rows < n_q + 1)[:, None]",
        ),
        "a row is not written": ("(o_rows < n_q)[:, None]", "(o_rows < n_q - 1)[:, None]"),
        "the log-sum-exp is to base e": ("gl.log2(total)", "gl.log2(total) * 0.6931"),
        "room waits for one consumer only": (
            "mbarrier.init(k_empty.index(place), count=CONSUMERS)",
            "mbarrier.init(k_empty.index(place), count=1)",
        ),
        "keys are given back while they are read": (
            "    mbarrier.arrive(k_empty.index(number % STAGES))\n    weights",
            "    weights",
        ),
        "keys are given back too early": (f"{WAIT_QK}\n    {FREE_K}", f"{FREE_K}\n    {WAIT_QK}"),
        "values are given back too early": (f"{WAIT_PV}\n    {FREE_V}", f"{FREE_V}\n    {WAIT_PV}"),
        "scores are used before they are there": (
            "qk = warpgroup_mma_wait(1, deps=(qk,))",
            "qk = warpgroup_mma_wait(2, deps=(qk,))",
        ),
        "the output is used before it is there": (
            "warpgroup_mma_wait(0, deps=(acc, weights))",
            "warpgroup_mma_wait(1, deps=(acc, weights))",
        ),
        "a turn is not passed on": (
            "    mbarrier.arrive(turns.index((C + 1) % CONSUMERS))\n    qk = warpgroup_mma_wait(1",
            "    qk = warpgroup_mma_wait(1",
        ),
        "both consumers begin": ("number & 1 if C > 0 else number & 1 ^ 1", "number & 1"),
        "too few bytes are expected": (
            "k_full.index(place), BLOCK_KV * PAD_K * ITEM_BYTES",
            "k_full.index(place), BLOCK_KV * ITEM_BYTES",
        ),
    },
    CAUSAL: {
        "the diagonal is off by one": ("BLOCK_M, ROW) + offset", "BLOCK_M, ROW) + offset - 1"),
        "too few tiles have a mask": (
            "masked = gl.maximum(n_tiles - n_whole // BLOCK_KV, 1)",
            "masked = gl.maximum(n_tiles - n_whole // BLOCK_KV - 1, 1)",
        ),
        "a row sees the tiles of the row before": (
            "first_row + offset + 1, 0)",
            "first_row + offset + 65, 0)",
        ),
        "the last row's keys are dropped": ("last_row + offset + 1", "last_row + offset"),
        "a unit is taken twice": ("share = turn // fold", "share = 0 * turn"),
    },
    Shape(heads=2, kv_heads=2): {
        "another head's keys are read": (
            "[batch, kv_head, start, 0], k_full",
            "[batch, 0, start, 0], k_full",
        ),
    },
    Shape(batch=2): {
        "another batch entry is read": (
            "[batch, kv_head, last, 0], v_full",
            "[0, kv_head, last, 0], v_full",
        ),
    },
    Shape(n_q=200, n_kv=200, causal=True, offset=-70): {
        "a query without keys is not zero": ("total = gl.where(empty, 1.0, l_i)", "total = l_i"),
        "a row that has seen no key gives nan": ("if MASKED else m_ij", "if False else m_ij"),
    },
    Shape(n_q=400, n_kv=64, causal=True, offset=-200, programs=1, heads=2): {
        "the producer counts units without keys": (
            "        if n_tiles > 0:\n            for c in",
            "        if n_tiles >= 0:\n            for c in",
        ),
    },
    Shape(heads=3, n_q=300, programs=2): {
        "a unit is left out": (
            "gl.cdiv(shares - gl.program_id(0), programs) * fold",
            "(shares - gl.program_id(0)) // programs * fold",
        ),
    },
}
BROKEN = {name: (*texts, at) for at, some in MUTATIONS.items() for name, texts in some.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_notices_a_kernel_that_is_broken(name: str) -> None:
    old, new, shape = BROKEN[name]
    text = SOURCE.read_text()
    assert text.count(old) >= 1, f"{old!r} is no longer in the kernel"
    run(shape)
    broken = Emulator(text.replace(old, new))
    with pytest.raises((AssertionError, Deadlock, Hazard)):
        run_often(shape, broken)


def run_often(shape: Shape, kernel: Emulator) -> None:
    """With several seeds: a race shows in some orders only."""
    for seed in range(12):
        run(shape, seed=seed, kernel=kernel)


# ---- with triton ---------------------------------------------------------------------------------


@pytest.mark.long
@needs_triton
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_it_is_as_close_as_the_same_dtype_reference(dtype: str) -> None:
    """By the harness's own check; gradients are the portable kernels', from its log-sum-exp."""
    found = child("interpreted_gluon", "shared_list", dtype)
    assert {name: one["complaint"] for name, one in found.items() if one["complaint"]} == {}
    ran = {name for name, one in found.items() if one["kernels"][0] == "hopper_forward_kernel"}
    assert len(ran) >= len(found) - 3, found


@pytest.mark.long
@needs_triton
def test_what_it_does_not_take_goes_to_the_portable_kernel_with_a_reason() -> None:
    found = child("interpreted_gluon", "refusals")
    assert found.pop("taken") == ["hopper_forward_kernel", None, True]
    wanted = {
        "a key mask": "no key mask",
        "fp32": "fp16 and bf16 only",
        "wide heads": "up to 128 wide",
        "columns apart": "no descriptor fits",
        "one for all heads": "no descriptor fits",
        "no Gluon": "has not the Gluon",
    }
    assert set(found) == set(wanted)
    for name, (kernel, why_not, right) in found.items():
        assert kernel == "forward_kernel"
        assert wanted[name] in why_not
        assert right


@needs_triton
@pytest.mark.long
def test_it_compiles_with_overlap_and_without_spills(tmp_path: Path) -> None:
    found = child("compiled", "gluon", TRITON_CACHE_DIR=str(tmp_path))
    assert {(one["width"], one["causal"]) for one in found} == set(
        product((64, 128), (False, True))
    )
    for one in found:
        assert one["ptxas_notes"] == [], one
        assert one["loop_spill_store_bytes"] == one["loop_spill_load_bytes"] == 0, one
        assert one["loop_wait_count"] == 2, one
        assert one["loop_overlaps"], one
        assert not one["serialized"], one
        assert one["sm_block_count"] == 1, one
        assert one["tensor_busy_most_ratio"] >= {64: 0.45, 128: 0.6}[one["width"]], one
        assert one["exponentials_before_the_wait"], one
        assert one["arrives"], one
        assert one["unsafe"] is None, one
