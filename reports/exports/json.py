"""A JSON array of the answers, one flat object per line; missing is null, with why."""

import json
from collections.abc import Sequence

from ..data.run_meta import Run
from . import Exported
from ._answers import facts_of

MEANING = "the answers as flat objects, for programs"


def export(runs: Sequence[Run]) -> Exported:
    lines = [json.dumps(fact.document, allow_nan=False) for fact in facts_of(runs)]
    return Exported(content="[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n")
