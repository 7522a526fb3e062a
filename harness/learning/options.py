"""`attnbench run --checkpoint`: its options."""

from typing import Annotated

import typer

from ..cli.flags import WHAT

Checkpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint",
        metavar="[NAME=]PATH",
        help="A trained model whose heads to look at: a safetensors file that attnbench saved, or"
        " the folder of a Hugging Face model. Alone, or beside scenarios; repeatable.",
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
