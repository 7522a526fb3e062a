"""`attnbench run --checkpoint`: the options, and the scenario of a run without any other."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .flags import WHAT

if TYPE_CHECKING:
    from ..scenario import Entry
    from ..studies.checkpoints.given import Checkpoint

Checkpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint",
        metavar="[NAME=]PATH",
        help="A trained model whose heads to look at: a safetensors file that attnbench saved, or"
        " the folder of a Hugging Face model. Alone or beside a scenario; repeatable.",
        rich_help_panel=WHAT,
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="With --checkpoint: a JSON list of token ids, or text for a model with a"
        " tokenizer.json; built-in tokens if not given.",
        rich_help_panel=WHAT,
    ),
]


def alone(checkpoints: "tuple[Checkpoint, ...]", changes: list[str]) -> "list[Entry]":
    """A scenario of which nothing is measured but the checkpoints. Raises BadInput."""
    from ..scenario import Entry, from_mapping
    from ..studies.checkpoints.given import STUDY

    data: dict[str, Any] = {
        "name": STUDY,
        "question": "What do the heads of "
        + ", ".join(one.name for one in checkpoints)[:200]
        + " look at, and which of them can be removed?",
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": 16, "d_model": 64, "heads": 4, "causal": True},
        "plan": "quick",
        "limits": {"timeout_s": 600},
    }
    scenario = from_mapping(data, "--checkpoint", changes)
    return [Entry(scenario=scenario, only=(f"study-{STUDY}",))]
