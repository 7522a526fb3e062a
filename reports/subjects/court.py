"""A court's backends: how each ended, why, and the bytes of those that have a result.

Whom that convicts, their own files say.
"""

from collections import Counter
from collections.abc import Sequence

from ..data.row_groups import Row, backends, case_key
from ..data.run_meta import Meta
from ..elements import Card, table_of
from ..formatting import STATUS_WORDS, in_brackets, list_text, plural
from ..quantity import Quantity
from . import Subject

TITLE = "Backends of the court"
SECTION = "asked"
ORDER = 5
NEEDS = ("status", "reason")
ABOUT = ("court",)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    tried = suspects(rows, meta)
    if not tried:
        return Subject(lacking="No backend was tried.")
    card = Card(
        title="Who has a result",
        sentence=finding(rows, tried),
        picture=None,
        note=(
            "A result is as it must be for an honest backend, and for a cheat whose row shows the"
            " bytes that it hides: each file says which it is, and attnbench selfcheck --court"
            " judges by that as it ends."
        ),
        wide=True,
    )
    table = table_of(
        "How each backend ended, and the bytes of those that have a result",
        tried,
        {
            "backend": lambda row: str(row["backend"]),
            "ended": lambda row: STATUS_WORDS[row["status"]],
            "reason": lambda row: row["reason"],
            "peak": lambda row: Quantity(row.get("peak_bytes"), "bytes"),
            "kept": lambda row: Quantity(row.get("workspace_bytes"), "bytes"),
            "outside torch": lambda row: Quantity(row.get("outside_bytes"), "bytes"),
        },
        case=case_key,
    )
    return Subject(card=card, blocks=(table,))


def suspects(rows: Sequence[Row], meta: Meta) -> list[Row]:
    """The rows of all but the shipped backends, which are measured again beside each of them: in
    the scenario they stand last, from the baseline on.
    """
    shipped: set[str] = set()
    for run in meta.values():
        names = [str(one) for one in run["scenario"].get("backends") or ()]
        first = str(run["scenario"].get("baseline"))
        shipped |= set(names[names.index(first) :] if first in names else ())
    return [row for row in rows if row["backend"] not in shipped]


def finding(rows: Sequence[Row], tried: Sequence[Row]) -> str:
    ended = Counter(row["status"] for row in tried if row["status"] != "ok")
    without = [f"{count} {STATUS_WORDS[status]}" for status, count in ended.most_common()]
    fine = [row["backend"] for row in tried if row["status"] == "ok"]
    known = {row["backend"] for row in tried}
    others = [row for row in rows if row["backend"] not in known]
    beside = f"{sum(row['status'] == 'ok' for row in others)} of {len(others)} cases"
    texts = [
        f"No result of {len(tried) - len(fine)} of {plural(len(tried), 'backend')}"
        f"{in_brackets(list_text(without))}"
    ]
    texts += [f"a result of {len(fine)}: {list_text(fine)}"] if fine else []
    texts += [f"beside them of {beside} of {list_text(backends(others))}"] if others else []
    return f"{'; '.join(texts)}."
