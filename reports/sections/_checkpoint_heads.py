"""The user's own models in "What heads learn": metrics of heads, maps, and fewer heads."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from ..analysis.checkpoint_heads import LookedAt, OneHead
from ..analysis.trained_heads import favourite, tokens_attended
from ..elements import Block, Figure, Map, Maps, Table, Text, note
from ..formatting import list_text, number_text, plural
from ._interval_texts import percent, with_range
from ._trained_pruning import loss_over_left

MOST_NAMED = 4  # heads in a sentence


def of_checkpoints(found: Sequence[LookedAt], caption: str, reading: str = "") -> Iterator[Block]:
    """`reading`: how to read maps, if nothing before says it."""
    for one in found:
        yield Text(text=answer(one))
    for one in found:
        if isinstance(reason := one.finding.get("tokenizer_reason"), str):
            yield note(f"{one.name}: {reason}.")
    yield note(
        "These models were given with --checkpoint and not trained here; all of it holds for the"
        " tokens that they were looked at with. Intervals are over sequences. A head is missed if"
        " the loss is surely higher without it, sequence by sequence; of 100 heads that nothing"
        " depends on, 2 or 3 would seem missed by chance. Nothing is trained again after a removal."
    )
    if reading and any(one.maps for one in found):
        yield note(reading)
    for one in found:
        if one.maps:
            yield _maps(one, caption)
    if any(one.left for one in found):
        yield _fewer([one for one in found if one.left], caption)
    yield _models(found)
    for one in found:
        yield _heads(one)


def answer(one: LookedAt) -> str:
    """`my_model (gpt2, 12 blocks, 144 heads): ...`."""
    finding, heads = one.finding, plural(len(one.heads), "head")
    blocks = plural(len(finding["layer_heads"]), "block")
    kind = finding.get("model_type")
    text = f"{one.name} ({kind if isinstance(kind, str) else 'model'}, {blocks}, {heads}):"
    text += f" loss {with_range(one.loss, least=0.0)} nats,"
    text += f" {percent(finding['accuracy_ratio'])} right on {finding.get('token_source')}."
    worst, usual = one.most_missed, one.median_rise
    if worst is None or usual is None:
        return f"{text} No head was removed: {finding.get('removal_reason')}."
    text += f" Without one head the loss rises by {number_text(usual)} at the median and by"
    text += f" {with_range(worst.rise)} without {worst.label};"
    text += f" surely missed: {len(one.missed)} of {len(one.heads)}."
    for share, what in (
        ("previous", "the token before"),
        ("induction", "what followed the same token before"),
    ):
        if named := one.that(share):
            text += f" {_named(named)} {'look' if len(named) > 1 else 'looks'} at {what}."
    return text


def _named(labels: Sequence[str]) -> str:
    """`Block 1 head 2 and block 2 head 1`, or `5 heads (block 1 head 2, ...)`."""
    if len(labels) > MOST_NAMED:
        return f"{len(labels)} heads ({', '.join(labels[:MOST_NAMED])}, ...)"
    text = list_text(labels)
    return text[0].upper() + text[1:]


def _maps(one: LookedAt, caption: str) -> Maps:
    words = one.finding.get("sentence")
    sentence = " ".join(map(str, words)) if isinstance(words, list) else ""
    by_label = {head.label: head for head in one.heads}
    return Maps(
        title=f"{one.name}: {_finding(one)}",
        caption=f"{caption} · the first sequence: {sentence}",
        description=(
            "One square per head: each row is a query token, each column a key token, lighter is a"
            " larger weight, and none looks ahead. The heads are those that are missed most. The"
            " table has for each how many tokens it attends to on average, and at which distance"
            " it has most weight."
        ),
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(Map(label=label, rows=rows) for label, rows in one.maps),
        table=Table(
            title=f"Heads of {one.name} that are drawn",
            columns=("head", "tokens attended to", "most weight", "loss without it rises by, nats"),
            rows=tuple(
                (
                    label,
                    number_text(tokens_attended(rows)),
                    _favourite(rows),
                    with_range(by_label[label].rise) if label in by_label else "",
                )
                for label, rows in one.maps
            ),
        ),
    )


def _finding(one: LookedAt) -> str:
    if named := one.that("induction"):
        return (
            f"{_named(named)} {'continue' if len(named) > 1 else 'continues'} what was said before"
        )
    if named := one.that("previous"):
        return f"{_named(named)} {'look' if len(named) > 1 else 'looks'} at the token before"
    few = number_text(fmean(tokens_attended(rows) for _, rows in one.maps))
    return f"a query of these heads attends to {few} tokens"


def _favourite(rows: Sequence[Sequence[float]]) -> str:
    back, share = favourite(rows)
    where = f"{plural(back, 'place')} back" if back else "at its own token"
    return f"{where}: {100 * share:.0f} %"


def _fewer(found: Sequence[LookedAt], caption: str) -> Figure:
    panels = [loss_over_left(one.name, {"loss": sorted(one.left.items())}) for one in found]
    return Figure(
        title="Given models: loss over the heads that are left; the least important go first",
        caption=f"{caption} · importance by gradient; bars are 95 % intervals over sequences",
        description=(
            "The loss over how many heads of the whole model are left, one panel per model. The"
            " table has every number."
        ),
        panels=tuple(panels),
        table=Table(
            title="Given models with fewer heads, loss in nats",
            columns=("model, heads left", "loss"),
            rows=tuple(
                (f"{one.name}, {left}", with_range(each, least=0.0))
                for one in found
                for left, each in sorted(one.left.items(), reverse=True)
            ),
            folded=True,
        ),
        same_y=False,
    )


def _models(found: Sequence[LookedAt]) -> Table:
    return Table(
        title="Given models, means over heads (least to most)",
        columns=(
            *("model", "parameters", "entropy, nats", "distance, tokens"),
            *("on the token before", "on what followed before", "difference of patterns, bits"),
            *("similarity of outputs", "rank of outputs"),
        ),
        rows=tuple(
            (
                one.name,
                _count(one.finding.get("parameter_count")),
                *(
                    _over_heads(one.heads, name, is_share=name in ("previous", "induction"))
                    for name in (
                        *("entropy", "distance", "previous", "induction"),
                        *("difference", "similarity", "rank"),
                    )
                ),
            )
            for one in found
        ),
    )


def _over_heads(heads: Sequence[OneHead], name: str, *, is_share: bool) -> str:
    values = [value for one in heads if (value := getattr(one, name)) is not None]
    if not values:
        return ""
    texts = [percent(one) if is_share else number_text(one) for one in (min(values), max(values))]
    mean = percent(fmean(values)) if is_share else number_text(fmean(values))
    return f"{mean} ({texts[0]} to {texts[1]})"


def _heads(one: LookedAt) -> Table:
    return Table(
        title=f"Every head of {one.name}",
        columns=(
            *("head", "loss without it rises by, nats", "missed", "entropy, nats"),
            *("distance, tokens", "on the token before", "on what followed before"),
        ),
        rows=tuple(
            (
                head.label,
                with_range(head.rise),
                ("yes" if head.is_missed else "not surely") if head.rise.units else "",
                number_text(head.entropy),
                number_text(head.distance),
                "" if head.previous is None else percent(head.previous),
                "" if head.induction is None else percent(head.induction),
            )
            for head in one.heads
        ),
        folded=True,
    )


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ""
