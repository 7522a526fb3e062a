"""The table of csv, json, md and parquet: one row per planned case; `run` if there are several."""

from collections.abc import Sequence

import pandas as pd

from ..data.columns import NESTED_COLUMNS
from ..data.load import frame
from ..data.read import Run


def tidy(runs: Sequence[Run]) -> pd.DataFrame:
    """The table without samples and logs, which stay in the run's folder."""
    left_out = [*NESTED_COLUMNS, "log_tail", *(["run"] if len(runs) == 1 else [])]
    return frame(runs).drop(columns=left_out)
