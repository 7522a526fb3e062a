"""The page "the wall on real GPUs": published points, formulas as lines, our own runs as marks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...harness.published.names import Convention
from ...harness.published.tables import (
    GIB,
    PEAKS,
    Cell,
    Source,
    achieved,
    longest,
    names,
    read,
)
from ..data.load import rows_of
from ..data.read import Run
from ..data.row_groups import Row
from ..data.run_meta import run_meta
from ..elements import (
    Badge,
    Block,
    Card,
    Figure,
    Panel,
    Series,
    Table,
    Text,
    note,
    table_of,
)
from ..formatting import length_text, list_text
from ..pages.exactness_marks import marked_names
from ..pages.report import MORE, Answered, Part, Section
from ..quantity import Quantity, Unit
from ..subjects import SECTIONS
from .text import (
    CONVENTIONS,
    NOT_OURS,
    beside,
    impossible_cells,
    origin,
    same_shape,
    shape_text,
    tables_of,
    whole_bytes,
)

WALL = "flashattention-a100"
RATES = tuple(name for name in names() if name not in (WALL, "threads"))
DEVICES_GIB = (24, 40, 80, 141)
MEMORY_TABLE, TIME_TABLE = "Table 21", "Table 20"
PUBLISHED = " (published)"
HEADS_BACKEND = "fused"


def wall(runs: Sequence[Run], convention: Convention) -> "WallPage":
    """`runs`: our own, whose marks stand beside the published points."""
    rows, meta = rows_of(runs), run_meta(runs)
    return WallPage(
        runs=runs,
        rows=rows,
        meta=meta,
        names=marked_names(rows, meta),
        source=read(WALL),
        convention=convention,
    )


@dataclass(frozen=True, kw_only=True)
class WallPage(Answered):
    source: Source
    convention: Convention

    @property
    def heading(self) -> str:
        return "The wall on real GPUs"

    @property
    def headers(self) -> Mapping[str, tuple[str, str]]:
        ours = {
            name: (f"Beside it: {self.titles[name]}", text)
            for name, (_, text) in super().headers.items()
        }
        return {"": ("", f"Published tables. {NOT_OURS}"), **ours}

    @cached_property
    def stopped(self) -> Sequence[str]:
        return ()

    @property
    def beside(self) -> Mapping[str, Sequence[object]]:  # type: ignore[override]
        return {}

    @cached_property
    def trust(self) -> Sequence[Badge]:
        """Nothing is known of how a published number was made beyond what its source says."""
        return [Badge(label="Not ours", state="unknown", text=NOT_OURS)]

    @property
    def _memory(self) -> Mapping[str, list[Cell]]:
        return self._printed(MEMORY_TABLE)

    @property
    def _timed(self) -> Mapping[str, list[Cell]]:
        return self._printed(TIME_TABLE)

    def _printed(self, table: str) -> Mapping[str, list[Cell]]:
        """Of the methods that have a formula, their cells in order of N."""
        cells = [one for one in self.source.cells if one.table == table]
        return {name: [one for one in cells if one.method == name] for name in PEAKS}

    @property
    def _example(self) -> Cell:
        """All cells of the page's figures have its shape, at other N."""
        return next(one for one in self.source.cells if one.table == MEMORY_TABLE)

    @property
    def _available(self) -> float:
        return float(self.source.about["memory_gib"]) * GIB

    @cached_property
    def answer(self) -> str:
        standard, flash = self._memory.values()
        shape = self._example.shape
        stops, ends = (longest(of, shape, self._available) for of in PEAKS.values())
        ran = max(_n(one) for one in standard if one.status == "ok")
        out = min(_n(one) for one in standard if one.status == "oom")
        return (
            f"On {self.source.device}, PyTorch's attention of 2022 ran at N = {length_text(ran)}"
            f" and was out of memory at {length_text(out)}; the formula ends at"
            f" {length_text(stops)}. FlashAttention ran at {length_text(max(map(_n, flash)))}; it"
            f" would end at {length_text(ends)}."
        )

    @cached_property
    def cards(self) -> Sequence[Card]:
        shape = shape_text(self._example, with_n=False)
        said = f"{shape}, forward and backward; grey: published; lines without marks: formulas"
        return [
            Card(
                name="memory",
                title="Memory over N",
                sentence=_exactness(self._memory),
                picture=self._memory_figure(shape),
                subtitle=said,
                decisions=self._devices(),
                note="S: the scores of all heads; T: one of q, k and v. 4 S + 10 T, inputs and dO"
                " included, is what a test of ours counts in such code with dropout; our fused,"
                " without dropout, needs 3 S + 6 T. FlashAttention's 13 T and 8 bytes per row of"
                " scores are fitted to its table.",
            ),
            Card(
                name="time",
                title="Time over N",
                sentence=self._time_sentence,
                picture=self._time_figure(shape),
                subtitle=said,
            ),
        ]

    @property
    def sections(self) -> Sequence[Section]:
        memory, time = self.cards
        return [
            Section(
                name="memory", title=SECTIONS["memory"], cards=[memory], parts=list(self._heads())
            ),
            Section(
                name="time",
                title=SECTIONS["time"],
                cards=[time],
                parts=[Part(name="rates", title="Rates of GPUs", blocks=list(self._rates()))],
            ),
            Section(
                name="trust",
                title=SECTIONS["trust"],
                parts=[
                    Part(
                        name="impossible",
                        title="Published, and not right as it stands",
                        blocks=[impossible_cells()],
                    )
                ],
            ),
            Section(name=MORE, title=SECTIONS[MORE], parts=[*self._ratios(), *self._sources()]),
        ]

    # ---- memory ----------------------------------------------------------------------------------

    def _memory_figure(self, shape: str) -> Figure:
        series = []
        for name, cells in self._memory.items():
            xs, values = list(map(_n, cells)), [one.peak_bytes for one in cells]
            by_formula = [float(PEAKS[name](one.shape)) for one in cells]
            out = [at for at, one in enumerate(cells) if one.status == "oom"]
            lost = [xs[at] for at in out], [by_formula[at] for at in out]
            series += [
                _series(name + PUBLISHED, "measured", xs, values),
                _series(name + PUBLISHED, "failed", *lost),
                _series(f"formula of {name}", "formula", xs, by_formula),
            ]
        series += self._ours(self._memory, whole_bytes)
        limit = (self._available, f"{self.source.about['memory_gib']} GiB")
        return _figure(f"Memory over N, {shape}", "memory, inputs included", "bytes", series, limit)

    def _devices(self) -> Table:
        shape = self._example.shape
        return Table(
            title="Longest N by formula, nothing else in memory",
            columns=("device memory", *PEAKS),
            rows=tuple(
                (
                    f"{gib} GiB",
                    *(length_text(longest(of, shape, gib * GIB)) for of in PEAKS.values()),
                )
                for gib in DEVICES_GIB
            ),
        )

    def _heads(self) -> Iterator[Part]:
        """Ours: no published table holds h heads against one at equal width."""
        of = [row for row in self.rows if row["backend"] == HEADS_BACKEND and row.get("peak_bytes")]
        pairs = [
            (one, many)
            for one in of
            for many in of
            if one["heads"] == 1 < many["heads"] and _but_heads(one) == _but_heads(many)
        ]
        if pairs:
            table = table_of(
                f"Peak bytes of {HEADS_BACKEND} above its inputs, one head against more at equal"
                " width: our own, since no published table has it",
                pairs,
                {
                    "N": lambda pair: length_text(pair[0]["seq_len"]),
                    "run": lambda pair: self.titles[pair[0]["run"]],
                    "one head": lambda pair: Quantity(pair[0]["peak_bytes"], "bytes"),
                    "heads": lambda pair: pair[1]["heads"],
                    "with these": lambda pair: Quantity(pair[1]["peak_bytes"], "bytes"),
                    "ratio": lambda pair: Quantity(
                        pair[1]["peak_bytes"] / pair[0]["peak_bytes"], "ratio"
                    ),
                },
            )
            yield Part(name="heads", title="More heads, the same width", blocks=[table])

    # ---- time ------------------------------------------------------------------------------------

    @property
    def _time_sentence(self) -> str:
        standard, flash = self._timed.values()
        ran = [(one, other) for one, other in zip(standard, flash, strict=True) if one.ms]
        last, fast = ran[-1]
        factor = (last.ms or 0) / (ran[-2][0].ms or 1)
        return (
            f"From N = {length_text(_n(ran[-2][0]))} to {length_text(_n(last))} PyTorch's takes"
            f" {factor:.1f} times as long; there FlashAttention is"
            f" {(last.ms or 0) / (fast.ms or 1):.1f} times as fast."
        )

    def _time_figure(self, shape: str) -> Figure:
        series = []
        for name, cells in self._timed.items():
            xs = list(map(_n, cells))
            series.append(_series(name + PUBLISHED, "measured", xs, [one.ms for one in cells]))
            out = [_n(one) for one in cells if one.status == "oom"]
            failed = _series(name + PUBLISHED, "failed", out, [None] * len(out))
            series.append(replace(failed, why="out of memory"))
        series += self._ours(self._timed, lambda row: row.get("latency_ms"))
        return _figure(f"Time over N, {shape}", "time of a call", "ms", series, None)

    def _ours(
        self, published: Mapping[str, list[Cell]], value: Callable[[Row], float | None]
    ) -> list[Series]:
        """Marks of our runs that have the shape of published cells."""
        cells = next(iter(published.values()))
        found: dict[str, list[tuple[int, float | None]]] = {}
        for row in self.rows:
            if value(row) is not None and any(same_shape(one, row) for one in cells):
                kind = "CPU" if row["device"] == "cpu" else "GPU"
                points = found.setdefault(f"{row['backend']}, ours ({kind})", [])
                points.append((row["seq_len"], value(row)))
        return [
            _series(name, "measured", *zip(*sorted(points), strict=True))
            for name, points in found.items()
        ]

    def _rates(self) -> Iterator[Block]:
        yield note(
            f"TFLOP/s and the share of the data sheet's rate (MFU) are ours:"
            f" {CONVENTIONS[self.convention]}."
        )
        for name in RATES:
            source = read(name)
            yield from (replace(one, folded=True) for one in tables_of(source, self.convention))
            best = max(source.cells, key=lambda one: achieved(one, self.convention) or 0)
            rate = f"{achieved(best, self.convention):.0f} TFLOP/s"
            yield Text(text=f"{source.device}: at most {rate} ({best.method}, {shape_text(best)}).")

    # ---- the rest --------------------------------------------------------------------------------

    def _ratios(self) -> Iterator[Part]:
        table = beside(self.source, self.rows)
        if table.rows:
            yield Part(name="ratios", title="Our runs over the published cells", blocks=[table])

    def _sources(self) -> Iterator[Part]:
        for name in (WALL, *RATES, "threads"):
            source = read(name)
            blocks: list[Block] = [Text(text=origin(source), kind="note")]
            if name in (WALL, "threads"):
                blocks += tables_of(source, self.convention)
            yield Part(name=f"source.{name}", title=f"Source: {name}", blocks=blocks)


def _exactness(memory: Mapping[str, list[Cell]]) -> str:
    parts = []
    for name, cells in memory.items():
        known = [one for one in cells if one.peak_bytes is not None]
        right = [one for one in known if abs((one.peak_bytes or 0) - PEAKS[name](one.shape)) < 1]
        parts.append(f"{len(right)} of {len(known)} of {name}'s to the MiB")
    return f"Formulas give the published bytes: {list_text(parts)}."


def _n(cell: Cell) -> int:
    return int(cell.shape.seq_len)


def _but_heads(row: Row) -> tuple[object, ...]:
    names = ("run", "batch", "seq_len", "kv_seq_len", "d_model", "dtype", "causal", "passes")
    return tuple(row[name] for name in (*names, "scope"))


def _series(name: str, kind: str, x: Sequence[int], y: Sequence[float | None]) -> Series:
    return Series(backend=name, kind=kind, x=tuple(map(float, x)), y=tuple(y))  # type: ignore[arg-type]


def _figure(
    title: str, label: str, unit: Unit, series: Sequence[Series], line: tuple[float, str] | None
) -> Figure:
    """Published series and formulas are no backends, so they are grey; ours have colours."""
    shown = tuple(one for one in series if one.x)
    ours = tuple(dict.fromkeys(one.backend for one in shown if ", ours" in one.backend))
    columns = [one for one in shown if one.kind != "failed"]
    xs = sorted({x for one in shown for x in one.x})
    rows: list[tuple[str | Quantity, ...]] = []
    for x in xs:
        found = (dict(zip(one.x, one.y, strict=True)).get(x) for one in columns)
        rows.append((length_text(int(x)), *(Quantity(y, unit) for y in found)))
    return Figure(
        title=title,
        caption=NOT_OURS,
        panels=(Panel(x_label="N", y_label=label, unit=unit, series=shown, line=line),),
        table=Table(
            title=title,
            columns=("N", *(one.backend for one in columns)),
            rows=tuple(rows),
            folded=True,
        ),
        names=ours,
    )
