"""`attnbench run --checkpoint`: its options."""

from typing import Annotated

from ..cli.options import WHAT, option

Checkpoints = Annotated[
    list[str] | None,
    option(
        "--checkpoint [NAME=]PATH",
        "A trained model whose heads to look at: a safetensors file that attnbench saved, or"
        " the folder of a Hugging Face model. Alone, or beside scenarios; repeatable.",
        WHAT,
    ),
]
Tokens = Annotated[
    str | None,
    option(
        "--tokens FILE",
        "With --checkpoint: a JSON list of token ids, or text for a model with a"
        " tokenizer.json; built-in tokens if not given.",
        WHAT,
    ),
]
