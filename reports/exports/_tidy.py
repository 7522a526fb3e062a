"""What csv, json, md and parquet have of a row; `run` if there are several."""

from collections.abc import Sequence

from ..data.columns import NESTED_COLUMNS
from ..data.load import columns_of, rows_of
from ..data.read import Run
from ..data.row_groups import Row


def tidy(runs: Sequence[Run]) -> tuple[list[str], list[Row]]:
    """The columns, without samples and logs, which stay in the run's folder; a row per planned
    case.
    """
    rows = rows_of(runs)
    left_out = (*NESTED_COLUMNS, "log_tail", *(["run"] if len(runs) == 1 else []))
    columns = [name for name in columns_of(rows) if name not in left_out]
    return columns, [{name: row[name] for name in columns} for row in rows]
