"""From what a user names to a model: where its layers and its weights are read.

What transformers took seconds to resolve is kept, in a file per configuration.
"""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from subprocess import TimeoutExpired
from typing import Any

from ..files.errors import BadInput, shown
from ..files.printable import visible
from ..files.safe_files import write_whole
from ..files.user_cache import cache_folder, installed_digest
from ..process.command import run_command
from . import config_file, plain
from .layers import JSON, Model, Weights

RESOLVER = f"{__package__}.by_transformers"
RESOLVE_S = 120.0  # importing transformers and torch takes seconds, and longer on a busy machine


def model_of(path_or_name: str) -> Model:
    """A model by its shipped name, its config.json, or the folder that it is in. Raises BadInput.

    Our own reader takes what it knows, at once; the rest is for transformers, if installed.
    """
    path = config_file.find(path_or_name)
    data = config_file.read(path)
    place = visible(str(path))
    if not isinstance(kind := data.get("model_type"), str):
        raise BadInput(f"{place}: model_type: {shown(kind)}; wanted the name of a type, as llama")
    if path in config_file.shipped().values():  # all that counts is in the file
        found = replace(plain.model(data, path.stem, place), reader="")
        if (given := data.get(config_file.WEIGHTS)) is None:
            return found
        return replace(found, weights=Weights(words="as published", **given), uncounted="")
    name = path.resolve().parent.name if path.name == config_file.FILE else path.stem
    name = name if name.isprintable() and name else "model"
    return replace(_model(data, name, place), weight_bytes=config_file.weight_bytes(path.parent))


def _model(data: dict[str, Any], name: str, place: str) -> Model:
    """By our reader where it has the defaults of the type and understands all, or where nothing
    else is there. What transformers refuses is read by its fields as they stand. Raises BadInput.
    """
    own: Model | BadInput
    try:
        own = plain.model(data, name, place)
    except BadInput as error:
        own = error
    knows = isinstance(own, Model) and not own.reader and not own.cautions
    if not knows and find_spec("transformers") is not None:
        try:
            return _by_transformers(data, name, place)
        except BadInput as refused:
            if isinstance(own, Model):
                said = f"config.json was read by its fields as they stand: {refused.problems[0]}."
                return replace(own, reader=said)
            if plain.INSTALL in str(own):
                raise
    if isinstance(own, BadInput):
        raise own
    return own


def _by_transformers(data: dict[str, Any], name: str, place: str) -> Model:
    """Asked in a child process, so that this one imports no torch, and kept. Raises BadInput."""
    file = cache_folder() / "models" / f"{installed_digest(configuration=data)[:32]}.json"
    with suppress(OSError, ValueError):
        return replace(JSON.validate_json(file.read_bytes(), strict=True), name=name)
    asked = json.dumps({"data": data, "name": name, "place": place})
    command = [sys.executable, "-P", "-m", RESOLVER]
    try:
        done = run_command(command, text=asked, timeout_s=RESOLVE_S)
    except TimeoutExpired:
        raise BadInput(f"{place}: transformers did not answer within {RESOLVE_S:.0f} s") from None
    try:
        model = JSON.validate_json(done.stdout.splitlines()[-1], strict=True)
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        unread = f"{place}: transformers could not read it: {shown(last)}"
        raise BadInput(last if last.startswith(place) else unread) from None
    with suppress(OSError):  # a home that cannot be written costs seconds next time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, JSON.dump_json(model).decode())
    return model
