"""How busy the GPU is: what of it each backend keeps at work, and what is lacking, on one card."""

from collections.abc import Callable, Sequence
from functools import partial

from ..data.row_groups import Group, Row, backends, case_key, groups
from ..data.run_meta import Meta, caption, ours, scenario_name
from ..elements import Bar, Bars, Card, Marked, table_of
from ..formatting import Number
from ..quantity import Cell, Quantity
from ._probe_tables import longest_kernels, reading_text
from ._race import size_of
from ._windows import finding, missing, observed, windows

TITLE = "How busy is the GPU"
NOT_MEASURED = "SM utilization: not measured"
ACTIVE, BUSY = "sm_active_ratio", "kernel_busy_ratio"
PARTS = {
    ACTIVE: "SMs active",
    "any_tensor_ratio": "tensor cores",
    "dram_bandwidth_ratio": "memory bandwidth",
}
COLUMNS = PARTS | {BUSY: "a kernel ran (NVML)"}
FILLED_RATIO = 0.8  # of the SMs: below it something is lacking
GAPS, FEW, IDLE = "launch gaps", "too few blocks for the SMs", "idle SMs"
ONE_WINDOW = "One window per case: no interval."


def not_measured(rows: Sequence[Row], meta: Meta) -> str:
    """That a GPU was timed without a window, and what takes one; "" if not so."""
    mine = ours(rows, meta)
    timed = [row for row in mine if row["device"] == "cuda" and row.get("latency_ms") is not None]
    if not timed or any(map(windows, rows)):
        return ""
    run = meta[timed[0]["run"]]
    shipped = str(run["scenario"].get("source") or "").startswith("scenarios/")
    what = f"attnbench run {scenario_name(run)}" if shipped else "the same command with"
    return f"{NOT_MEASURED}; {what} --measure latency,memory,utilization,energy measures it."


def card(rows: Sequence[Row], meta: Meta) -> Card | None:
    """On the longest problem that most backends finished; None without a window on a GPU."""
    watched = [row for row in rows if row["device"] == "cuda" and windows(row)]
    if not watched:
        return None
    every = groups(watched, None)
    group = max(every, key=lambda one: [len(backends(one.rows)), *size_of(one.rows[0])])
    least = min(group.rows, key=lambda row: ratio(row, ACTIVE) or 0.0)
    unknown = f"How many SMs were active is not known: {_reason(least)}"
    kernels = longest_kernels(group.rows)
    return Card(
        title=TITLE,
        subtitle=f"at {group.at}",
        sentence=f"{finding(group.rows) or unknown}.",
        picture=_bars(group, meta),
        decisions=kernels,
        note=ONE_WINDOW if all(len(windows(row)) == 1 for row in watched) else "",
        wide=kernels is None,
    )


# ---- one case ------------------------------------------------------------------------------------


def ratio(row: Row, column: str) -> float | None:
    found = observed(row, column)
    return None if found is None else found.value


def _text(column: str, row: Row) -> Number:
    found = ratio(row, column)
    return Number("" if found is None else reading_text(column, found))


def lacking(row: Row) -> str:
    """Why not all SMs are active; calls in a CUDA graph show how much is launch gaps."""
    active, graph_ms = ratio(row, ACTIVE), row.get("graph_latency_ms")
    if active is None:
        return f"not measured: {_reason(row)}"
    if active >= FILLED_RATIO:
        return ""
    if graph_ms is None or graph_ms != graph_ms:
        return IDLE
    loops = windows(row)
    call_ms = 1e3 * sum(one["window_s"] for one in loops) / sum(one["calls"] for one in loops)
    return GAPS if 1 - graph_ms / call_ms >= (1 - active) / 2 else FEW


def _reason(row: Row) -> str:
    """Why the SMs were not counted."""
    found = (why for why, names in missing([row]).items() if ACTIVE in names)
    why = next(found, "the driver gave no counter")
    return "this GPU has no GPM" if "Hopper" in why else why


def _energy(row: Row) -> Cell:
    found = observed(row, "energy_j")
    return "" if found is None else Quantity.of(found, "j")


# ---- words and picture ---------------------------------------------------------------------------


def _bars(group: Group, meta: Meta) -> Bars:
    columns: dict[str, Callable[[Row], Cell | Marked]] = {
        **{title: partial(_text, column) for column, title in COLUMNS.items()},
        "energy per call": _energy,
        "what is lacking": lacking,
    }
    return Bars(
        title=TITLE,
        caption=caption(group.problem, meta),
        description=(
            "Bars: the share of the SMs that were active, of the cycles in which tensor cores"
            " worked, and of the memory's bandwidth. The table has every number."
        ),
        groups=tuple((_heading(row), tuple(_parts(row))) for row in group.rows),
        table=table_of(
            f"{TITLE} · {group.at}",
            group.rows,
            {"backend": lambda row: row["backend"], **columns},
            case=case_key,
            optional=[*columns],
        ),
    )


def _heading(row: Row) -> str:
    energy = _energy(row)
    per_call = f"{energy.number} per call" if isinstance(energy, Quantity) else ""
    parts = ", ".join(filter(None, (per_call, lacking(row))))
    return ": ".join(filter(None, (row["backend"], parts)))


def _parts(row: Row) -> list[Bar]:
    known = [column for column in PARTS if ratio(row, column) is not None]
    known = known or [BUSY] * (ratio(row, BUSY) is not None)
    return [
        Bar(
            backend=row["backend"],
            label=COLUMNS[column],
            share=min(1.0, ratio(row, column) or 0.0),
            note=_text(column, row),
        )
        for column in known
    ]
