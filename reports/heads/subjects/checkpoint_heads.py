"""The heads of models that the user gave: where they look, which are needed, what removing saves.

From the study checkpoint_heads. A removal is judged sequence by sequence: the loss without a head
less the loss with all heads, of the same tokens. Intervals are over sequences.
"""

from collections.abc import Callable, Iterator, Sequence
from math import nan
from operator import attrgetter
from typing import Any

import pandas as pd

from ....harness.heads.findings import CheckpointHeads, Losses
from ....harness.stats.intervals import mean_interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Card, Map, Maps, Table, table_of
from ...formatting import plural
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects.studies import studied

TITLE = "Heads of given models"
SECTION = "asked"
APART = True
ORDER = 12
STUDIES = (CheckpointHeads.STUDY,)
KINDS = {"itself": "on itself", "near": "on near", "first": "on the first", "far": "on far tokens"}
"""Of tokens, in the order of `even_shares`."""
NOTE = (
    "A head is needed if its removal raises the loss beyond a 95 % interval over sequences; by"
    " chance 2 or 3 of 100 heads would seem needed. Near: the 4 tokens before a query; far: those"
    " between them and the first. The numbers hold for the tokens used here, without training after"
    " a removal."
)


def _share(kind: str) -> Callable[[Any], Quantity]:
    return lambda row: Quantity(getattr(row, kind), "share")


SHARES = {name: _share(kind) for kind, name in KINDS.items()}
"""Columns of tables."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first model."""
    found = [(one, caption) for caption, some in studied(CheckpointHeads, meta) for one in some]
    return Subject(
        card=next((_card(*of) for of in found), None),
        lines=tuple(sentence(one) for one, _ in found[1:]),
        blocks=(*(block for of in found for block in _blocks(*of, in_card=of is found[0])),),
        lacking="No model was given: --checkpoint DIR looks at one.",
    )


def _card(one: CheckpointHeads, caption: str) -> Card:
    """Without a picture for rows of earlier versions, and for few tokens."""
    looks, low_and_high = _looks(one, caption), _low_and_high(one)
    return Card(
        title=TITLE,
        subtitle=f"where those of {one.checkpoint} look, low layers above high ones",
        sentence=sentence(one),
        picture=looks or low_and_high,
        decisions=low_and_high if looks else None,
        note=NOTE,
        wide=True,
    )


def _blocks(one: CheckpointHeads, caption: str, *, in_card: bool) -> Iterator[Block]:
    looks = _looks(one, caption)
    if not in_card:
        yield from filter(None, (looks, _low_and_high(one)))
    if not looks:
        yield _every_head(one)
    if one.pruned_heads_left:
        yield _fewer(one)


def sentence(one: CheckpointHeads) -> str:
    """`Of the 144 heads of gpt2 30 are needed, most layer 1 head 2: without it the loss rises by
    0.4 (0.3 to 0.5) nats. With 72 left, the least important gone, it rises by 1.2 (1.1 to 1.3)
    nats; that saves 11 % of the parameters and 50 % of the cache.`
    """
    every, of = heads(one), f"{plural(sum(one.layer_heads), 'head')} of {one.checkpoint}"
    if not one.single_sequence_loss_nats:
        return f"None of the {of} was removed: {one['removal_reason'] or 'unknown why'}."
    needed, text = int(every.needed.sum()), f"No head of the {of} is shown to be needed."
    if needed:
        worst = max(_rows(every), key=lambda head: head.rise.value)
        text = f"Of the {of} {needed} {'is' if needed == 1 else 'are'} needed, most {worst.name}:"
        text += f" without it the loss rises by {worst.rise} nats."
    if steps := _steps(one):
        left, rises, entries, cache = min(steps, key=lambda of: abs(2 * of[0] - len(every)))
        text += f" With {left} left, the least important gone, it rises by {rises} nats"
        saves = f"; that saves {entries} of the parameters and {cache} of the cache"
        text += f"{saves if entries.number else ''}."
    return text


# ---- numbers -------------------------------------------------------------------------------------


def heads(one: CheckpointHeads) -> pd.DataFrame:
    """A row per head, in order of layers; `name` counts from 1. NaN for what is not known.

    `rise`: of the loss in nats without it, a Quantity. `needed`: whether it surely rises. The share
    of its weight by kind.
    """
    places = [(layer, head) for layer, size in enumerate(one.layer_heads) for head in range(size)]
    frame = pd.DataFrame(places, columns=["layer", "head"])
    frame["name"] = [f"layer {layer + 1} head {head + 1}" for layer, head in places]
    losses = one.single_sequence_loss_nats
    rises = [rise(one, losses[at][head] if losses else []) for at, head in places]
    frame["rise"] = pd.Series(rises, dtype="object")
    frame["needed"] = [(found.low or 0.0) > 0 for found in rises]
    for kind in KINDS:
        numbers = one[f"{kind}_share"]
        frame[kind] = [float(numbers[at][head]) if numbers else nan for at, head in places]
    return frame


def _rows(frame: pd.DataFrame) -> list[Any]:
    """With a column as an attribute."""
    return list(frame.itertuples())


def rise(one: CheckpointHeads, losses: Losses) -> Quantity:
    """Of each sequence's loss, in nats; only the first sequences may have been tried."""
    rises = [loss - whole for loss, whole in zip(losses, one.sequence_loss_nats, strict=False)]
    return Quantity.of(mean_interval(rises, "sequence"), "plain")


def _steps(one: CheckpointHeads) -> list[tuple[int, Quantity, Quantity, Quantity]]:
    """From all heads to none: how many are left, the rise of the loss in nats, and which shares of
    parameters, and of keys and values, are saved.
    """
    losses, whole = one.pruned_sequence_loss_nats or [], one.parameter_count or nan
    entries: Sequence[float] = one.pruned_saved_parameters or [nan] * len(losses)
    cache = one.pruned_saved_cache_ratio or [nan] * len(losses)
    return [
        (left, rise(one, some), Quantity(count / whole, "share"), Quantity(share, "share"))
        for left, some, count, share in zip(
            one.pruned_heads_left or (), losses, entries, cache, strict=True
        )
    ]


# ---- pictures ------------------------------------------------------------------------------------


def _looks(one: CheckpointHeads, caption: str) -> Maps | None:
    every = heads(one)
    if not one.far_share:
        return None
    return Maps(
        title=f"{one.checkpoint}: where its heads look, low layers above high ones",
        caption=f"{caption} · {one.token_source}",
        description=(
            "A square per kind of token: each row is a layer, each column a head; lighter is a"
            " larger share of the head's weight. The four shares of a head sum to 1. The table has"
            " every head."
        ),
        x_label="head",
        y_label="layer",
        value_label="share of the weight",
        maps=tuple(
            Map(
                label=name,
                rows=tuple(
                    map(tuple, every.pivot(index="layer", columns="head", values=kind).to_numpy())
                ),
            )
            for kind, name in KINDS.items()
        ),
        table=_every_head(one),
    )


def _low_and_high(one: CheckpointHeads) -> Table:
    """Means over the heads of each half of the layers; a middle layer is in none."""
    every, layers = heads(one), len(one.layer_heads)
    halves = [
        ("low layers", every[every.layer < layers // 2]),
        ("high layers", every[every.layer >= (layers + 1) // 2]),
    ]
    rows = [
        {"name": name, "needed": f"{some.needed.sum()} of {len(some)}", **some[[*KINDS]].mean()}
        for name, some in (halves if layers > 1 else [("all heads", every)])
    ]
    if one.even_shares:
        even = dict(zip(KINDS, one.even_shares, strict=True))
        rows.append({"name": "if all tokens weighed the same", "needed": "", **even})
    return table_of(
        f"{one.checkpoint}: low layers against high ones, means over heads",
        _rows(pd.DataFrame(rows)),
        {"heads of": attrgetter("name"), "needed": attrgetter("needed"), **SHARES},
    )


def _fewer(one: CheckpointHeads) -> Table:
    titles = ("heads left", "loss rises by, nats", "parameters saved", "keys and values saved")
    return Table(
        title=f"{one.checkpoint} with fewer heads, the least important gone first",
        columns=titles,
        rows=tuple((str(left), *of) for left, *of in _steps(one)),
    )


def _every_head(one: CheckpointHeads) -> Table:
    return table_of(
        f"Every head of {one.checkpoint}",
        _rows(heads(one)),
        {
            "head": attrgetter("name"),
            "loss without it rises by, nats": attrgetter("rise"),
            "needed": lambda head: (
                ("yes" if head.needed else "not surely") if head.rise.number else ""
            ),
            **SHARES,
        },
        folded=True,
    )
