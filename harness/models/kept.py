"""A model as JSON, and the file that keeps what transformers took seconds to resolve."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..files.safe_files import write_whole
from ..files.user_cache import cache_folder
from .layers import AttentionLayer, Layer, Model, OtherLayer

MAX_BYTES = 1 << 22


def as_json(model: Model) -> dict[str, Any]:
    """Ready for JSON."""
    return {
        **asdict(model),
        "layers": [
            {"type": type(layer).__name__, "count": count, **asdict(layer)}
            for layer, count in model.layers
        ],
    }


def of_json(data: Mapping[str, Any]) -> Model:
    """The model that `as_json` made. Raises KeyError, TypeError or ValueError for anything else."""
    layers = tuple(_layer(dict(entry)) for entry in data["layers"])
    return Model(**{**data, "layers": layers})


def _layer(entry: dict[str, Any]) -> tuple[Layer, int]:
    kind, count = entry.pop("type"), entry.pop("count")
    if type(count) is not int or count < 1:
        raise ValueError(f"count {count}")
    if kind == "OtherLayer":
        return OtherLayer(**entry), count
    return AttentionLayer(**{**entry, "also": tuple(entry["also"])}), count


def digest(data: Mapping[str, Any]) -> str:
    """Of all that a resolved model depends on."""
    ours = sorted(Path(__file__).parent.glob("*.py"))
    facts = {
        "data": data,
        "transformers": version("transformers"),
        "files": [hashlib.sha256(path.read_bytes()).hexdigest() for path in ours],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def load(digest: str) -> Model | None:
    """What was kept under this digest."""
    try:
        with _file(digest).open("rb") as file:
            return of_json(json.loads(file.read(MAX_BYTES)))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(digest: str, model: Model) -> None:
    """A home that cannot be written costs seconds next time, and nothing else."""
    with suppress(OSError):
        path = _file(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(as_json(model)) + "\n")


def _file(digest: str) -> Path:
    return cache_folder() / "models" / f"{digest[:32]}.json"
