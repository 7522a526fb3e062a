"""The tokens that a model is looked at with, and what it is to predict: always the next token.

Without --tokens FILE they are random tokens, said twice: who has induction heads knows the second
half (Olsson et al. 2022, arXiv:2209.11895), which alone is scored.
"""

import json
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import StrictInt, TypeAdapter
from torch import Generator, Tensor
from torch.nn.functional import pad

from ...files.errors import BadInput, option, shown
from ...files.printable import visible
from ...files.safe_files import opened, read_text
from ..synthetic_tasks import UNSCORED, Batch
from .model import Model

REPEATED = 24  # random tokens, which are then said again
SEQUENCES = 16
LONGEST = 48  # tokens of a sequence of the user's
MAX_BYTES = 1 << 20
TOKENIZER = "tokenizer.json"
MOST_TOKENIZER_BYTES = 128 << 20  # the largest that are published have 33
WANTED = f"a JSON list of token ids, or text for a model that has a {TOKENIZER}"
ROWS = TypeAdapter(list[list[StrictInt]])
MOST_REASON = 150  # characters


class Sequences(NamedTuple):
    """`looked_at`: what the numbers are of. `judged_on`: others, by which heads are ranked; the
    same with fewer than four. `source`: in words.
    """

    looked_at: Batch
    judged_on: Batch
    source: str


def sequences(model: Model, file: str | None, seed: int) -> Sequences:
    """Of the user's tokens, else random ones. Raises BadInput."""
    if file is not None:
        return given(model, Path(file))
    half = min(REPEATED, (model.longest or 2 * REPEATED) // 2)
    generator = Generator().manual_seed(seed)
    once = torch.randint(model.vocabulary, (2 * SEQUENCES, half), generator=generator)
    tokens = once.repeat(1, 2).to(model.model.device)
    return _halves(tokens, f"{half} random tokens, said twice", unscored=half - 1)


def given(model: Model, file: Path) -> Sequences:
    """Raises BadInput for what are not tokens of the model, and text without its tokenizer."""
    place = option("tokens", shown(str(file)))
    text, size = read_text(file, place, MAX_BYTES, WANTED), min(LONGEST, model.longest or LONGEST)
    try:
        is_json = text.lstrip().startswith("[")
        read = json.loads(text) if is_json else _encoded(text, place, model.folder)
        rows = ROWS.validate_python(read if read and isinstance(read[0], list) else [read])
        if len(rows) == 1:  # one long text, as sequences of one length
            words, size = rows[0], min(size, len(rows[0]))
            rows = [words[at : at + size] for at in range(0, len(words) - size + 1, size)]
        tokens = torch.tensor([row[:size] for row in rows[: 2 * SEQUENCES]])
        most = model.vocabulary - 1
        if tokens.shape[1] < 2 or not 0 <= int(tokens.min()) <= int(tokens.max()) <= most:
            raise ValueError
    except BadInput:
        raise
    except (ValueError, RecursionError):
        raise BadInput(
            f"{place}: not sequences of this model's tokens; wanted one list, or lists of one"
            f" length, of 2 or more whole numbers from 0 to {model.vocabulary - 1}"
        ) from None
    count, size = tokens.shape
    what = f"{count} sequence{'s' if count > 1 else ''} of {size} tokens from {file.name}"
    return _halves(tokens.to(model.model.device), what)


def _halves(tokens: Tensor, source: str, unscored: int = 0) -> Sequences:
    """`unscored`: targets at the beginning of each sequence that nobody can know."""
    targets = pad(tokens[:, 1:], (0, 1), value=UNSCORED)
    targets[:, :unscored] = UNSCORED
    batch, half = Batch(tokens, targets), min(len(tokens) // 2, SEQUENCES)
    if len(tokens) < 4:
        return Sequences(batch, batch, source)
    return Sequences(batch.part(0, half), batch.part(half, 2 * half), source)


def _encoded(text: str, place: str, folder: Path) -> list[int]:
    """Raises BadInput without a tokenizer that can be read."""
    from tokenizers import Tokenizer

    try:
        with opened((folder / TOKENIZER).resolve()) as file:
            tokenizer = Tokenizer.from_buffer(file.read(MOST_TOKENIZER_BYTES))
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        said = str((isinstance(error, OSError) and error.strerror) or error)
        why = visible(said.rpartition("buffer: ")[2].partition("\n")[0][:MOST_REASON])
        raise BadInput(
            f"{place}: text, and {TOKENIZER} of {shown(str(folder))} cannot be read ({why});"
            " wanted one that the package tokenizers wrote, or a JSON list of token ids"
        ) from None
    ids: list[int] = tokenizer.encode(text).ids
    return ids
