"""The attention maps of one model before and after training, and what each head looks at."""

from collections.abc import Sequence
from statistics import fmean

from ..analysis.trained_heads import Finding, HeadCount, favourite, tokens_attended
from ..elements import Map, Maps, Table
from ..formatting import list_text, number_text

SHARP_SHARE = 0.5  # of the weight at one distance, from which a head is said to look there
Rows = Sequence[Sequence[float]]


def maps_of(count: HeadCount, one: Finding, *, caption: str) -> Maps:
    before, after = (_named(one[f"weight_rows_{when}"]) for when in ("before", "after"))
    words = one.get("sentence")
    sentence = " ".join(map(str, words)) if isinstance(words, list) else ""
    return Maps(
        title=f"{count.task}, {count.heads} heads: {finding(after)}",
        caption=f"{caption} · the same sequence before and after training: {sentence}",
        description=(
            "One square per head, first before training, then after: each row is a query token,"
            " each column a key token, lighter is a larger weight, and each row sums to 1. A line"
            " one step below the diagonal is a head that looks at the token before. The table has"
            " for each head how many tokens it attends to on average, and at which distance it has"
            " most weight."
        ),
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(
            Map(label=f"{name}, {when}", rows=tuple(map(tuple, rows)))
            for when, maps in (("before", before), ("after", after))
            for name, rows in maps
        ),
        table=Table(
            title=f"Heads of {count.task}",
            columns=(
                "head",
                "tokens attended to",
                "most weight",
                "before: attended",
                "most weight",
            ),
            rows=tuple(
                (name, *_numbers(rows), *_numbers(start))
                for (name, rows), (_, start) in zip(after, before, strict=True)
            ),
        ),
    )


def finding(after: Sequence[tuple[str, Rows]]) -> str:
    """`after training head 1 looks 4 places back`, or to how few tokens a query attends."""
    texts = []
    for name, rows in after:
        back, share = favourite(rows)
        if share >= SHARP_SHARE:
            texts.append(f"{name} looks {_back(back)}")
    if texts:
        return f"after training {list_text(texts)}"
    few = number_text(fmean(tokens_attended(rows) for _, rows in after))
    return f"after training a query attends to {few} tokens, and no head to a fixed distance"


def _numbers(rows: Rows) -> tuple[str, str]:
    """Tokens attended to, and `1 place back: 92 %`."""
    back, share = favourite(rows)
    return number_text(tokens_attended(rows)), f"{_back(back)}: {100 * share:.0f} %"


def _back(places: int) -> str:
    if places == 0:
        return "at its own token"
    return f"{places} place{'s' if places > 1 else ''} back"


def _named(blocks: Sequence[Sequence[Rows]]) -> list[tuple[str, Rows]]:
    """Each head's map with its name, with the block if there are several."""
    many = len(blocks) > 1
    return [
        (f"block {block} head {head}" if many else f"head {head}", rows)
        for block, maps in enumerate(blocks, start=1)
        for head, rows in enumerate(maps, start=1)
    ]
