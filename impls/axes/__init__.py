"""Axes of a problem: what is said of each, in files of this folder, found by their names. Importing
them imports no torch.
"""

from importlib import import_module
from pathlib import Path

from .axis import Axis

_NAMES = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
DECLARED: dict[str, Axis] = {
    name.lower(): one
    for file in _NAMES
    for name, one in vars(import_module(f".{file}", __name__)).items()
    if isinstance(one, Axis)
}
"""Each Axis of a file, in capitals there, under the name of its field of Problem."""
