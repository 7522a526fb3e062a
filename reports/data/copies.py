"""Cases that were measured several times on purpose (`--replicate`): one row of each."""

from typing import TYPE_CHECKING

from .row_groups import AXES

if TYPE_CHECKING:
    import pandas as pd

COPY = "replica"


def has_copies(frame: "pd.DataFrame") -> bool:
    return COPY in frame.columns and bool(frame[COPY].notna().any())


def first_copies(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The frame without further copies of a case: what a run without --replicate has.

    Where the first copy is not in these runs (a shard), the one with the lowest number stays.
    """
    if not has_copies(frame):
        return frame
    same = [name for name in (*AXES, "backend") if name in frame.columns]
    ordered = frame.sort_values(COPY, kind="stable")  # those without a number come last
    further = ordered[COPY].notna() & ordered.duplicated(subset=same)
    return frame[~further.reindex(frame.index)].reset_index(drop=True)
