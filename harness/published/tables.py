"""Tables that others published, as they printed them, and what our formulas say of their cells.

A file has a header of `# key: value` lines, then CSV in one of four forms: a paper's table with a
column per N, two kinds of results files of NVIDIA/cudnn-frontend (also the originals, which have no
header), or rates that a thread claims. Imports no torch.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from ...impls.lengths import sequences
from ...impls.problem import Dtype, Passes, Problem
from ..cases.costs import work_flops
from ..files.errors import BadInput, instead_of, shown
from ..files.printable import visible
from ..files.safe_files import read_text
from ..measure.physical_floor import Device, flops_limit, refutation, specified
from .names import PREFIX, Convention

FOLDER = Path(__file__).parent / "printed"  # a link to results/published
MIB, GIB = 2**20, 2**30
MOST_BYTES = 4 * MIB  # of a file; cudnn-frontend's have some KiB
DTYPES: Mapping[str, Dtype] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
PASSES: Mapping[str, Passes] = {"fwd": "forward", "bwd": "backward"}
LONGEST = {"Megatron": 2048, "Block Sparse": 4096, "Longformer": 8092, "BigBird": 8092}
"""Above it the method does not run, by the paper's appendix E.6; else it ran out of memory."""
EXACT = {"PyTorch Attention", "Megatron", "FlashAttention"}  # of the paper's methods
NO_TIME = "no time (inf); its script keeps no reason"
NO_MASK_IN = {"Block Sparse", "Longformer", "BigBird"}  # measured without the mask, it says


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One published measurement.

    `table`, `row`, `column`: where it stands; of a file, `row` is its line there. `problem`: None
    of a rate without a shape. `also`: what it computed besides. `share_percent`: of the bandwidth
    that the source divides by.
    """

    table: str
    row: int
    column: str
    method: str
    problem: Problem | None = None
    also: str = ""
    exact: bool = True
    status: str = "ok"
    reason: str = ""
    ms: float | None = None
    peak_bytes: float | None = None
    tflops: float | None = None
    gb_per_s: float | None = None
    share_percent: float | None = None

    @property
    def shape(self) -> Problem:
        assert self.problem is not None
        return self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A published file. `about`: its header; `left_out`: rows that describe no problem of ours."""

    name: str
    about: Mapping[str, str]
    cells: tuple[Cell, ...]
    left_out: int = 0

    @property
    def device(self) -> str:
        return self.about["device"]

    @property
    def sheet(self) -> str:
        """The name by which physical_floor knows the device."""
        return self.about.get("sheet", self.device)


Form = Callable[[Mapping[str, str], Mapping[str, str]], list[Cell]]
"""From a row and the header."""


def names() -> list[str]:
    return [path.stem for path in sorted(FOLDER.glob("*.csv"))]


@cache
def read(name: str) -> Source:
    """By name, also with PREFIX, or by path. Raises BadInput."""
    bare = name.removeprefix(PREFIX)
    path = Path(name) if name.endswith(".csv") else FOLDER / f"{bare}.csv"
    if not name.endswith(".csv") and bare not in names():
        raise BadInput(f"{shown(bare)}: no published table; {instead_of(bare, names())}")
    place = visible(str(path))
    lines = read_text(path, place, MOST_BYTES, "a CSV file").splitlines()
    about = header(lines)
    table = csv.DictReader(lines[len(about) :])
    form = form_of(table.fieldnames or ())
    if form is None:
        raise BadInput(
            f"{place}:{len(about) + 1}:1: no table that is known; wanted a column"
            f" {' or '.join(FORMS)}"
        )
    found: list[Cell] = []
    left_out, device = 0, "unknown"
    for number, row in enumerate(table, len(about) + 2):
        try:
            made = form({**row, "row": row.get("row") or str(number)}, about)
        except (TypeError, ValueError, KeyError) as error:
            raise BadInput(f"{place}:{number}:1: {error}; wanted numbers") from None
        left_out += not made
        found += made
        device = row.get("gpu_name") or device
    about = {"source": str(path), "device": device, **about}
    return Source(name=bare, about=about, cells=tuple(found), left_out=left_out)


def _number(text: str) -> float:
    """Raises ValueError."""
    if not 0 < (number := float(text)) < inf:
        raise ValueError(f"{shown(text)} is no positive number")
    return number


def header(lines: Sequence[str]) -> dict[str, str]:
    """What the lines `# key: value` of a file say."""
    head = [line[2:].partition(": ") for line in lines if line.startswith("# ")]
    return {key: value for key, _, value in head}


def form_of(fields: Sequence[str]) -> Form | None:
    """What makes cells of the rows of a table with these columns."""
    return next((make for field, make in FORMS.items() if field in fields), None)


def _paper(row: Mapping[str, str], about: Mapping[str, str]) -> list[Cell]:
    """A printed row: a cell for each N. "-" is what did not run."""
    method, also = row["method"], []
    also += ["dropout"] if row["dropout"] == "yes" else []
    also += ["padding mask"] if row["masking"] == "yes" and method not in NO_MASK_IN else []
    found = []
    for n in filter(str.isdigit, row):
        problem = Problem(
            batch=int(about["batch"]),
            seq_len=int(n),
            heads=int(about["heads"]),
            d_model=int(about["heads"]) * int(about["head_dim"]),
            dtype="fp32" if method == "Local Attention" else DTYPES.get(about["dtype"], "fp16"),
            passes=row["passes"],  # type: ignore[arg-type]
        )
        cell = Cell(
            table=f"Table {row['table']}",
            row=int(row["row"]),
            column=n,
            method=method,
            problem=problem,
            also=", ".join(also),
            exact=method in EXACT,
        )
        if row[n] == "-":
            beyond = int(n) > LONGEST.get(method, int(n))
            reason = f"does not run above N = {LONGEST[method]}" if beyond else "out of memory"
            found.append(replace(cell, status="unsupported" if beyond else "oom", reason=reason))
        elif row["unit"] == "ms":
            found.append(replace(cell, ms=_number(row[n])))
        else:  # its MB are MiB: 4 S + 10 T is exact in these
            found.append(replace(cell, peak_bytes=_number(row[n]) * MIB))
    return found


def _cudnn(row: Mapping[str, str], about: Mapping[str, str]) -> list[Cell]:
    """A line of a results file: of training, or of a decode step of one query token; of sequences
    of unequal length, if it has `lengths`, written as a scenario has them.
    """
    decode = "kv_len" in row
    dtype, passes = DTYPES.get(row["data_type"]), PASSES.get(row.get("profile_pass", "fwd"))
    other = row.get("sliding_window_size") or row.get("q_tokens", "1") != "1"
    other = other or row.get("deterministic_bwd") == "True" or "time_ms" not in row
    other = other or row.get("kv_cache_dtype", row["data_type"]) != row["data_type"]
    if dtype is None or passes is None or other or row.get("skipped") == "True":
        return []
    causal = decode or row.get("attn_mask") == "top_left"
    heads, width = int(row["num_q_heads"]), int(row["head_dim_qk"])
    sizes: dict[str, Any] = {"batch": 1, "lengths": row.get("lengths"), "causal": True}
    if not sizes["lengths"]:
        sizes = {
            "batch": int(row["batch_size"]),
            "seq_len": 1 if decode else int(row["q_seqlen"]),
            "kv_seq_len": int(row["kv_len"] if decode else row["kv_seqlen"]),
            "causal": causal,  # the one query of a decode step sees all keys
            "causal_align": ("bottom_right" if decode else "top_left") if causal else "",
        }
    problem = Problem(
        **sizes,
        d_model=heads * width,
        heads=heads,
        kv_heads=int(row["num_kv_heads"]),
        d_k=width,
        d_v=int(row["head_dim_vo"]),
        dtype=dtype,
        passes=passes,
    )
    cell = Cell(
        table=Path(about.get("source", "")).name,
        row=int(row["row"]),
        column="time_ms",
        method=row["backend"],
        problem=problem,
    )
    if row.get("success", "True") != "True":
        why = row.get("error_message") or "failed"
        return [replace(cell, status="oom" if "memory" in why.lower() else "error", reason=why)]
    return [
        replace(
            cell,
            ms=_number(row["time_ms"]),
            tflops=_number(row["tflops"]),
            gb_per_s=_number(row["gbps"]) if row.get("gbps") else None,
            share_percent=_number(row["sol_pct"]) if row.get("sol_pct") else None,
        )
    ]


def _sdpa(row: Mapping[str, str], about: Mapping[str, str]) -> list[Cell]:
    """A line of sdpa_bf16_benchmark_results: both passes of one backend, in bf16 if not in fp8."""
    found: list[Cell] = []
    for short, passes in (("fwd", "forward"), ("bwd", "backward")):
        time_ms = row[f"{passes}_time"]
        made = {
            **row,
            "data_type": "fp8" if row["backend"].endswith("fp8") else "bfloat16",
            "attn_mask": "top_left" if row["is_causal"] == "True" else "no_mask",
            "head_dim_qk": row["head_dim"],
            "head_dim_vo": row["head_dim"],
            "profile_pass": short,
            "time_ms": time_ms,
            "tflops": row[f"{short}_tflops_per_sec"],
            "success": str(time_ms != "inf"),
            "error_message": NO_TIME,
        }
        found += [replace(one, column=f"{passes}_time") for one in _cudnn(made, about)]
    return found


def _claimed(row: Mapping[str, str], about: Mapping[str, str]) -> list[Cell]:
    return [
        Cell(
            table=row["thread"],
            row=int(row["row"]),
            column="claimed_tflops",
            method=row["method"],
            also=row["shape"],
            tflops=_number(row["claimed_tflops"]),
        )
    ]


FORMS: Mapping[str, Form] = {
    "masking": _paper,
    "forward_time": _sdpa,
    "num_q_heads": _cudnn,
    "claimed_tflops": _claimed,
}
"""By a column that only this form has; num_q_heads, if not forward_time."""


# ---- what our formulas say -----------------------------------------------------------------------


def flops(problem: Problem, convention: Convention = "2") -> float:
    """FLOPs of a call."""
    forward = work_flops(replace(problem, passes="forward"))
    again = forward * problem.d_k / (problem.d_k + problem.d_v) if convention == "2.5" else 0
    backward = 2 * forward + again
    return {"forward": forward, "backward": backward}.get(problem.passes, forward + backward)


def sheet_share(cell: Cell, sheet: str, convention: Convention) -> float | None:
    """Of the data sheet's FLOP/s without sparsity (MFU); None of a decode step: it reads bytes."""
    rate = achieved(cell, convention)
    if rate is None or cell.shape.seq_len == len(sequences(cell.shape.lengths or "q1")):
        return None
    peak = specified(sheet).get(f"gemm_{cell.shape.dtype}_flops_per_s")
    return rate * 1e12 / peak if peak else None


def achieved(cell: Cell, convention: Convention) -> float | None:
    """TFLOP/s; None of what does other work, or has no time."""
    if cell.problem is None or cell.ms is None or not cell.exact:
        return None
    return flops(cell.problem, convention) / cell.ms / 1e9


def standard_bytes(p: Problem) -> int:
    """Of textbook attention with dropout, forward and backward, inputs and dO included: 4 S + 10 T.

    S: the scores of all heads; T: one of q, k, v. tests/harness/published runs such code.
    """
    return 4 * _scores(p) + 10 * _tensor(p)


def flash_bytes(p: Problem) -> int:
    """Of the paper's FlashAttention, likewise: 13 T and two fp32 numbers per row of scores.

    Fitted to its Table 21, where it is exact from N = 1024 on; no derivation.
    """
    return 13 * _tensor(p) + 8 * p.batch * p.heads * p.seq_len


PEAKS = {"PyTorch Attention": standard_bytes, "FlashAttention": flash_bytes}


def longest(of: Callable[[Problem], int], problem: Problem, available: float) -> int:
    """The largest N whose bytes are available; 0 if there is none."""
    low, high = 0, 1
    while of(replace(problem, seq_len=high, kv_seq_len=high)) <= available:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = of(replace(problem, seq_len=middle, kv_seq_len=middle)) <= available
        low, high = (middle, high) if fits else (low, middle)
    return low


def _scores(p: Problem) -> int:
    return p.batch * p.heads * p.seq_len * p.kv_seq_len * p.item_bytes


def _tensor(p: Problem) -> int:
    return p.batch * p.heads * p.seq_len * p.d_k * p.item_bytes


def impossible(cell: Cell, sheet: str) -> str:
    """Why this device cannot have done that, in words; "" if nothing speaks against it."""
    device = Device("cuda", sheet, None)
    if cell.problem is not None and cell.ms is not None and cell.exact:
        return refutation(
            cell.problem, {"exactness": "exact", "block_ms": [[[cell.ms]]]}, device, None
        )
    limit = flops_limit("fp16", device)
    if cell.problem is None and limit is not None and (cell.tflops or 0.0) * 1e12 > limit.per_s:
        return (
            f"impossible: this device's limit is {limit.per_s / 1e12:.0f} TFLOP/s ({limit.source})"
        )
    return ""


def wrong_peak(cell: Cell, sheet: str) -> str:
    """Of a share above 100 %: what it was divided by; "" of any other cell."""
    if cell.gb_per_s is None or (cell.share_percent or 0.0) <= 100:
        return ""
    divisor = cell.gb_per_s / cell.share_percent * 100  # type: ignore[operator]
    known = specified(sheet).get("copy_bytes_per_s", 0.0) / 1e9
    against = f"; the sheet of this board says {known:.0f}" if known else ""
    return f"{cell.share_percent:.0f} % of a bandwidth of {divisor:.0f} GB/s{against}"


def refuted() -> Iterator[tuple[Source, Cell, str]]:
    """Every cell of every table that is shown which cannot be right, and why."""
    for name in names():
        source = read(name)
        for cell in source.cells:
            if why := impossible(cell, source.sheet) or wrong_peak(cell, source.sheet):
                yield source, cell, why
