"""The heads of models that the user gave: what they do, which are needed, and fewer of them.

From the study checkpoint_heads. A removal is judged sequence by sequence: the loss without a head
less the loss with all heads, of the same tokens. Intervals are over sequences.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean, median
from typing import Any, NamedTuple

from ....harness.files.printable import spaced
from ....harness.heads.findings import CheckpointHeads
from ....harness.stats.intervals import Interval, mean_interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Card, Figure, Maps, Table, note, table_of
from ...formatting import capital, list_text, number_text, paragraph, plural
from ...quantity import Number
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import Axes, bounded, figure, percent
from ..maps import READING, Rows, head_name, looked_at, mean_attended, side_by_side

TITLE = "Heads of given models"
SECTION = "asked"
APART = True
ORDER = 12
STUDIES = (CheckpointHeads.STUDY,)
UNIT = "sequence"
LOCAL_SHARE = 0.5  # of the weight, from which a head is called a previous-token or induction head
LOSS = Axes("heads left", "loss, nats")
MOST_NAMED = 4  # heads in a sentence
INDUCTION, PREVIOUS = "induction_share", "previous_share"
TITLES = {
    "entropy_nats": "entropy, nats",
    "distance_tokens": "distance, tokens",
    PREVIOUS: "on the token before",
    INDUCTION: "on what followed before",
    "pattern_difference": "difference of patterns, bits",
    "output_similarity": "similarity of outputs",
    "output_rank": "rank of outputs",
}
LOOKS_AT = {INDUCTION: "what followed the same token before", PREVIOUS: "the token before"}


class Head(NamedTuple):
    """`metrics` by name; None: not known. `rise`: of the loss in nats without it; no readings if it
    was not removed.
    """

    label: str
    metrics: dict[str, float | None]
    rise: Interval

    @property
    def is_missed(self) -> bool:
        return self.rise.low > 0


class Model(NamedTuple):
    """`left`: the loss by how many heads are left. `maps`: of some heads, by label."""

    found: CheckpointHeads
    heads: list[Head]
    left: dict[float, Interval]
    maps: list[tuple[str, Rows]]

    @property
    def name(self) -> str:
        return self.found.checkpoint

    @property
    def missed(self) -> list[Head]:
        return [one for one in self.heads if one.is_missed]

    @property
    def most_missed(self) -> Head | None:
        known = [one for one in self.heads if one.rise.units]
        return max(known, key=lambda one: one.rise.value, default=None)

    def that(self, share: str) -> list[str]:
        """Heads with at least half of their weight there: INDUCTION or PREVIOUS."""
        return [one.label for one in self.heads if (one.metrics[share] or 0.0) >= LOCAL_SHARE]


def _model(one: CheckpointHeads) -> Model:
    sizes, whole = one.layer_heads, one.sequence_loss_nats
    layers = one.layers if one.layers and len(one.layers) == len(sizes) else range(len(sizes))
    labels = {
        (place, head): head_name(layer, head, several=len(sizes) > 1)
        for place, (layer, count) in enumerate(zip(layers, sizes, strict=True))
        for head in range(count)
    }

    def of_heads(name: str) -> dict[tuple[int, int], Any]:
        """What is known, by block and head."""
        return {
            (place, head): value
            for place, values in enumerate(one[name] or ())
            for head, value in enumerate(values)
        }

    metrics = {name: of_heads(name) for name in TITLES}
    losses = of_heads("single_sequence_loss_nats")
    left = zip(one.pruned_heads_left or (), one.pruned_sequence_loss_nats or (), strict=True)
    drawn = zip(one.drawn_heads or (), one.weight_rows or (), strict=True)

    def head(place: tuple[int, int], label: str) -> Head:
        rises = [a - b for a, b in zip(losses.get(place, ()), whole, strict=False)]
        known = {name: values.get(place) for name, values in metrics.items()}
        return Head(label, known, mean_interval(rises, UNIT))

    return Model(
        found=one,
        heads=[head(*of) for of in labels.items()],
        left={count: mean_interval(values, UNIT) for count, values in left if values},
        maps=[(label, rows) for (b, h), rows in drawn if (label := labels.get((b, h)))],
    )


# ---- what is said --------------------------------------------------------------------------------


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first run that looked at models."""
    found = [(caption, [*map(_model, some)]) for _, caption, some in studied(CheckpointHeads, meta)]
    maps = [_maps(one, caption) for caption, some in found for one in some if one.maps]
    blocks = [block for caption, some in found for block in _of_run(some, caption)]
    return Subject(
        card=next((_card(some, next(iter(maps), None)) for _, some in found), None),
        lines=tuple(answer(one) for _, some in found for one in some),
        blocks=(*maps[1:], *blocks, *failed(meta, CheckpointHeads.STUDY)),
        lacking="No model was given: --checkpoint PATH looks at one.",
    )


def _card(found: Sequence[Model], maps: Maps | None) -> Card:
    """`maps`: of the first model that has any."""
    table = _missed(found)
    return Card(
        title=TITLE,
        subtitle="what they look at, and which are needed",
        sentence=" ".join(map(_sentence, found)),
        picture=maps or table,
        decisions=table if maps else None,
        note=paragraph(
            f"{maps.title}." if maps else "",
            "Needed: without the head the loss rises, by an interval over sequences; on the tokens"
            " that the model was looked at with. Previous-token heads have half of their weight on"
            " the token before, induction heads on what followed the same token before.",
        ),
        wide=True,
    )


def _missed(found: Sequence[Model]) -> Table:
    return table_of(
        TITLE,
        found,
        {
            "model": lambda one: one.name,
            "needed": lambda one: Number(
                f"{len(one.missed)} of {len(one.heads)}" if one.most_missed else ""
            ),
            "previous-token heads": lambda one: len(one.that(PREVIOUS)),
            "induction heads": lambda one: len(one.that(INDUCTION)),
        },
    )


def _sentence(one: Model) -> str:
    """`Of the 144 heads of gpt2 30 are needed, most block 1 head 2: without it the loss
    rises by 0.4 (0.3 to 0.5) nats.`
    """
    worst, count = one.most_missed, plural(len(one.heads), "head")
    if worst is None:
        return f"Of {one.name} no head was removed: {one.found.removal_reason}."
    if not one.missed:
        return f"Of the {count} of {one.name} none is shown to be needed."
    verb = "is" if len(one.missed) == 1 else "are"
    return (
        f"Of the {count} of {one.name} {len(one.missed)} {verb} needed, most {worst.label}:"
        f" without it the loss rises by {bounded(worst.rise)} nats."
    )


def answer(one: Model) -> str:
    """`my_model (gpt2, 12 blocks, 144 heads): loss 3.1 nats, ...`."""
    found, loss = one.found, mean_interval(one.found.sequence_loss_nats, UNIT)
    blocks, heads = plural(len(found.layer_heads), "block"), plural(len(one.heads), "head")
    text = f"{one.name} ({found.model_type or 'model'}, {blocks}, {heads}):"
    text += f" loss {bounded(loss, least=0.0)} nats,"
    text += f" {percent(found.accuracy_ratio)} right on {found.token_source}."
    if one.most_missed is not None:
        usual = median(head.rise.value for head in one.heads if head.rise.units)
        text += f" Without one head the loss rises by {number_text(usual)} at the median."
        text += "".join(f" {capital(where)}." for where in _looking(one))
    return text


def _looking(one: Model) -> list[str]:
    """`looking at the token before: block 1 head 2 and block 2 head 1`."""
    return [
        f"looking at {what}: {list_text(labels, MOST_NAMED)}"
        for share, what in LOOKS_AT.items()
        if (labels := one.that(share))
    ]


def _of_run(found: Sequence[Model], caption: str) -> Iterator[Block]:
    for one in found:
        if one.found.tokenizer_reason is not None:
            yield note(f"{one.name}: {one.found.tokenizer_reason}.")
    yield note(
        "These models were given with --checkpoint and not trained here; all of it holds for the"
        " tokens that they were looked at with. Intervals are over sequences. A head is needed if"
        " the loss is surely higher without it, sequence by sequence; of 100 heads that nothing"
        " depends on, 2 or 3 would seem needed by chance. Nothing is trained again after a removal."
    )
    if any(one.maps for one in found):
        yield note(READING)
    if pruned := [one for one in found if one.left]:
        yield _fewer(pruned, caption)
    yield _metrics(found)
    yield from map(_heads, found)


def _maps(one: Model, caption: str) -> Maps:
    rises = {head.label: bounded(head.rise) for head in one.heads}
    attended = f"a query of these heads attends to {mean_attended(one.maps)} tokens"
    return side_by_side(
        f"{one.name}: {[*_looking(one), attended][0]}",
        f"{caption} · the first sequence: {' '.join(one.found.sentence or ())}",
        one.maps,
        table_of(
            f"Heads of {one.name} that are drawn",
            one.maps,
            {
                "head": lambda drawn: drawn[0],
                **looked_at(lambda drawn: drawn[1]),
                "loss without it rises by, nats": lambda drawn: rises[drawn[0]],
            },
        ),
    )


def _fewer(found: Sequence[Model], caption: str) -> Figure:
    return figure(
        "Given models: loss over the heads that are left; the least important go first",
        f"{caption} · importance by gradient; bars are 95 % intervals over sequences",
        {one.name: {"loss": one.left} for one in found},
        LOSS,
        table_of(
            "Given models with fewer heads, loss in nats",
            [
                (f"{one.name}, {left}", bounded(loss, least=0.0))
                for one in found
                for left, loss in sorted(one.left.items(), reverse=True)
            ],
            {"model, heads left": lambda one: one[0], "loss": lambda one: one[1]},
            folded=True,
        ),
        same_y=False,
    )


def _metrics(found: Sequence[Model]) -> Table:
    return table_of(
        "Given models, means over heads (least to most)",
        found,
        {
            "model": lambda one: one.name,
            "parameters": lambda one: Number(
                "" if (count := one.found.parameter_count) is None else spaced(count)
            ),
            **{title: partial(_least_to_most, name) for name, title in TITLES.items()},
        },
    )


def _least_to_most(name: str, of: Model) -> Number:
    known = [value for one in of.heads if (value := one.metrics[name]) is not None]
    if not known:
        return Number()
    mean, low, high = (_metric(name, one) for one in (fmean(known), min(known), max(known)))
    return Number(f"{mean} ({low} to {high})")


def _metric(name: str, value: float | None) -> Number:
    return percent(value) if name in LOOKS_AT else Number(number_text(value))


def _heads(one: Model) -> Table:
    def metric(name: str, head: Head) -> Number:
        return _metric(name, head.metrics[name])

    return table_of(
        f"Every head of {one.name}",
        one.heads,
        {
            "head": lambda head: head.label,
            "loss without it rises by, nats": lambda head: bounded(head.rise),
            "needed": lambda head: (
                ("yes" if head.is_missed else "not surely") if head.rise.units else ""
            ),
            **{title: partial(metric, name) for name, title in [*TITLES.items()][:4]},
        },
        folded=True,
    )
