"""The heads of models that the user gave: where they look, which are needed, what removing saves.

From the study checkpoint_heads. A removal is judged sequence by sequence: the loss without a head
less the loss with all heads, of the same tokens. Intervals are over sequences.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import nan
from statistics import fmean
from typing import NamedTuple

from ....harness.heads.findings import CheckpointHeads, Losses
from ....harness.stats.intervals import mean_interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Card, Map, Maps, Table, table_of
from ...formatting import plural
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied

TITLE = "Heads of given models"
SECTION = "asked"
APART = True
ORDER = 12
STUDIES = (CheckpointHeads.STUDY,)
KINDS = {"itself": "itself", "near": "near tokens", "first": "the first", "far": "far tokens"}
"""Of keys, in the order of `even_shares`."""
NOTE = (
    "A head is needed if the loss is surely higher without it, by an interval over sequences; of"
    " 100 heads that nothing depends on, 2 or 3 would seem needed by chance. Near are the 4 tokens"
    " before a query, far those between them and the first. All of it holds for the tokens that the"
    " model was looked at with. Nothing is trained again after a removal."
)


class Head(NamedTuple):
    """`layer`: its place among those with attention, from 0. `rise`: of the loss in nats without
    it; no number if it was not removed. `shares`: of its weight, by kind; NaN if not known.
    """

    name: str
    layer: int
    rise: Quantity
    shares: dict[str, float]

    @property
    def is_needed(self) -> bool:
        return (self.rise.low or 0.0) > 0


class Step(NamedTuple):
    """With the least important heads removed: how many are left, the rise of the loss in nats, and
    which shares of parameters, and of keys and values, are saved.
    """

    left: int
    rise: Quantity
    parameters: Quantity
    cache: Quantity


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first model."""
    found = [(one, caption) for _, caption, some in studied(CheckpointHeads, meta) for one in some]
    return Subject(
        card=next((_card(*of) for of in found), None),
        lines=tuple(sentence(one) for one, _ in found[1:]),
        blocks=(
            *(block for of in found for block in _blocks(*of, in_card=of is found[0])),
            *failed(meta, CheckpointHeads.STUDY),
        ),
        lacking="No model was given: --checkpoint DIR looks at one.",
    )


def _card(one: CheckpointHeads, caption: str) -> Card:
    looks, low_and_high = _looks(one, caption), _low_and_high(one)
    return Card(
        title=TITLE,
        subtitle="where they look, from low layers down to high ones",
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
    if one.pruned_heads_left:
        yield _fewer(one)
    if looks is None:
        yield _every_head(one)


def sentence(one: CheckpointHeads) -> str:
    """`Of the 144 heads of gpt2 30 are needed, most layer 1 head 2: without it the loss rises by
    0.4 (0.3 to 0.5) nats. With 72 left, the least important gone, it rises by 1.2 (1.1 to 1.3)
    nats; that saves 11 % of the parameters and 50 % of the cache.`
    """
    every, of = heads(one), f"{plural(sum(one.layer_heads), 'head')} of {one.checkpoint}"
    if not one.single_sequence_loss_nats:
        return f"None of the {of} was removed: {one['removal_reason'] or 'unknown why'}."
    needed = sum(head.is_needed for head in every)
    worst = max(every, key=lambda head: head.rise.value or 0.0)
    text = (
        f"Of the {of} {needed} {'is' if needed == 1 else 'are'} needed, most {worst.name}: without"
        f" it the loss rises by {worst.rise} nats."
        if needed
        else f"Of the {of} none is shown to be needed."
    )
    half = min(steps(one), key=lambda step: abs(2 * step.left - len(every)), default=None)
    if half is None:
        return text
    saves = f"; that saves {half.parameters} of the parameters and {half.cache} of the cache"
    return (
        f"{text} With {half.left} left, the least important gone, it rises by {half.rise} nats"
        f"{saves if half.parameters.number else ''}."
    )


# ---- numbers -------------------------------------------------------------------------------------


def heads(one: CheckpointHeads) -> list[Head]:
    """In order of layers; both are counted from 1."""
    losses = one.single_sequence_loss_nats or []

    def of_head(numbers: list[list[float]] | None, at: int, head: int) -> float:
        return numbers[at][head] if numbers else nan

    return [
        Head(
            f"layer {at + 1} head {head + 1}",
            at,
            rise(one, losses[at][head] if losses else []),
            {kind: of_head(one[f"{kind}_share"], at, head) for kind in KINDS},
        )
        for at, size in enumerate(one.layer_heads)
        for head in range(size)
    ]


def steps(one: CheckpointHeads) -> list[Step]:
    """From all heads to none."""
    count = len(one.pruned_heads_left or ())
    entries = one.pruned_saved_parameters or [None] * count
    cache = one.pruned_saved_cache_ratio or [None] * count
    parts = (one.pruned_heads_left or (), one.pruned_sequence_loss_nats or (), entries, cache)
    return [
        Step(
            left,
            rise(one, losses),
            Quantity(
                saved / one.parameter_count if saved and one.parameter_count else saved, "share"
            ),
            Quantity(share, "share"),
        )
        for left, losses, saved, share in zip(*parts, strict=True)
    ]


def rise(one: CheckpointHeads, losses: Losses) -> Quantity:
    """Of each sequence's loss, in nats; only the first sequences may have been tried."""
    rises = [loss - whole for loss, whole in zip(losses, one.sequence_loss_nats, strict=False)]
    return Quantity.of(mean_interval(rises, "sequence"), "plain")


# ---- pictures ------------------------------------------------------------------------------------


def _looks(one: CheckpointHeads, caption: str) -> Maps | None:
    """None for rows of earlier versions, and for few tokens."""
    if not one.far_share:
        return None
    every, most = heads(one), max(one.layer_heads)
    layers = [[head for head in every if head.layer == at] for at in range(len(one.layer_heads))]
    return Maps(
        title=f"{one.checkpoint}: where its heads look, low layers above high ones",
        caption=f"{caption} · {one.token_source}",
        description=(
            "A square per kind of token: each row is a layer, each column a head; lighter is a"
            " larger share of the head's weight. The four shares of a head sum to 1. A table has"
            " every head."
        ),
        x_label="head",
        y_label="layer",
        value_label="share of the weight",
        maps=tuple(
            Map(
                label=f"on {name}",
                rows=tuple(
                    (*(head.shares[kind] for head in some), *[nan] * (most - len(some)))
                    for some in layers
                ),
            )
            for kind, name in KINDS.items()
        ),
        table=_every_head(one),
    )


def _low_and_high(one: CheckpointHeads) -> Table:
    """Means over the heads of each half of the layers; a middle layer is in none."""
    every, middle = heads(one), (len(one.layer_heads) - 1) / 2
    halves = {
        "low layers": [head for head in every if head.layer < middle],
        "high layers": [head for head in every if head.layer > middle],
    }
    rows = halves if halves["low layers"] else {"all layers": every}
    columns = {
        name: partial(_mean, kind, one.even_shares[at] if one.even_shares else nan)
        for at, (kind, name) in enumerate(KINDS.items())
    }
    return table_of(
        f"{one.checkpoint}: low layers against high ones, means over heads",
        [*rows.items(), *([("if all tokens weighed the same", [])] if one.even_shares else [])],
        {
            "heads of": lambda row: row[0],
            "needed": lambda row: (
                f"{sum(head.is_needed for head in row[1])} of {len(row[1])}" if row[1] else ""
            ),
            **{f"on {name}": of for name, of in columns.items()},
        },
    )


def _mean(kind: str, even: float, row: tuple[str, list[Head]]) -> Quantity:
    of = [head.shares[kind] for head in row[1]]
    return Quantity(fmean(of) if of else even, "share")


def _fewer(one: CheckpointHeads) -> Table:
    return table_of(
        f"{one.checkpoint} with fewer heads, the least important gone first",
        steps(one),
        {
            "heads left": lambda step: str(step.left),
            "loss rises by, nats": lambda step: step.rise,
            "parameters saved": lambda step: step.parameters,
            "keys and values saved": lambda step: step.cache,
        },
    )


def _every_head(one: CheckpointHeads) -> Table:
    return table_of(
        f"Every head of {one.checkpoint}",
        heads(one),
        {
            "head": lambda head: head.name,
            "loss without it rises by, nats": lambda head: head.rise,
            "needed": lambda head: (
                ("yes" if head.is_needed else "not surely") if head.rise.number else ""
            ),
            **{f"on {name}": partial(_of_head, kind) for kind, name in KINDS.items()},
        },
        folded=True,
    )


def _of_head(kind: str, head: Head) -> Quantity:
    return Quantity(head.shares[kind], "share")
