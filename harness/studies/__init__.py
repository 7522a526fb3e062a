"""Studies of properties, copies and attention maps, without a measurement of latency.

A study is one file in this folder, or in the folder `studies` of a pack. It defines
    QUESTION   what it answers, in one sentence
    run(problem, device, seed) -> findings    an iterator of Finding, or of dicts of the same

Findings are flat. `problem` is the smallest of the run's scenario: a study uses of it what it
needs, and works for a second or two.

Pages show the question, the docstring of the file and the findings as a table. `value_low` and
`value_high`, or `time_low_ms` and `time_high_ms`, are the interval of `value` or `time_ms`; of
`score_rows`, a list of rows, each is a line. A heat map in addition:
    SHOWN = {"map": "error_ratio", "x": "heads", "y": "backend", "each": "dtype", "value": "error"}
One for each `each`, of the field `map` over the fields `x` and `y`; or of a field such as
`weight_rows`, whose axes `x` and `y` are words. `value` says what is drawn.

A longer study has parts, so that a run that was stopped goes on after the last of them:
    PARTS = {"task": ("recall", "copy"), "heads": (1, 2)}    literals: each combination is a row
    run(problem, device, seed, *, task, heads) -> findings

One that times something has the axis `process`: each of its parts is run in a new process, and
reports take them together.

A study that looks at files of the user's, which an option names, is requested by that option
and by no scenario (attachments.py):
    TAKES = "checkpoint"                         the option, and the part that names one
    QUESTION_OF = "What is in {names}?"          what it answers of the named ones
"""

import importlib
import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..files.literals import literals

Part = dict[str, str | int]
DECLARATIONS = ("__doc__", "QUESTION", "SHOWN", "PARTS", "TAKES", "QUESTION_OF")
HARNESS = Path(__file__).parents[1]
HARNESS_NAME = __name__.rpartition(".")[0]
DEFINES_RUN = re.compile(r"^def run\(", re.MULTILINE)


class Declared(NamedTuple):
    """What a study's file says of itself. `axes`: of its parts; none: one part."""

    module: str = ""
    doc: str = ""
    question: str = ""
    shown: Mapping[str, str] = {}
    axes: Mapping[str, tuple[str | int, ...]] = {}
    takes: str = ""
    question_of: str = ""

    @property
    def parts(self) -> list[Part]:
        """Each combination, the last axis fastest; [{}] for a study without parts."""
        return [dict(zip(self.axes, some, strict=True)) for some in product(*self.axes.values())]


@cache
def every() -> Mapping[str, Declared]:
    """All studies by name, read without importing them, since they import torch: files that define
    `run`, but for those that begin with `_`.
    """
    found = {}
    for file in (*HARNESS.glob("studies/*.py"), *HARNESS.glob("*/studies/*.py")):
        if not file.name.startswith("_") and DEFINES_RUN.search(file.read_text("utf-8")):
            module = ".".join((HARNESS_NAME, *file.parent.relative_to(HARNESS).parts, file.stem))
            said = {
                name.strip("_").lower(): of for name, of in literals(file, DECLARATIONS).items()
            }
            found[file.stem] = Declared(module, axes=said.pop("parts", {}), **said)
    return dict(sorted(found.items()))


def declared(name: str) -> Declared:
    """Of a study that is gone nothing is known."""
    return every().get(name, Declared())


def names() -> tuple[str, ...]:
    """What a scenario may name."""
    return tuple(name for name, one in every().items() if not one.takes)


def takes(name: str) -> str:
    """The option that names what a study looks at; "" if a scenario names the study itself, or if
    it is gone.
    """
    return declared(name).takes


def load(name: str) -> ModuleType:
    """Raises ModuleNotFoundError for a study that is gone."""
    if not (module := declared(name).module):
        raise ModuleNotFoundError(f"no study {name!r}", name=name)
    return importlib.import_module(module)


def parts_of(name: str) -> list[Part]:
    """The parts that a scenario names: all of `trained_heads`, or those of `trained_heads:copy`,
    which have this value on one of their axes.
    """
    study, _, value = name.partition(":")
    parts = declared(study).parts
    return [part for part in parts if not value or value in map(str, part.values())]


def spellings() -> tuple[str, ...]:
    """What a scenario may say: each study, and each with a value of one of its axes."""
    found: list[str] = []
    for name in names():
        values = [value for axis in declared(name).axes.values() for value in axis]
        found += [name, *(f"{name}:{value}" for value in values)]
    return tuple(found)
