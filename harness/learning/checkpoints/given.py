"""Checkpoints as users name them: `--checkpoint [NAME=]PATH`, or from Python. Imports no torch."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ...files.errors import BadInput, shown

STUDY = "checkpoint_heads"
SUFFIX = ".safetensors"
CONFIG = "config.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NEEDS = {True: ("safetensors", "checkpoint"), False: ("transformers", "hf")}
"""By whether a checkpoint is a file: the package that reads it, and the extra that brings it."""
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

    @property
    def needs(self) -> tuple[str, str]:
        """The package that reads it, and the extra that brings it."""
        return NEEDS[self.path.is_file()]

    def request(self) -> dict[str, str | None]:
        """What a worker is told. It is not kept in a run's files."""
        tokens = None if self.tokens is None else str(self.tokens)
        return {"path": str(self.path), "tokens": tokens}


class TriedCheckpoints(NamedTuple):
    """`problems`: why they cannot be looked at; none if they can. `remarks`: for the user."""

    problems: list[str]
    remarks: list[str]


def read_checkpoints(
    given: Sequence[str | tuple[str | None, str]], tokens: str | None = None
) -> tuple[Checkpoint, ...]:
    """`given`: as on the command line, or a name and a path. Raises BadInput for what is not there,
    or two of one name.
    """
    if tokens is not None and not given:
        raise BadInput("--tokens belongs to --checkpoint PATH; give the model too")
    pairs = [_name_and_path(one) if isinstance(one, str) else one for one in given]
    return checkpoints_of(pairs, tokens)


def checkpoints_of(
    given: Iterable[tuple[str | None, str]], tokens: str | None = None
) -> tuple[Checkpoint, ...]:
    """`given`: a name, or None for the file's own, and a path. Raises BadInput."""
    file = None if tokens is None else _tokens_file(tokens)
    found: dict[str, Checkpoint] = {}
    for name, path in given:
        one = _checkpoint(name, path, file)
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
    run: Path, names: Sequence[str], given: Collection[Checkpoint]
) -> tuple[Checkpoint, ...]:
    """Those that a run or a suite to resume still looks at; of its files only their `names` count.

    Raises BadInput.
    """
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


def _name_and_path(text: str) -> tuple[str | None, str]:
    before, equals, after = text.partition("=")
    named = bool(equals) and NAME.fullmatch(before) is not None and not Path(text).exists()
    return (before, after) if named else (None, text)


def _checkpoint(name: str | None, text: str, tokens: Path | None) -> Checkpoint:
    path = Path(text).expanduser().absolute()
    flag = f"--checkpoint {shown(text if name is None else f'{name}={text}')}"
    if name is not None and not NAME.fullmatch(name):
        raise BadInput(
            f"{flag}: the name {shown(name)}; wanted 1 to 64 letters, digits, dots, dashes and"
            " underscores, a letter or digit first"
        )
    is_file = path.is_file() and path.suffix == SUFFIX
    if not path.exists():
        raise BadInput(f"{flag}: no such file or folder; wanted {WANTED}")
    if not is_file and not (path / CONFIG).is_file():
        what = f"a folder without {CONFIG}" if path.is_dir() else "not such a file"
        raise BadInput(f"{flag}: {what}; wanted {WANTED}")
    needs, extra = NEEDS[is_file]
    if find_spec(needs) is None:
        raise BadInput(
            f"{flag}: needs {needs}, which is not installed: pip install 'attnbench[{extra}]'"
        )
    own = path.resolve().name.removesuffix(SUFFIX)
    name = name or re.sub(r"[^A-Za-z0-9._-]", "_", own).lstrip("._-")[:64]
    return Checkpoint(name=name or "model", path=path, tokens=tokens)


def _tokens_file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise BadInput(
            f"--tokens {shown(text)}: no such file; wanted one with a JSON list of token ids, or"
            " with text for a model that has a tokenizer.json"
        )
    return path
