"""A model's files: its configuration, found and read, and how many bytes its weights take."""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from ..files.errors import BadInput, instead_of, shown
from ..files.printable import visible
from ..files.safe_files import opened, read_text

FOLDER = Path(__file__).parent.parent.parent / "scenarios" / "models"
FILE = "config.json"
MAX_BYTES = 8 << 20  # Hugging Face's have a few KiB; quantized ones with a list per layer 3 MiB
MAX_DEPTH = 32
BRACKETS = re.compile(r"[][{}]")
COUNTS = re.compile(r"(layers?|experts|blocks|depth)$")
MOST_COUNT = 4096  # of layers and experts: transformers makes an object for each
MAX_NUMBER = 1 << 62
WEIGHTS = "_weights"  # in shipped files: of types that no formula counts


def shipped() -> dict[str, Path]:
    """Name to file, sorted by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.json"), key=lambda path: path.stem)}


def find(path_or_name: str) -> Path:
    """The configuration file; it need not exist if a path was given. Raises BadInput."""
    path, known = Path(path_or_name), shipped()
    if path_or_name in known and not path.exists():
        return known[path_or_name]
    if path.is_dir():
        return path / FILE
    if path.exists() or "/" in path_or_name or path_or_name.endswith(".json"):
        return path
    hint = instead_of(path_or_name.lower(), known)
    raise BadInput(
        f"no model {shown(path_or_name)}; {hint} (or a config.json, or the folder that it is in)"
    )


def read(path: Path) -> dict[str, Any]:
    """The configuration as plain data. Nothing that it names is imported or run.

    Raises BadInput, with the line and column of what is not JSON.
    """
    place = visible(str(path))
    what = "a config.json of Hugging Face; nothing is downloaded"
    text = read_text(path, place, MAX_BYTES, what)
    try:
        _check_depth(text)
        data = json.loads(text, object_pairs_hook=_checked)  # with NaN, as Python writes it
    except json.JSONDecodeError as error:
        raise BadInput(f"{place}:{error.lineno}:{error.colno}: {error.msg}; wanted JSON") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place}: {error}") from None
    if not isinstance(data, dict):
        raise BadInput(f"{place}: {shown(data)}; wanted a JSON object with model_type")
    return data


def own_code(data: Mapping[str, Any]) -> str:
    """For the end of a message about a type that is not known."""
    return "; code of its own, which auto_map names, is never run" if "auto_map" in data else ""


def _check_depth(text: str) -> None:
    """Raises ValueError; brackets in strings count too, which no real file has so many of."""
    steps = (1 if bracket in "[{" else -1 for bracket in BRACKETS.findall(text))
    if (deepest := max(accumulate(steps), default=0)) > MAX_DEPTH:
        raise ValueError(f"{deepest} levels of brackets; wanted at most {MAX_DEPTH}")


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are there once, with numbers that a model may have."""
    data = dict(pairs)
    if len(data) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{shown(twice)} is given twice; wanted it once")
    for name, value in data.items():
        most = MOST_COUNT if COUNTS.search(name) else MAX_NUMBER
        if isinstance(value, int) and value > most:
            raise ValueError(f"{shown(name)}: {shown(value)}; wanted at most {most}")
    return data


# ---- weights: bytes by the headers of safetensors files ------------------------------------------
# The format (huggingface.co/docs/safetensors): 8 bytes with the length of a JSON header, the header
# with each tensor's dtype, shape and place, then the tensors.

INDEX = "model.safetensors.index.json"
MAX_HEADER_BYTES = 8 << 20  # 60 000 tensors; files of several GiB have some hundreds
Count = Annotated[int, Field(strict=True, ge=0)]


class Entry(BaseModel):
    """Of a tensor, in a header."""

    dtype: str
    shape: list[Count]
    data_offsets: tuple[Count, Count]


ENTRIES = TypeAdapter(dict[str, Entry])


def weight_bytes(folder: Path) -> int | None:
    """Of all tensors of the safetensors files in a folder; None if it has none.

    Raises BadInput for a file that is not whole, and as weight_files does.
    """
    files = weight_files(folder)
    return sum(map(_tensor_bytes, files)) if files else None


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: those that the index names, if there is one.

    Raises BadInput for one that the index names and is missing.
    """
    files = {path.name: path for path in folder.glob("*.safetensors")}
    named = _named(folder / INDEX) if files else set()
    if missing := sorted(named - files.keys()):
        raise BadInput(
            f"{folder / INDEX}: {missing[0]} is not there, one of {len(missing)} missing; wanted"
            " all files that it names, or none"
        )
    return [files[name] for name in sorted(named or files)]


def _named(index: Path) -> set[str]:
    """The files that the index names; none without an index."""
    try:
        with opened(index.resolve()) as file:
            names = json.loads(file.read(MAX_HEADER_BYTES))["weight_map"].values()
        return {str(name) for name in names}
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadInput(f"{index}: cannot be read; wanted a safetensors index") from None


def _tensor_bytes(path: Path) -> int:
    problem = f"{path}: not a whole safetensors file; wanted one, or none in that folder"
    try:
        with opened(path.resolve()) as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, MAX_HEADER_BYTES)))  # cut off, it is no JSON
            size: int = os.fstat(file.fileno()).st_size - 8 - length
        header.pop("__metadata__", None)
        places = sorted(one.data_offsets for one in ENTRIES.validate_python(header).values())
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        raise BadInput(problem) from None
    ends = [0, *(end for _, end in places)]
    if [begin for begin, _ in places] != ends[:-1] or ends[-1] != size:
        raise BadInput(problem)
    return size
