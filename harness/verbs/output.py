"""Where commands write: stdout and stderr, also when nobody can read them any more, and files.

A pipe's reader may end (`| head`), a disk may be full, a descriptor may be closed (`>&-`), and a
terminal may know ASCII or Latin-1 only. A run must not lose its rows to any of these.
"""

import codecs
import errno
import io
import os
import select
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, cast

import typer

from ..files.errors import BadInput, instead_of, option, shown, unless_refused
from ..files.printable import SafeStream, visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LOST = 7  # exit code
STDOUT = "-"
SIGNS = "±×·°µμ²−–—…≥≤≈→●◐"
ASCII = "+- x * deg u u ^2 - - - ... >= <= ~ -> (*) (?)"
SPACES = ("\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "\N{THIN SPACE}")
SPELLED = {**dict(zip(SIGNS, ASCII.split(), strict=True)), **dict.fromkeys(SPACES, " ")}
"""Of what we print, where the encoding has no such character."""


class LastingFile(io.FileIO):
    """A descriptor that takes every write; `failure` is why some did not get through."""

    def __init__(self, fd: int, *, is_closed: bool) -> None:
        super().__init__(fd, "w", closefd=False)
        self.is_closed = is_closed
        self.failure: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            if self.is_closed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            while self.failure is None:
                written: int | None = super().write(data)
                if written is not None:
                    return written
                select.select([], [self.fileno()], [])  # not blocking, and full
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes


@contextmanager
def lasting_output() -> Iterator[LastingFile]:
    """stdout and stderr never raise while this is open. Gives stdout's descriptor.

    Streams that somebody has put in their place are left alone.
    """
    codecs.register_error("spelled", _spelled)
    _fill_descriptors()
    before = sys.stdout, sys.stderr
    out, err = LastingFile(1, is_closed=not sys.stdout), LastingFile(2, is_closed=not sys.stderr)
    lasting = _lasting(sys.stdout, sys.__stdout__, out), _lasting(sys.stderr, sys.__stderr__, err)
    sys.stdout, sys.stderr = lasting
    try:
        yield out
    finally:
        for stream in lasting:
            stream.flush()
        sys.stdout, sys.stderr = before


def _lasting(stream: TextIO | None, original: TextIO | None, raw: LastingFile) -> TextIO:
    """In place of a stream that is the process's own; Python has None for a closed descriptor."""
    if stream is not None and (stream is not original or stream.closed):
        return stream
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding if stream else "utf-8",
        errors="spelled",
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


def _fill_descriptors() -> None:
    """Let no file that is opened later be stdin, stdout or stderr."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler: common characters are spelled in ASCII, others escaped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    known = SPELLED.get(error.object[error.start])
    if known is None:
        return codecs.backslashreplace_errors(error)
    return known, error.start + 1


# ---- foreign text -------------------------------------------------------------------------------


def make_streams_safe() -> None:
    """From here on no control character of foreign text reaches a terminal: also not in tracebacks
    and in what typer says of the command line.

    In a pipe stdout stays as it is: programs read file names and exports from it.
    """
    sys.excepthook = _print_traceback
    if sys.stderr is not None:  # closed by whoever started us
        sys.stderr = cast(TextIO, SafeStream(sys.stderr))
    if sys.stdout is not None and sys.stdout.isatty():
        sys.stdout = cast(TextIO, SafeStream(sys.stdout))
    if any(visible(word) != word for word in sys.argv):
        from typer import rich_utils

        from ..terminal.live_bar import SafeConsole

        vars(rich_utils)["Console"] = SafeConsole


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Of an error of our own, which nobody has caught."""
    if sys.stderr is not None:
        traceback.print_exception(kind, error, trace, file=SafeStream(sys.stderr))


# ---- files, and the form that is asked for or that a file's ending says --------------------------


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
