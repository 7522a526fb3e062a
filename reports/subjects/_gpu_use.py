"""How busy the GPU is: what of it each backend keeps at work, and what is lacking, on one card."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller

from ..data.row_groups import Group, Row, backends, case_key, groups
from ..data.run_meta import Meta, caption, ours, scenario_name
from ..elements import Bar, Bars, Card, Figure, Marked, table_of
from ..formatting import Number, list_text, paragraph, share_text
from ..quantity import Cell, Quantity
from ._over import MOST_PANELS, panel, with_ends
from ._probe_tables import reading_text
from ._windows import HEADLINES, finding, missing, observed, windows

NOT_MEASURED = "SM utilization: not measured"
PARTS = {
    "sm_active_ratio": "SMs active",
    "any_tensor_ratio": "tensor cores",
    "dram_bandwidth_ratio": "memory bandwidth",
}
COLUMNS = PARTS | {"kernel_busy_ratio": "a kernel ran"}
SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")
FILLED_RATIO = 0.8  # of the SMs: below it something is lacking
GAPS, FEW, IDLE = "launch gaps", "too few blocks for the SMs", "idle SMs"
WHY = {
    GAPS: "the rest are gaps between its launches",
    FEW: "its kernels do not fill the GPU",
}
AROUND = 0.995  # written as 100 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One backend on the problem of the card."""

    row: Row

    @property
    def name(self) -> str:
        return str(self.row["backend"])

    def ratio(self, column: str) -> float | None:
        found = observed(self.row, column)
        return None if found is None else found.value

    @property
    def lacking(self) -> str:
        """Why not all SMs are active; calls in a CUDA graph show how much is launch gaps."""
        active = self.ratio("sm_active_ratio")
        if active is None:
            return f"not measured: {self.reason}"
        if active >= FILLED_RATIO:
            return ""
        graph_ms = self.row.get("graph_latency_ms")
        if graph_ms is None or graph_ms != graph_ms:
            return IDLE
        loops = windows(self.row)
        call_ms = 1e3 * sum(one["window_s"] for one in loops) / sum(one["calls"] for one in loops)
        return GAPS if 1 - graph_ms / call_ms >= (1 - active) / 2 else FEW

    @property
    def reason(self) -> str:
        """Why the SMs were not counted."""
        for why, names in missing([self.row]).items():
            if "sm_active_ratio" in names:
                return "this GPU has no GPM" if "Hopper" in why else why
        return "the driver gave no counter"

    @property
    def energy(self) -> Cell:
        found = observed(self.row, "energy_j")
        return "" if found is None else Quantity.of(found, "j")

    def text(self, column: str) -> Cell:
        found = self.ratio(column)
        return "" if found is None else Number(reading_text(column, found))


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
    group = max(groups(watched, None), key=_rank)
    uses = [Use(row=row) for row in group.rows]
    bars, over_n = _bars(group, uses, meta), _over_n(watched, uses, meta)
    return Card(
        title="How busy is the GPU",
        subtitle=f"at {group.at}",
        sentence=_sentence(group.rows, uses),
        picture=over_n or bars,
        decisions=bars if over_n else None,
        note=paragraph(_by_nvml(uses), _one_window(watched)),
        wide=over_n is None,
    )


def _rank(group: Group) -> list[int]:
    sizes = [group.problem.get(axis) for axis in SIZES]
    known = [size if isinstance(size, int) else 0 for size in sizes]
    return [len(backends(group.rows)), *known]


def _sentence(rows: list[Row], uses: Sequence[Use]) -> str:
    said = finding(rows)
    if not said:
        known = [use for use in uses if use.ratio("sm_active_ratio") is not None]
        if not known:
            return f"How many SMs were active is not known: {uses[0].reason}."
        texts = [f"{use.name} {use.text('sm_active_ratio')}" for use in known]
        return f"SMs active: {list_text(texts)} of the time."
    least = min(uses, key=lambda use: use.ratio("sm_active_ratio") or 0.0)
    why = WHY.get(least.lacking, "")
    return f"{said}{f': {why}' if why and f'{least.name} ' in said else ''}."


def _by_nvml(uses: Sequence[Use]) -> str:
    """Both numbers of the row that fills the fewest SMs."""
    known = [use for use in uses if use.ratio("kernel_busy_ratio") is not None]
    if not known:
        return ""
    least = min(known, key=lambda use: use.ratio("sm_active_ratio") or 0.0)
    busy = least.ratio("kernel_busy_ratio") or 0.0
    how = "all the time" if busy >= AROUND else "so long"
    read = f"{share_text(busy)} for {least.name} (some kernel ran {how})"
    if least.ratio("sm_active_ratio") is None:
        return f"NVML's GPU utilization reads {read}, which does not tell how many SMs were active."
    active = least.text("sm_active_ratio")
    return f"NVML's GPU utilization would read {read}; the SMs were active {active} of the time."


def _one_window(rows: Sequence[Row]) -> str:
    single = all(len(windows(row)) == 1 for row in rows)
    return "One window per case: no interval." if single else ""


# ---- pictures ------------------------------------------------------------------------------------


def _bars(group: Group, uses: Sequence[Use], meta: Meta) -> Bars:
    return Bars(
        title="How busy is the GPU",
        caption=caption(group.problem, meta),
        description=(
            "Bars: the share of the SMs that were active, of the cycles in which tensor cores"
            " worked, and of the memory's bandwidth. The table has every number."
        ),
        groups=tuple((_heading(use), tuple(_parts(use))) for use in uses),
        table=table_of(
            f"How busy is the GPU · {group.at}",
            uses,
            {
                "backend": lambda use: Marked(cell=use.name, case=case_key(use.row)),
                **{title: methodcaller("text", column) for column, title in COLUMNS.items()},
                "energy per call": lambda use: use.energy,
                "what is lacking": lambda use: use.lacking,
            },
            optional=(*COLUMNS.values(), "energy per call", "what is lacking"),
        ),
    )


def _heading(use: Use) -> str:
    energy = str(use.energy.number) if isinstance(use.energy, Quantity) else ""
    parts = [f"{energy} per call" if energy else "", use.lacking]
    return ": ".join(filter(None, (use.name, ", ".join(filter(None, parts)))))


def _parts(use: Use) -> list[Bar]:
    columns = {column: title for column, title in PARTS.items() if use.ratio(column) is not None}
    if not columns and use.ratio("kernel_busy_ratio") is not None:
        columns = {"kernel_busy_ratio": "a kernel ran"}
    return [
        Bar(
            backend=use.name,
            label=title,
            share=min(1.0, use.ratio(column) or 0.0),
            note=str(use.text(column)),
        )
        for column, title in columns.items()
    ]


def _over_n(watched: Sequence[Row], uses: Sequence[Use], meta: Meta) -> Figure | None:
    """The share of the SMs, or of the time in which kernels ran, over N; None of a single N."""
    column, title = HEADLINES.get(uses[0].row["utilization_tier"], ("", ""))
    known = [
        with_ends(row, f"{column[:-5]}{{}}ratio", found)
        for row in watched
        if column and (found := observed(row, column)) is not None
    ]
    drawn = [group for group in groups(known, "seq_len") if len(group.lengths) > 1]
    if not drawn:
        return None
    shown = drawn if len(drawn) <= MOST_PANELS else [drawn[0], drawn[-1]]
    what = PARTS.get(column, "a kernel ran")
    panels = (
        panel(group, column=f"{column[:-5]}{{}}ratio", y_label=what, unit="share", y_scale="linear")
        for group in shown
    )
    return Figure(
        title=f"{what} over N",
        caption=caption(shown[0].problem, meta),
        panels=tuple(panels),
        table=table_of(
            f"{what} over N",
            [row for group in shown for row in group.rows],
            {
                "N": lambda row: Quantity(row["seq_len"], "count"),
                "heads": lambda row: row["heads"],
                "backend": lambda row: row["backend"],
                title.partition(" for")[0]: lambda row: Use(row=row).text(column),
            },
            folded=True,
        ),
    )
