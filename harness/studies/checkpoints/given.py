"""Checkpoints as the command line names them, `--checkpoint [NAME=]PATH`. Imports no torch."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import BadInput, shown

STUDY = "checkpoint_heads"
SUFFIX = ".safetensors"
CONFIG = "config.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
WANTED = f"a {SUFFIX} file that attnbench wrote, or the folder of a Hugging Face model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """`tokens`: a file with the tokens to look at it with; None: built-in ones."""

    name: str
    path: Path
    tokens: Path | None = None

    @property
    def flag(self) -> str:
        return f"--checkpoint {shown(str(self.path))}"

    def request(self) -> dict[str, str | None]:
        """What a worker is told. It is not kept in a run's files."""
        tokens = None if self.tokens is None else str(self.tokens)
        return {"path": str(self.path), "tokens": tokens}


def read_checkpoints(texts: Sequence[str], tokens: str | None = None) -> tuple[Checkpoint, ...]:
    """Raises BadInput for what is not there, or two of one name."""
    if tokens is not None and not texts:
        raise BadInput("--tokens belongs to --checkpoint PATH; give the model too")
    file = None if tokens is None else _tokens_file(tokens)
    found: dict[str, Checkpoint] = {}
    for text in texts:
        one = _checkpoint(text, file)
        if (other := found.get(one.name)) is not None:
            raise BadInput(
                f"{one.flag}: called {one.name}, as {shown(str(other.path))} is; wanted different"
                " names; give NAME=PATH"
            )
        found[one.name] = one
    return tuple(found.values())


def names_in(planned: Iterable[Mapping[str, Any]]) -> list[str]:
    """Of the checkpoints that studies in run.json look at."""
    parts = [one.get("part") for one in planned if one.get("study") == STUDY]
    return [str(part.get("checkpoint")) for part in parts if isinstance(part, dict)]


def given_again(
    run: Path, pending: Iterable[Mapping[str, Any]], given: Collection[Checkpoint]
) -> tuple[Checkpoint, ...]:
    """Those that a run to resume still looks at; of its file only their names count.

    `pending`: the studies that are left, as in run.json. Raises BadInput.
    """
    names = names_in(pending)
    by_name = {one.name: one for one in given}
    if missing := [name for name in names if name not in by_name]:
        flags = " ".join(f"--checkpoint {name}=PATH" for name in missing)
        raise BadInput(
            f"--resume: {run} has not looked at {', '.join(map(shown, missing))} yet; name the"
            f" files again, because no path is taken from a run's file: {flags}"
        )
    if surplus := [one for one in given if one.name not in names]:
        raise BadInput(
            f"{surplus[0].flag}: {run} has nothing left to look at in it; leave it out, or start"
            " another run"
        )
    return tuple(by_name[name] for name in names)


def _checkpoint(text: str, tokens: Path | None) -> Checkpoint:
    before, equals, after = text.partition("=")
    named = bool(equals) and NAME.fullmatch(before) is not None and not Path(text).exists()
    path = Path(after if named else text).expanduser().absolute()
    flag = f"--checkpoint {shown(text)}"
    is_file = path.is_file() and path.suffix == SUFFIX
    if not path.exists():
        raise BadInput(f"{flag}: no such file or folder; wanted {WANTED}")
    if not is_file and not (path / CONFIG).is_file():
        what = f"a folder without {CONFIG}" if path.is_dir() else "not such a file"
        raise BadInput(f"{flag}: {what}; wanted {WANTED}")
    needs, extra = ("safetensors", "checkpoint") if is_file else ("transformers", "hf")
    if find_spec(needs) is None:
        raise BadInput(
            f"{flag}: needs {needs}, which is not installed: pip install 'attnbench[{extra}]'"
        )
    own = path.resolve().name.removesuffix(SUFFIX)
    name = before if named else re.sub(r"[^A-Za-z0-9._-]", "_", own).lstrip("._-")[:64]
    return Checkpoint(name=name or "model", path=path, tokens=tokens)


def _tokens_file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise BadInput(
            f"--tokens {shown(text)}: no such file; wanted one with a JSON list of token ids, or"
            " with text for a model that has a tokenizer.json"
        )
    return path
