"""How the backends of a court ended. Whom that convicts, their own files say."""

from collections import Counter

from ..data.row_groups import Row, backends
from ..data.run_meta import Meta
from ..formatting import STATUS_WORDS, list_text, plural


def suspects(rows: list[Row], meta: Meta) -> list[Row]:
    """The rows of all but the shipped backends, which are measured again beside each of them: in
    the scenario they stand last, from the baseline on.
    """
    shipped: set[str] = set()
    for run in meta.values():
        names = [str(one) for one in run["scenario"].get("backends") or ()]
        first = str(run["scenario"].get("baseline"))
        shipped |= set(names[names.index(first) :] if first in names else ())
    return [row for row in rows if row["backend"] not in shipped]


def finding(rows: list[Row], meta: Meta) -> str:
    tried = suspects(rows, meta)
    ended = Counter(row["status"] for row in tried if row["status"] != "ok")
    without = [f"{count} {STATUS_WORDS[status]}" for status, count in ended.most_common()]
    fine = [row["backend"] for row in tried if row["status"] == "ok"]
    known = {row["backend"] for row in tried}
    others = [row for row in rows if row["backend"] not in known]
    beside = sum(row["status"] == "ok" for row in others)
    texts = [
        f"No result of {len(tried) - len(fine)} of {plural(len(tried), 'backend')}"
        f"{f' ({list_text(without)})' if without else ''}",
        f"a result of {len(fine)}: {list_text(fine)}" if fine else "",
        f"beside them of {beside} of {len(others)} cases of {list_text(backends(others))}"
        if others
        else "",
    ]
    return "; ".join(filter(None, texts)) + "."
