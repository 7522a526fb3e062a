"""Packs: capabilities that nothing in the core knows, found by file name.

A pack is a folder of harness/ with a file `pack.py`, which defines

    PACK = Pack(verbs=..., run_options=..., selected=..., opted=..., foreseen=...)

What it leaves out, it does not have. `pack.py` is read at each start of the command line: whatever
is heavy is imported within its functions. No module of the core imports a pack in any other way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..studies import HARNESS, HARNESS_NAME

if TYPE_CHECKING:
    from ..scenario.selection import Selection
    from .engine import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PackVerb:
    """A verb of the command line: a function with typer's annotations, or a `typer.Typer` with
    verbs of its own. `panel`: the group of the help, see harness/cli/app.py.
    """

    name: str
    command: Any
    panel: str
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """What a pack adds.

    `run_options`: of `attnbench run`, by the names that its functions take them by: a type with
    `typer.Option`; None if it is not given. The functions take all of them by keyword:

    `selected(selection, **values)`: the selection with what the options say of what is measured;
    `attnbench.run` calls it too.
    `opted(options, *, dry_run, **values)`: likewise of how to run; with `dry_run` only refuses.
    `foreseen(dry_run, forecast, **values)`: what `--dry-run` prints beside its own tables;
    `dry_run` is harness.cli.dry_run.DryRun.
    They raise Refusal.
    """

    verbs: Sequence[PackVerb] = ()
    run_options: Mapping[str, Any] = field(default_factory=dict)
    selected: "Callable[..., Selection] | None" = None
    opted: "Callable[..., RunOptions] | None" = None
    foreseen: Callable[..., Iterator[Any]] | None = None

    def own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Of the options of all packs, this one's."""
        return {name: values.get(name) for name in self.run_options}


@cache
def packs() -> tuple[Pack, ...]:
    """All, in the order of their folders' names."""
    folders = sorted(file.parent.name for file in HARNESS.glob("*/pack.py"))
    return tuple(import_module(f"{HARNESS_NAME}.{folder}.pack").PACK for folder in folders)


def run_options() -> dict[str, Any]:
    """The options of all packs."""
    return {name: option for pack in packs() for name, option in pack.run_options.items()}


def selected(selection: "Selection", values: Mapping[str, Any]) -> "Selection":
    """With what the options of all packs say. Raises BadInput."""
    for pack in packs():
        if pack.selected is not None:
            selection = pack.selected(selection, **pack.own(values))
    return selection


def opted(options: "RunOptions", values: Mapping[str, Any], *, dry_run: bool) -> "RunOptions":
    """With what the options of all packs say. Raises Refusal."""
    for pack in packs():
        if pack.opted is not None:
            options = pack.opted(options, dry_run=dry_run, **pack.own(values))
    return options
