"""What heads learn: quality over their number beside cost, trained maps, fewer heads.

From the study trained_heads. What it says is limited to the tasks and sizes of that study.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import fmean

from ....harness.learning.findings import TrainedHeads, When
from ....harness.rows.findings import by
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Card, Figure, Maps, Table, note, table_of
from ...formatting import list_text, number_text, plural
from ...quantity import Cell, Number, Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import bounded, figure, percent, percents, right_answers
from ..maps import READING, back_text, favourite, looked_at, mean_attended, named, side_by_side
from ..trained import ASKS, LOCAL_SHARE, MARGIN_RATIO, HeadCount, TaskResult, results, spread
from ._disturbed import fewer, noisy

TITLE = "What heads learn"
SECTION = "asked"
PAGE = "learning"
ORDER = 11
NEEDS = ()
STUDIES = (TrainedHeads.STUDY,)
MOST_DRAWN = 8  # heads of a model whose maps are shown
SHARP_SHARE = 0.5  # of the weight at one distance, from which a head is said to look there
STANDINGS = {"best": "the best", "equal": "as good", "worse": "worse", "not decided": "not decided"}

QUALITY: dict[str, Callable[[HeadCount], Cell]] = {
    "task, heads": lambda one: one.label,
    "right answers": lambda one: percents(one.accuracy),
    "loss, nats": lambda one: bounded(one.loss, least=0.0),
    "against the best": lambda one: STANDINGS[one.standing],
    "time per step": lambda one: bounded(one.step, "ms"),
    "memory of a step": lambda one: Quantity(one.peak_bytes, "bytes"),
    "worth its time": lambda one: "yes" if one.is_worth else "no",
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first run that trained several numbers of heads."""
    trained = [(caption, results(found)) for _, caption, found in studied(TrainedHeads, meta)]
    over_heads = [[one for one in found if len(one.counts) > 1] for _, found in trained]
    blocks = [block for caption, found in trained for block in _of_run(found, caption)]
    return Subject(
        card=next((_card(found) for found in over_heads if found), None),
        lines=tuple(answer(one) for _, found in trained for one in found),
        blocks=(*blocks, *failed(meta, TrainedHeads.STUDY)),
        lacking="Nothing was trained. A scenario requests it with studies: [trained_heads].",
    )


# ---- the answer ----------------------------------------------------------------------------------


def _card(found: Sequence[TaskResult]) -> Card:
    return Card(
        title="How many heads",
        subtitle="by task, after training",
        sentence=_sentence(found),
        picture=table_of(
            "The fewest heads that are enough",
            found,
            {
                "task": lambda one: one.task,
                "enough": lambda one: Number(plural(one.enough.heads, "head")),
                "right answers": lambda one: percent(one.enough.accuracy.value),
                "with 1 head": lambda one: (
                    percent(count.accuracy.value) if (count := one.exactly(1)) else ""
                ),
                "with the most": lambda one: Number(
                    f"{percent(one.counts[-1].accuracy.value)} ({one.counts[-1].heads})"
                ),
                "time of a step": lambda one: _over_first(one, lambda count: count.step.value),
                "memory of a step": lambda one: _over_first(one, lambda count: count.peak_bytes),
            },
        ),
        note=(
            f"Enough: no other number of heads is better by {100 * MARGIN_RATIO:g} points of"
            " accuracy, by an interval over seeds. Equal parameters and steps; small models, so"
            " nothing follows for large ones. Time and memory: with enough heads, and with the"
            " most, over 1 head."
        ),
        wide=True,
    )


def _sentence(found: Sequence[TaskResult]) -> str:
    """`1 head is enough for recall and copy; 8 heads are enough for six_relations. 64 heads are
    worse than the best for text.`
    """
    parts = [
        f"{_are(heads)} enough for {list_text([one.task for one in some])}"
        for heads, some in sorted(by(found, lambda one: one.enough.heads).items())
    ]
    most = max(count.heads for one in found for count in one.counts)
    too_many = [one.task for one in found if most in one.of("worse")]
    worse = f" {most} heads are worse than the best for {list_text(too_many)}." if too_many else ""
    return f"{'; '.join(parts)}.{worse}"


def _over_first(one: TaskResult, number: Callable[[HeadCount], float | None]) -> Number:
    """With enough heads and with the most: `× 2.22, × 3.98`; "" if one is not known."""
    first, *others = map(number, (one.counts[0], one.enough, one.counts[-1]))
    if not first or not first > 0 or None in others:
        return Number()
    return Number(", ".join(f"× {number_text(value / first)}" for value in others if value))


def answer(one: TaskResult) -> str:
    """`six_relations (which bits ...): 8 heads are enough, 98.9 % (98.1 to 99.7) of the answers are
    right, 4.8 % with 1. 1, 2 and 4 are worse.`
    """
    enough, first, asks = one.enough, one.counts[0], ASKS.get(one.task)
    with_one = "" if enough is first else f", {percent(first.accuracy.value)} with {first.heads}"
    text = f"{one.task} ({asks})" if asks else one.task
    text += f": {_are(enough.heads)} enough"
    text += f", {percents(enough.accuracy)} of the answers are right{with_one}."
    if worse := one.of("worse"):
        text += f" {list_text([*map(str, worse)])} {'is' if len(worse) == 1 else 'are'} worse."
    return text


def _are(heads: int) -> str:
    return f"{plural(heads, 'head')} {'is' if heads == 1 else 'are'}"


# ---- the details ---------------------------------------------------------------------------------


def _of_run(found: Sequence[TaskResult], of_run: str) -> Iterator[Block]:
    caption = f"{of_run} · {_sizes(found)}"
    yield note(
        "The models differ in their number of heads only: width, parameters, steps and batches are"
        " the same, and so is d_model = heads × d_k. A number of heads is as good as the best if"
        f" the interval of the difference, seed by seed, is within {100 * MARGIN_RATIO:g} points of"
        " accuracy. These are small models and artificial tasks: another size, another task or"
        " longer training may need another number of heads, and nothing follows for large models."
    )
    yield _quality(found, caption)
    yield _quality_over_time(found, caption)
    if maps := [figure for one in found for figure in _maps(one, of_run)]:
        yield note(READING)
        yield from maps
    yield _metrics(found)
    yield from fewer(found, caption)
    yield noisy(found, caption)


def _sizes(found: Sequence[TaskResult]) -> str:
    counts = _counts(found)
    one, seeds = counts[0].trainings[0], {len(count.trainings) for count in counts}
    depths = sorted({f"{count.trainings[0].depth}" for count in counts})
    return (
        f"d_model {one.d_model}, {' or '.join(depths)} blocks, {one.tokens} tokens,"
        f" {' to '.join(dict.fromkeys(map(str, (min(seeds), max(seeds)))))} seeds"
    )


def _quality(found: Sequence[TaskResult], caption: str) -> Figure:
    needs = [f"{one.task} {one.enough.heads}" for one in found]
    return figure(
        f"The fewest heads that are enough: {list_text(needs)}",
        f"{caption} · new sequences; bars are 95 % intervals over seeds",
        {one.task: {"accuracy": {c.heads: c.accuracy for c in one.counts}} for one in found},
        right_answers("heads", "log"),
        table_of(
            "Quality and cost over the number of heads",
            _counts(found),
            QUALITY,
        ),
    )


def _quality_over_time(found: Sequence[TaskResult], caption: str) -> Figure:
    """The Pareto picture: each point a number of heads."""
    worth = {one.task: [str(c.heads) for c in one.counts if c.is_worth] for one in found}
    return figure(
        "What quality costs in time: up is better, left is cheaper",
        f"{caption} · a point per number of heads, from left to right in order of time",
        {
            f"{one.task}: worth it {list_text(worth[one.task])}": {
                "accuracy": {c.step.value: c.accuracy for c in one.counts if c.step.units}
            }
            for one in found
        },
        right_answers("ms per training step"),
        table_of(
            "Numbers of heads that are surely more accurate than every faster one",
            [one for one in _counts(found) if one.is_worth],
            QUALITY,
            folded=True,
        ),
    )


def _counts(found: Sequence[TaskResult]) -> list[HeadCount]:
    return [count for one in found for count in one.counts]


def _metrics(found: Sequence[TaskResult]) -> Table:
    Metric = Callable[[tuple[HeadCount, When]], Cell]

    def mean(metric: str) -> Metric:
        return lambda of: bounded(of[0].over_heads(metric, of[1], fmean))

    def local(metric: str) -> Metric:
        return lambda of: percents(of[0].over_heads(metric, of[1], _local_share))

    whens: tuple[When, ...] = ("before", "after")
    return table_of(
        "Heads before and after training, means over heads",
        product(_counts(found), whens),
        {
            "task, heads, when": lambda of: f"{of[0].label}, {of[1]}",
            "entropy, nats": mean("entropy_nats"),
            "distance, tokens": mean("distance_tokens"),
            "nearest to farthest head, tokens": lambda of: bounded(
                of[0].over_heads("distance_tokens", of[1], spread, fewest=2)
            ),
            "previous-token heads": local("previous_share"),
            "induction heads": local("induction_share"),
            "difference of patterns, bits": mean("pattern_difference"),
            "similarity of outputs": mean("output_similarity"),
            "rank of outputs": mean("output_rank"),
        },
        folded=True,
    )


def _local_share(values: list[float]) -> float:
    return fmean(value >= LOCAL_SHARE for value in values)


# ---- maps ----------------------------------------------------------------------------------------


def _maps(result: TaskResult, caption: str) -> Iterator[Maps]:
    """Of one training: of the fewest heads that are enough, but two or more, if it kept some."""
    wanted = max(2, result.enough.heads)
    for count in sorted(result.counts, key=lambda c: (c.heads < wanted, abs(c.heads - wanted))):
        for one in count.trainings if 1 < count.heads <= MOST_DRAWN else ():
            if one.weight_rows_before and one.weight_rows_after:
                yield _before_and_after(count, one, caption)
                return


def _before_and_after(count: HeadCount, one: TrainedHeads, caption: str) -> Maps:
    before, after = named(one.weight_rows_before or []), named(one.weight_rows_after or [])
    looks = [
        f"{name} looks {back_text(back)}"
        for name, rows in after
        for back, share in [favourite(rows)]
        if share >= SHARP_SHARE
    ]
    finding = list_text(looks) or (
        f"a query attends to {mean_attended(after)} tokens, and no head to a fixed distance"
    )
    words = " ".join(one.sentence or ())
    return side_by_side(
        f"{count.task}, {count.heads} heads: after training {finding}",
        f"{caption} · the same sequence before and after training: {words}",
        [
            (f"{name}, {when}", rows)
            for when, maps in (("before", before), ("after", after))
            for name, rows in maps
        ],
        table_of(
            f"Heads of {count.task}",
            list(zip(after, before, strict=False)),
            {
                "head": lambda one: one[0][0],
                **looked_at(lambda one: one[0][1]),
                **looked_at(lambda one: one[1][1], "before: "),
            },
        ),
    )
