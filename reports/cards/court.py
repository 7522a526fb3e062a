"""Card of a court: how many backends have no result, and which have one."""

import pandas as pd

from ..analysis import court
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import Card

ORDER = 5
ABOUT = ("court",)


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    rows = records(frame)
    if not rows:
        return None
    return Card(
        name="court",
        title="Who has a result",
        sentence=court.finding(rows, meta),
        picture=None,
        note=(
            "A result is as it must be for an honest backend, and for a cheat whose row shows the"
            " bytes that it hides: each file says which it is, and attnbench selfcheck --court"
            " judges by that as it ends."
        ),
        wide=True,
    )
