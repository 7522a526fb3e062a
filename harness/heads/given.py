"""Checkpoints as users name them: `--checkpoint [NAME=]DIR`, or from Python. Imports no torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..files.errors import BadInput, option, shown

STUDY = "checkpoint_heads"
CONFIG = "config.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NEEDS = "transformers"
WANTED = f"the folder of a Hugging Face model, with {CONFIG} and safetensors files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """`path`: a folder. `tokens`: a file with tokens to look at it with; None: built-in ones."""

    name: str
    path: Path
    tokens: Path | None = None
    study: str = STUDY

    @property
    def flag(self) -> str:
        return option("checkpoint", shown(str(self.path)))

    def request(self) -> dict[str, str | None]:
        """What a worker is told. It is not kept in a run's files."""
        tokens = None if self.tokens is None else str(self.tokens)
        return {"path": str(self.path), "tokens": tokens}


def read_checkpoints(
    given: Sequence[str | tuple[str | None, str]], tokens: str | None = None
) -> tuple[Checkpoint, ...]:
    """`given`: as on the command line, or a name and a path. Raises BadInput for what is not there,
    or two of one name.
    """
    if tokens is not None and not given:
        raise BadInput(
            f"{option('tokens')} needs {option('checkpoint', 'PATH')}; give the model too"
        )
    file = None if tokens is None else Path(tokens).expanduser().absolute()
    found: dict[str, Checkpoint] = {}
    for named in given:
        name, path = _name_and_path(named) if isinstance(named, str) else named
        one = _checkpoint(name, path, file)
        if (other := found.get(one.name)) is not None:
            raise BadInput(
                f"{one.flag}: called {one.name}, as {shown(str(other.path))} is; wanted different"
                " names; give NAME=PATH"
            )
        found[one.name] = one
    return tuple(found.values())


def _name_and_path(text: str) -> tuple[str | None, str]:
    before, equals, after = text.partition("=")
    named = bool(equals) and NAME.fullmatch(before) is not None and not Path(text).exists()
    return (before, after) if named else (None, text)


def _checkpoint(name: str | None, text: str, tokens: Path | None) -> Checkpoint:
    path = Path(text).expanduser().absolute()
    flag = option("checkpoint", shown(text if name is None else f"{name}={text}"))
    if name is not None and not NAME.fullmatch(name):
        raise BadInput(
            f"{flag}: the name {shown(name)}; wanted 1 to 64 letters, digits, dots, dashes and"
            " underscores, a letter or digit first"
        )
    if not (path / CONFIG).is_file():
        what = f"a folder without {CONFIG}" if path.is_dir() else "no such folder"
        raise BadInput(f"{flag}: {what}; wanted {WANTED}")
    if find_spec(NEEDS) is None:
        raise BadInput(
            f"{flag}: needs {NEEDS}, which is not installed: pip install 'attnbench[hf]'"
        )
    name = name or re.sub(r"[^A-Za-z0-9._-]", "_", path.resolve().name).lstrip("._-")[:64]
    return Checkpoint(name=name or "model", path=path, tokens=tokens)
