"""What trained heads look at in a text, by block, and the model without half of its heads.

From the study trained_roles, one finding per training. Heads of different seeds have no common
name, so of each block the head with most weight on a role is told.
"""

from collections.abc import Sequence
from itertools import product

from ....harness.heads.findings import TrainedRoles, When
from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Figure, Table, note, table_of
from ...formatting import list_text, plural
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import Axes, bounded, figure, percents
from ..trained import WHENS, Trainings, over_seeds

TITLE = "Roles of heads"
SECTION = "asked"
APART = True
ORDER = 12
STUDIES = (TrainedRoles.STUDY,)
ROLES = {
    "subject": "the verb's subject",
    "rare": "rare characters",
    "local": "the last three characters",
}
VARIANTS = {
    "whole": "all heads",
    "pruned_after": "removed after training",
    "pruned_during": "removed during training",
    "half_from_start": "never there",
}
REMARK = (
    "Weight on a verb's subject is that of the last letter of its stem, whose next character is the"
    " ending; on rare characters, together at most a tenth of the text, and on the last three that"
    " of any character with enough before it. Even: if all characters so far had the same weight."
    " Of each block the head with most of it is told, since heads of different seeds have no common"
    " name; the largest of several is above the even weight by chance too, which is what it is"
    " before training. Far: another noun stands between the verb and its subject. Removed heads are"
    " those of least importance to the loss; all models trained for as many steps on the same text,"
    " at one learning rate that was looked for with none of them."
)
Roles = Trainings[TrainedRoles]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """Of the first run with the study."""
    for _, caption, found in studied(TrainedRoles, meta):
        some = Roles(trainings=tuple(found))
        blocks: tuple[Block, ...] = (_strongest(some, caption), _halves(some), note(REMARK))
        return Subject(lines=(_roles_text(some), _halves_text(some)), blocks=blocks)
    return Subject(
        blocks=tuple(failed(meta, TrainedRoles.STUDY)),
        lacking=f"No model. A scenario requests them with studies: [{TrainedRoles.STUDY}].",
    )


def _roles_text(some: Roles) -> str:
    """`Most weight of one head on the verb's subject: 84.0 % (80.0 to 88.0) in block 2, ...`."""
    parts = []
    for role, name in ROLES.items():
        block = max(_blocks(some), key=lambda one: _most(some, role, "after", one).value)
        even = percents(some.mean(f"{role}_even_weight")).split(" (")[0]
        found, was = (percents(_most(some, role, when, block)) for when in WHENS[::-1])
        parts.append(f"on {name} {found} in block {block + 1}, {was} before training, even {even}")
    return f"Most weight of one head in {some.trainings[0].task}: {'; '.join(parts)}."


def _halves_text(some: Roles) -> str:
    first = some.trainings[0]
    losses = [f"{name} {bounded(some.mean(f'{one}_nats'))}" for one, name in VARIANTS.items()]
    return f"Loss in nats with {plural(first.removed_heads, 'head')} missing: {list_text(losses)}."


def _blocks(some: Roles) -> range:
    return range(len(some.trainings[0].subject_weight_after or ()))


def _most(some: Roles, role: str, when: When, block: int) -> Interval:
    """The weight of the block's head with most of it."""
    found = (one[f"{role}_weight_{when}"] for one in some.trainings)
    return over_seeds(max(blocks[block]) if blocks else None for blocks in found)


def _strongest(some: Roles, caption: str) -> Figure:
    first, blocks = some.trainings[0], _blocks(some)
    return figure(
        "The weight that one head of a block puts on a verb's subject, on rare characters and on"
        " near ones, of the head that puts most",
        f"{caption} · {first.task}, {first.heads} heads per block, {first.tokens} tokens,"
        f" {len(some.trainings)} seeds; bars are 95 % intervals over seeds",
        {
            name: {
                **{
                    f"{when} training": {
                        block + 1: _most(some, role, when, block) for block in blocks
                    }
                    for when in WHENS
                },
                "even": {block + 1: some.mean(f"{role}_even_weight") for block in blocks},
            }
            for role, name in ROLES.items()
        },
        Axes("block", "weight", "share", within=(0, 1)),
        table_of(
            "Most weight of one head, by role and block",
            product(ROLES, blocks),
            {
                "role, block": lambda of: f"{ROLES[of[0]]}, {of[1] + 1}",
                "before training": lambda of: percents(_most(some, of[0], "before", of[1])),
                "after training": lambda of: percents(_most(some, of[0], "after", of[1])),
                "even": lambda of: percents(some.mean(f"{of[0]}_even_weight")),
            },
        ),
        names=(*(f"{when} training" for when in WHENS), "even"),
    )


def _halves(some: Roles) -> Table:
    first = some.trainings[0]

    def change(variant: str) -> Quantity:
        rises = (one[f"{variant}_nats"] - one.whole_nats for one in some.trainings)
        return Quantity(None) if variant == "whole" else bounded(over_seeds(rises))

    return table_of(
        f"The model without {first.removed_heads} of its heads",
        VARIANTS,
        {
            "these heads": lambda one: VARIANTS[one] if one != "whole" else "there",
            "loss, nats": lambda one: bounded(some.mean(f"{one}_nats"), least=0.0),
            "more than with all, seed by seed": change,
            "right endings of verbs": lambda one: percents(some.mean(f"{one}_endings_ratio")),
            "of far ones": lambda one: percents(some.mean(f"{one}_far_endings_ratio")),
        },
    )
