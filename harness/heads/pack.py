"""What the learning pack adds to the command line: `attnbench run --checkpoint`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ..cli.options import MODELS, option
from ..run.packs import Pack

if TYPE_CHECKING:
    from ..scenario.selection import Selection

Checkpoints = Annotated[
    list[str] | None,
    option(
        "--checkpoint [NAME=]PATH",
        "A trained model whose heads to look at: a safetensors file that attnbench saved, or"
        " the folder of a Hugging Face model. Alone, or beside scenarios; repeatable.",
        MODELS,
    ),
]
Tokens = Annotated[
    str | None,
    option(
        "--tokens FILE",
        "With --checkpoint: a JSON list of token ids, or text for a model with a"
        " tokenizer.json; built-in tokens if not given.",
        MODELS,
    ),
]


def selected(
    selection: "Selection",
    *,
    checkpoint: Sequence[str | tuple[str | None, str]] | None,
    tokens: str | None,
) -> "Selection":
    """With the models to look at. A pair is a name, or None, and a path. Raises BadInput."""
    if not checkpoint and tokens is None:
        return selection
    from .checkpoints.given import read_checkpoints

    models = read_checkpoints(checkpoint or (), tokens)
    return replace(selection, attachments=models)


PACK = Pack(run_options={"checkpoint": Checkpoints, "tokens": Tokens}, selected=selected)
