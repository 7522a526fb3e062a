"""What the learning pack adds to the command line: `attnbench run --checkpoint`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..run.packs import Pack
from .options import Checkpoints, Tokens

if TYPE_CHECKING:
    from ..scenario.selection import Selection


def selected(
    selection: "Selection",
    *,
    checkpoint: Sequence[str | tuple[str | None, str]] | None,
    tokens: str | None,
) -> "Selection":
    """With the models to look at. A pair is a name, or None, and a path. Raises BadInput."""
    from .checkpoints.given import read_checkpoints

    models = read_checkpoints(checkpoint or (), tokens)
    return replace(selection, attachments=models)


PACK = Pack(run_options={"checkpoint": Checkpoints, "tokens": Tokens}, selected=selected)
