"""The tokens that a model is looked at with, and what it is to predict.

the task that a decoder was trained on   sequences that it has not seen
random tokens, said twice                for every other model: who has induction heads knows
                                         the second half (Olsson et al. 2022, arXiv:2209.11895)
--tokens FILE                            the user's own: the next token
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import StrictInt, TypeAdapter
from torch import Generator, Tensor
from torch.nn.functional import pad

from ...files.errors import BadInput, option, shown
from ...files.printable import visible
from ...files.safe_files import opened, read_text
from ..removal import About
from ..synthetic_tasks import TASKS, UNSCORED, Batch, task
from ..training import held_out
from .given import TOKENIZER

REPEATED = 24  # random tokens, which are then said again
SEQUENCES = 16
LONGEST = 48  # tokens of a sequence of the user's
MAX_BYTES = 1 << 20
MOST_TOKENIZER_BYTES = 128 << 20  # the largest that are published have 33
ROWS = TypeAdapter(list[list[StrictInt]])
MOST_REASON = 150  # characters
MAX_LABEL = 12  # characters of a token's name


class Sequences(NamedTuple):
    """`looked_at`: what the numbers are of. `judged_on`: others, by which heads are ranked; the
    same if there are no others. `names`: of the first sequence's tokens. `source`: in words.
    `unnamed`: why tokens are called by their numbers, if that is not as it should be.
    """

    looked_at: Batch
    judged_on: Batch
    names: list[str]
    source: str
    unnamed: str | None = None


def sequences_for(
    about: About, path: Path, tokens: Path | None, seed: int, device: torch.device
) -> Sequences:
    """Raises BadInput."""
    if tokens is None and (known := _of_task(about)) is not None:
        batch, names, source = known
        return Sequences(*_halves(batch.to(device)), names, source)
    batch, source = _repeated(about, path, seed) if tokens is None else _given(about, path, tokens)
    names, unnamed = _labels(about, path, batch.tokens[0].tolist())
    return Sequences(*_halves(batch.to(device)), names, source, unnamed)


def _of_task(about: About) -> tuple[Batch, list[str], str] | None:
    """With the tokens' names; None for a model that was trained on no task of ours."""
    name, seed = about.trained.get("task", ""), about.trained.get("train_seed", "0")
    if name not in TASKS:
        return None
    of = task(name)
    number = int(seed) if seed.isdecimal() and len(seed) < 10 else 0
    drawn = held_out(of, number, torch.device("cpu"))
    if of.vocabulary != about.vocabulary or drawn.tokens.shape[1] > (about.longest or 0):
        return None
    names = [of.names[token] for token in drawn.tokens[0].tolist()]
    return drawn, names, f"new sequences of its task, {name}"


def _repeated(about: About, path: Path, seed: int) -> tuple[Batch, str]:
    half = min(REPEATED, (about.longest or 2 * REPEATED) // 2)
    if half < 2 or about.vocabulary < 2:
        raise BadInput(
            f"{shown(str(path))}: sequences of {about.longest} tokens, {about.vocabulary} different"
            f" ones; wanted 4 and 2 or more; give your own with {option('tokens')}"
        )
    generator = Generator().manual_seed(seed)
    once = torch.randint(about.vocabulary, (2 * SEQUENCES, half), generator=generator)
    tokens = once.repeat(1, 2)
    targets = _next(tokens)
    targets[:, : half - 1] = UNSCORED  # nobody can know what was drawn
    return Batch(tokens, targets), f"{half} random tokens, said twice"


def _given(about: About, path: Path, file: Path) -> tuple[Batch, str]:
    place = option("tokens", shown(str(file)))
    text = read_text(file, place, MAX_BYTES, "a file of token ids in JSON, or of text")
    try:
        read = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        read = None
    if read is None and about.format != "transformers":
        raise BadInput(f"{place}: not JSON; wanted a list of token ids for this model")
    if read is None:
        tokenizer, why = _tokenizer(path)
        if tokenizer is None:
            raise BadInput(
                f"{shown(str(path))}: {why or f'no {TOKENIZER}'}, so text has no tokens; wanted one"
                f" that the package tokenizers wrote, or {option('tokens')} with a JSON list of"
                " token ids"
            )
        read = tokenizer.encode(text).ids
    longest = min(LONGEST, about.longest or LONGEST)
    try:
        rows = ROWS.validate_python(read if read and isinstance(read[0], list) else [read])
        if len(rows) == 1:  # one long text, as sequences of one length
            words, size = rows[0], min(longest, len(rows[0]))
            rows = [words[at : at + size] for at in range(0, len(words) - size + 1, size)]
        tokens = torch.tensor([row[:longest] for row in rows[: 2 * SEQUENCES]])
        if (
            tokens.shape[1] < 2
            or not 0 <= int(tokens.min()) <= int(tokens.max()) < about.vocabulary
        ):
            raise ValueError
    except ValueError:
        raise BadInput(
            f"{place}: not sequences of this model's tokens; wanted one list, or lists of one"
            f" length, of 2 or more whole numbers from 0 to {about.vocabulary - 1}"
        ) from None
    count, size = tokens.shape
    what = f"{count} sequence{'s' if count > 1 else ''} of {size} tokens from {file.name}"
    return Batch(tokens, _next(tokens)), what


def _halves(batch: Batch) -> tuple[Batch, Batch]:
    """The sequences that are looked at, and others; the same if there are too few for that."""
    count = len(batch.tokens)
    if count < 4:
        return batch, batch
    half = min(count // 2, SEQUENCES)
    return batch.part(0, half), batch.part(half, 2 * half)


def _next(tokens: Tensor) -> Tensor:
    return pad(tokens[:, 1:], (0, 1), value=UNSCORED)


def _labels(about: About, path: Path, tokens: list[int]) -> tuple[list[str], str | None]:
    """What the tokens are called, and why by their numbers, if a tokenizer cannot be read."""
    tokenizer, why = _tokenizer(path) if about.format == "transformers" else (None, "")
    names = [str(one) if tokenizer is None else tokenizer.decode([one]) for one in tokens]
    unnamed = f"{why}, so tokens are called by their numbers" if why else None
    return [*map(_label, names, tokens)], unnamed


def _tokenizer(folder: Path) -> tuple[Any, str]:
    """None without one, and if it cannot be read; then with the reason."""
    from tokenizers import Tokenizer

    path = folder / TOKENIZER
    if not os.path.lexists(path):
        return None, ""
    try:
        with opened(path.resolve()) as file:
            content = file.read(MOST_TOKENIZER_BYTES + 1)
        if len(content) > MOST_TOKENIZER_BYTES:
            return None, f"{TOKENIZER} is larger than {MOST_TOKENIZER_BYTES >> 20} MiB"
        return Tokenizer.from_buffer(content), ""
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        text = str((isinstance(error, OSError) and error.strerror) or error)
        why = visible(text.rpartition("buffer: ")[2].partition("\n")[0][:MOST_REASON])
        return None, f"{TOKENIZER} cannot be read ({why})"


def _label(name: str, number: int) -> str:
    plain = name.replace(" ", "␣").replace("\n", "⏎")
    return plain[:MAX_LABEL] if plain and plain.isprintable() else f"{number}"
