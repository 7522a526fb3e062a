"""The columns of the table of cases: type, title and how a number is written, with its unit.

Fields of a row come from harness/rows/fields.py; those that are computed from them stand here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...harness.rows.model import FIELDS
from ..quantity import Quantity, Unit

# Text is kept in Python strings: pyarrow refuses half a surrogate pair, which JSON may hold.
TEXT, COUNT, NUMBER, YES_NO, NESTED = "string[python]", "Int64", "float64", "boolean", "object"
_DTYPES = {
    "str": TEXT,
    "int": COUNT,
    "float": NUMBER,
    "bool": YES_NO,
    "list": NESTED,
    "object": NESTED,
}
UNITS: dict[str, Unit] = {
    "_flops_per_s": "flops_per_s",
    "_bytes_per_s": "bytes_per_s",
    "_flops": "flops",
    "_bytes": "bytes",
    "_ms": "ms",
}
"""By the end of a column's name."""
_NOT_SHOWN = {"schema", "kind"}  # bookkeeping of the file, not of the case


@dataclass(frozen=True, slots=True)
class Column:
    """`dtype`: in the table; `title`: where people read it, "" for its name."""

    name: str
    dtype: str
    title: str = ""

    def text(self, value: Any) -> str:
        """A value with its unit."""
        units = (unit for end, unit in UNITS.items() if self.name.endswith(end))
        is_share = self.name.startswith("decode_bandwidth")
        return Quantity(value, next(units, "share" if is_share else "plain")).number


# Each group stands behind the field that it follows.
_COMPUTED = {
    "phase": (
        Column("latency_ms", NUMBER, "latency"),
        Column("latency_low_ms", NUMBER, "95 % low"),
        Column("latency_high_ms", NUMBER, "95 % high"),
        Column("latency_reach", TEXT),
        Column("latency_run_low_ms", NUMBER),
        Column("latency_run_high_ms", NUMBER),
        Column("latency_note", TEXT),
        Column("processor_ms", NUMBER, "processor time"),
        Column("process_noise_ratio", NUMBER),
        Column("process_noise_degrees", NUMBER),
        Column("between_runs_ratio", NUMBER),
        Column("between_runs_degrees", NUMBER),
        Column("pair_noise_ratio", NUMBER),
        Column("pair_noise_degrees", NUMBER),
        Column("process_noise_source", TEXT),
        Column("wall_latency_ms", NUMBER, "wall latency"),
        Column("hot_latency_ms", NUMBER, "hot latency"),
        Column("graph_latency_ms", NUMBER, "graph latency"),
        Column("launch_bound", YES_NO),
    ),
    "processes": (Column("blocks", COUNT), Column("samples", COUNT)),
    "warmup_stationary": (Column("minor_faults_per_call", NUMBER),),
    "output_bytes": (Column("temporary_bytes", COUNT, "temporaries"),),
    "outside_bytes": (Column("needed_bytes", COUNT),),
    "minimal_bytes": (
        Column("achieved_flops_per_s", NUMBER, "achieved"),
        Column("papers_flops_per_s", NUMBER, "achieved by papers' 5 products"),
        Column("decode_bytes_per_s", NUMBER, "moved"),
        Column("decode_low_bytes_per_s", NUMBER),
        Column("decode_high_bytes_per_s", NUMBER),
        Column("decode_bandwidth_ratio", NUMBER, "of bandwidth"),
        Column("decode_bandwidth_low_ratio", NUMBER, "its 95 % low"),
        Column("decode_bandwidth_high_ratio", NUMBER, "its 95 % high"),
        Column("decode_fits_in_cache", YES_NO),
        Column("decode_bandwidth_note", TEXT),
    ),
    "utilization_tier": (Column("energy_per_call_j", NUMBER), Column("energy_per_token_j", NUMBER)),
}


def _columns() -> Iterator[Column]:
    for name, field in FIELDS["latency"].items():
        if name not in _NOT_SHOWN:
            yield Column(name, _DTYPES[field.kind], field.title)
            yield from _COMPUTED.get(name, ())


def _nested_last(columns: Iterator[Column]) -> dict[str, Column]:
    ordered = sorted(columns, key=lambda one: one.dtype == NESTED)
    return {one.name: one for one in ordered}


COLUMNS = _nested_last(_columns())
"""By name, in the order of the table."""
DTYPES = {"run": TEXT, **{one.name: one.dtype for one in COLUMNS.values()}}
NESTED_COLUMNS = [one.name for one in COLUMNS.values() if one.dtype == NESTED]


def dtype_of(values: Sequence[Any]) -> str:
    """Of a column that is known by its values only; None is missing."""
    kinds = {type(value) for value in values if value is not None}
    for found, dtype in (({int}, COUNT), ({bool}, YES_NO), ({str}, TEXT)):
        if kinds == found:
            return dtype
    return NUMBER if kinds <= {int, float} else NESTED


def dtypes_of(kind: str) -> dict[str, str]:
    """Of the fields of a kind of row."""
    return {
        name: _DTYPES[field.kind] for name, field in FIELDS[kind].items() if name not in _NOT_SHOWN
    }
