"""From what a user names to a model: where its layers and its weights are read."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ..files.errors import BadInput, shown
from ..files.printable import visible
from . import config_file, kept, plain, weights
from .layers import Model

RESOLVER = f"{__package__}.by_transformers"
RESOLVE_S = 120.0  # importing transformers and torch takes seconds, and longer on a busy machine


def model_of(path_or_name: str) -> Model:
    """A model by its shipped name, its config.json, or the folder that it is in. Raises BadInput.

    Shipped ones, and all if transformers is not installed, are read by our own strict reader.
    """
    path = config_file.find(path_or_name)
    data = config_file.read(path)
    place = visible(str(path))
    if path in config_file.shipped().values():
        return plain.model(data, path.stem, place)
    name = path.resolve().parent.name if path.name == config_file.FILE else path.stem
    name = name if name.isprintable() and name else "model"
    installed = find_spec("transformers") is not None
    read = _by_transformers if installed else plain.model
    model = read(data, name, place)
    _check(model, place)
    return replace(model, weight_bytes=weights.weight_bytes(path.parent))


def _check(model: Model, place: str) -> None:
    """transformers takes what cannot be computed. Raises BadInput."""
    for layer, _ in model.attention():
        if layer.heads % layer.kv_heads:
            raise BadInput(
                f"{place}: num_attention_heads {layer.heads}, num_key_value_heads"
                f" {layer.kv_heads}; wanted a multiple of it"
            )


def _by_transformers(data: dict[str, Any], name: str, place: str) -> Model:
    """Asked in a child process, so that this one imports no torch, and kept. Raises BadInput."""
    digest = kept.digest(data)
    if (found := kept.load(digest)) is not None:
        return replace(found, name=name)
    asked = json.dumps({"data": data, "name": name, "place": place})
    command = [sys.executable, "-P", "-m", RESOLVER]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=RESOLVE_S, check=True
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        if "problems" in answer:
            raise BadInput(*map(str, answer["problems"]))
        model = kept.of_json(answer)
    except subprocess.TimeoutExpired:
        raise BadInput(f"{place}: transformers did not answer within {RESOLVE_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInput(f"{place}: transformers could not read it: {shown(last)}") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{place}: transformers gave no answer that can be read") from None
    kept.keep(digest, model)
    return model
