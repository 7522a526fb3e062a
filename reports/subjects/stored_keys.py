"""What it takes to read keys and values that lie in pages, are quantized or share a prefix, beside
plain ones.
"""

from collections.abc import Sequence

from ..data.row_groups import AXES, Row, axis_text, by, is_timed, label, problem
from ..data.run_meta import Meta
from ..elements import Card, note
from ..formatting import capital, list_text, number_text
from ..quantity import Quantity
from . import Subject
from ._pairs import Cells, Pair, axes_of, pair_table, pairs_of
from ._race import fastest_of

TITLE = "Pages, quantized keys and values, and shared prefixes"
SECTION = "asked"
ORDER = 13
WAYS = ("page", "kv_dtype", "prefix")
PLAIN = (0, "same", 0)
HOW = (
    "The fastest backend that reads each way of storing, beside the fastest on plain keys and"
    " values: of a shared prefix, on a copy for each sequence. The study kv_quantization tells how"
    " far quantized ones are off."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is of runs that compare shared prefixes alone; in others each way is a line."""
    found = comparisons(rows)
    if not found:
        return Subject(
            lacking="No keys and values in pages, quantized or with a shared prefix were timed"
            " beside plain ones."
        )
    axes = axes_of(found, WAYS)
    more: Cells = {
        "stored": way,
        "inputs over plain": lambda one: Quantity(one.ratio("input_bytes"), "ratio"),
    }
    title = "Keys and values by how they are stored"
    table = pair_table(title, found, "stored so", "plain", more, WAYS)

    def told(one: Pair) -> tuple[str, str]:
        return way(one), label(problem(one.row), axes) if one.row["prefix"] else ""

    lines = tuple(sentence(some, where) for (_, where), some in by(found, told).items())
    if not all(one.row["prefix"] for one in found):
        return Subject(lines=lines, blocks=(note(HOW), table))
    return Subject(
        card=Card(title="A shared prefix, stored once", sentence=" ".join(lines), picture=table)
    )


def way(one: Pair) -> str:
    """`pages of 16 tokens`, `keys and values in int8` or both, or a shared prefix."""
    texts = (axis_text(axis, one.row[axis]) for axis in WAYS if one.row[axis] not in PLAIN)
    return " with ".join(texts)


def sentence(found: Sequence[Pair], where: str) -> str:
    """Of one way, with the longest keys: `Keys and values in int8: kv_cache:blocks takes 1.9 times
    (1.7 to 2.1) the time of sdpa on plain ones, with 0.26 times the bytes (N_kv = 8 192).`
    """
    longest = max(one.row["kv_seq_len"] for one in found)
    alike = [one for one in found if one.row["kv_seq_len"] == longest]
    first, keys = alike[0], axis_text("kv_seq_len", longest)
    plain = f"a copy for each of {first.row['batch']} sequences" if where else "plain ones"
    times = []
    for one in alike:
        time = one.time.text_to(f"{one.base['backend']} on {plain}")
        times.append(f"{one.backend} takes {time}{one.time.why_not_decided}")
    what = capital(", ".join(filter(None, (where, way(first)))))
    size = f"with {number_text(first.ratio('input_bytes'))} times the bytes"
    return f"{what}: {list_text(times)}, {size} ({keys})."


def comparisons(rows: Sequence[Row]) -> list[Pair]:
    """Every way of storing, with the plain problem that is alike in all else."""
    timed = [row for row in rows if is_timed(row) and row.get("kv_dtype") is not None]
    kinds = by(timed, lambda row: tuple(row[axis] for axis in WAYS) == PLAIN)
    ways, plain = (fastest_of(kinds.get(kind, ()), AXES) for kind in (False, True))
    return pairs_of(ways, plain, [axis for axis in AXES if axis not in WAYS])
