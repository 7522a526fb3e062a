"""Memory over N where the question is another one: a card after those that answer it."""

import pandas as pd

from ..analysis.memory_curves import families
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import Card
from ._memory_over_n import memory_card
from .wall import asked

ORDER = 40


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    found = families(records(frame))
    if not found or asked(found[0], meta):
        return None
    return memory_card(found, meta, "memory")
