"""A model's weights: bytes by the headers of its safetensors files.

The format (huggingface.co/docs/safetensors): 8 bytes with the length of a JSON header, the header
with each tensor's dtype, shape and place, then the tensors.
"""

import json
import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter

from ..files.errors import BadInput
from ..files.safe_files import opened

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
