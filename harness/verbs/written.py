"""Where `show` and `compare` write, and in which form: as asked, or as the file's ending says."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path

import typer

from ..files.errors import BadInput, instead_of, option, shown, unless_refused

STDOUT = "-"


def form_of(
    given: str | None, output: str | None, known: Collection[str], usual: str | None
) -> str | None:
    """The format that is given, else the one that the file ends in, else the usual one. Raises
    BadInput.
    """
    ending = Path(output or "").suffix.lower().removeprefix(".")
    form = given or (ending if ending in known else usual)
    if (given and form not in known) or (output and not form):
        name, value = ("format", form) if given else ("output", output)
        hint = instead_of(given or ending, [*known])
        raise BadInput(f"{option(name)} {shown(value)}: unknown format; {hint}")
    return form


def file_of(output: str | None) -> Path | None:
    """None for stdout."""
    return None if output in (None, STDOUT) else Path(output or "")


def written_to(path: Path, flag: str) -> AbstractContextManager[None]:
    """Raises BadInput where the file cannot be written."""
    return unless_refused(path, f"choose another place with {flag}")


def write(content: str | bytes, output: str | None) -> None:
    """To stdout without a file; its path is printed, unless it is a pipe or a device."""
    from ..files.safe_files import write_output

    file = file_of(output)
    if file is None:
        typer.echo(content, nl=False)
        return
    with written_to(file, option("output", "FILE")):
        is_whole = write_output(file, content)
    if is_whole:
        typer.echo(file)
