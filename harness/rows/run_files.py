"""Reads and checks the files of one run, as docs/format.md defines them; never writes.

The only reader of run.json and rows.jsonl, and what the writer checks its rows by.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from ..files.errors import BadInput, option
from ..files.printable import visible
from ..files.safe_files import lines_of, opened

Document = dict[str, Any]
META, ROWS = "run.json", "rows.jsonl"
SCHEMA = 1  # the format's version
PLANNED = ("cases", "walls", "studies")
COMPARED_FACTS = (
    *("device_name", "device_uuid", "driver", "cuda", "cudnn", "torch", "threads", "cpu", "cores"),
    *("allocator", "attnbench", "git"),
)
"""Of an environment: those that must be equal before rows of two starts may stand in one run."""
LINE_CAP_BYTES = 16 << 20
DOCUMENT_CAP_BYTES = 64 << 20  # a plan of 100 000 cases
MOST_NOTES = 20  # of rows that were left out; the others are counted
MOST_DIGITS = 300  # of a whole number: no float holds more
DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
LARGE = (b"e000", b"e+000", b"0" * 200)
"""One of these is in every text, its DIGITS as 0, with a number beyond what a float holds; other
texts are parsed in C alone.
"""


class BadRun(BadInput):
    """One line: file, line number, what was found and what was expected."""


def read_meta(run: Path) -> Document:
    """run.json. Raises BadRun."""
    from .model import check_meta  # needs pydantic, which takes 0.1 s and is not always needed

    path = run / META
    meta = read_document(path)
    with _refusals(shown_path(path)):
        check_meta(meta)
    return meta


def read_document(path: Path) -> Document:
    """A file of one JSON object with a format version. Raises BadRun."""
    where = shown_path(path)
    file = open_file(path)
    if file is None:
        raise BadRun(f"{where}: no such file; wanted a run's folder with {META} in it")
    with file, _refusals(where):
        text = file.read(DOCUMENT_CAP_BYTES + 1)
        if len(text) > DOCUMENT_CAP_BYTES:
            raise ValueError(f"longer than {DOCUMENT_CAP_BYTES >> 20} MiB")
        return _current(parsed(text))


def read_rows(
    run: Path, notes: list[str] | None = None, *, salvage: bool = False
) -> Iterator[Document]:
    """All rows in order, one at a time, without an incomplete last line.

    `salvage`: leave out lines that are no rows. `notes` gets what was left out. Raises BadRun.
    """
    return (row for _, row in read_lines(run, notes, salvage=salvage))


def read_lines(
    run: Path, notes: list[str] | None = None, *, salvage: bool = False
) -> Iterator[tuple[bytes, Document]]:
    """As `read_rows`, each row with its line as it stands in the file."""
    path, notes = run / ROWS, [] if notes is None else notes
    file = open_file(path)
    if file is None:
        # run.json is written first: a run that was stopped before its first case has no rows
        return
    left_out = 0
    with file, _refusals(shown_path(path)):
        number = 0
        for number, line in enumerate(lines_of(file, LINE_CAP_BYTES), 1):
            if not line.endswith(b"\n") and len(line) <= LINE_CAP_BYTES:
                notes.append(
                    f"line {number}, the last of rows.jsonl, is incomplete and was left out"
                )
                break
            try:
                yield line, parsed_row(line)
            except ValueError as error:
                if not salvage:
                    raise BadRun(
                        f"{shown_path(path)}:{number}: {error}; read the others with"
                        f" {option('salvage', True)}"
                    ) from None
                left_out += 1
                if left_out <= MOST_NOTES:
                    notes.append(f"line {number} of rows.jsonl was left out: {error}")
        else:
            if file.read(1):
                notes.append(
                    f"everything after line {number} of rows.jsonl was left out: too much before it"
                    " holds no rows"
                )
    if left_out > MOST_NOTES:
        notes.append(f"{left_out} lines of rows.jsonl were left out; the first are listed")


def parsed_row(line: bytes) -> Document:
    """The row of a line, in the current format and checked. Raises ValueError.

    A row of a kind that only later versions know is not checked.
    """
    from .model import check_row

    if len(line) > LINE_CAP_BYTES:
        raise ValueError(f"longer than {LINE_CAP_BYTES >> 20} MiB")
    row = _current(parsed(line))
    check_row(row)
    return row


def open_file(path: Path) -> BinaryIO | None:
    """The file, or None if there is none. Follows no links, and refuses pipes and devices."""
    try:
        return opened(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadRun(f"{shown_path(path)}: {error.strerror}") from None


def shown_path(path: Path) -> str:
    """For a message."""
    return visible(str(path))


@contextmanager
def _refusals(where: str) -> Iterator[None]:
    """Turns what reading or a check raises into BadRun, with the place in front."""
    try:
        yield
    except BadRun:
        raise
    except OSError as error:
        raise BadRun(f"{where}: {error.strerror}") from None
    except ValueError as error:
        raise BadRun(f"{where}: {error}") from None


def holds_large(text: bytes) -> bool:
    """Whether a number in it may be beyond what a float holds."""
    digits = text.translate(DIGITS)
    return any(part in digits for part in LARGE)


def parsed(text: bytes) -> Document:
    """Of one JSON object. Raises ValueError."""

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not JSON; a missing value is null")

    def finite(digits: str) -> float:
        return value if isfinite(value := float(digits)) else refuse(digits)

    def whole(digits: str) -> int:
        if len(digits) > MOST_DIGITS:
            raise ValueError(f"a number of {len(digits)} digits")
        return int(digits)

    if text.startswith(b"\x1f\x8b"):
        raise ValueError("compressed with gzip; unpack it first")
    hooks: dict[str, Any] = {}
    if holds_large(text):
        hooks = {"parse_float": finite, "parse_int": whole}
    try:
        document = json.loads(text.decode(), parse_constant=refuse, **hooks)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"not valid JSON ({visible(str(error))})" if text.strip() else "empty"
        ) from None
    if not isinstance(document, dict):
        raise ValueError(f"wanted a JSON object, found {type(document).__name__}")
    return document


def _current(document: Document) -> Document:
    """The document, if its format is one that this reader knows. Raises ValueError."""
    schema = document.get("schema")
    if type(schema) is not int or schema < 1:
        raise ValueError(
            f"schema: found {ascii(schema)[:40]}, wanted a format version from 1 to {SCHEMA}"
        )
    if schema > SCHEMA:
        raise ValueError(
            f"written in format {schema}, newer than format {SCHEMA} that this attnbench reads;"
            " update attnbench"
        )
    return document
