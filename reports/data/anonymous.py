"""A run without what tells whose machine it was: names of hosts and users, folders, serial numbers.

What a measurement needs stays: processor, GPU, versions, sizes, names of files.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .run_meta import Run

HOME = re.compile(r"(?:/home|/Users)/[^/\s'\",:;=<>]+|/root(?![\w-])")
SERIAL = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F-]{8,}")
FOLDERS = re.compile(r"(?<![\w.\-/])~?/(?:[^/\s'\",:;=<>]+/)*")
LEFT_OUT = {"log_tail"}
"""What backends printed, which may be anything."""
NAMES = {"host": "host", "hosts": "host", "device_uuid": "device", "uuid": "device"}
"""Fields that name a machine or a device, by what they name: they are numbered."""
TEXTS = {"reason", "notes"}
"""Free text that may have such a name in it."""


def anonymous(runs: Sequence[Run]) -> list[Run]:
    """All of them, the same device by the same number in each."""
    numbers: dict[str, str] = {}
    for run in runs:
        for document in (run.meta, *run.rows, *run.walls, *run.studies):
            _number(document, "", numbers)

    def without(found: Any) -> Any:
        return _changed(found, "", lambda text, name: _hidden(text, name, numbers))

    plain = ("meta", "rows", "missing", "walls", "missing_walls", "studies", "missing_studies")
    names = (*plain, "notes")
    return [replace(run, **{name: without(getattr(run, name)) for name in names}) for run in runs]


def _number(value: Any, name: str, numbers: dict[str, str]) -> None:
    for key, one in value.items() if isinstance(value, dict) else ():
        _number(one, key, numbers)
    for one in value if isinstance(value, list) else ():
        _number(one, name, numbers)
    if name in NAMES and isinstance(value, str) and value:
        numbers.setdefault(value, f"{NAMES[name]} {len(numbers) + 1}")


def _changed(value: Any, name: str, change: Callable[[str, str], str]) -> Any:
    if isinstance(value, dict):
        return {
            change(key, ""): None if key in LEFT_OUT else _changed(one, key, change)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_changed(one, name, change) for one in value]
    return change(value, name) if isinstance(value, str) else value


def _hidden(text: str, name: str, numbers: dict[str, str]) -> str:
    if name in NAMES:
        return numbers.get(text, text)
    for own, number in numbers.items() if name in TEXTS else ():
        text = re.sub(rf"(?<!\w){re.escape(own)}(?!\w)", number, text)
    return FOLDERS.sub("", HOME.sub("~", SERIAL.sub("GPU", text)))
