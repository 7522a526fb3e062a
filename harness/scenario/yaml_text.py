"""Reads YAML 1.2 that strangers wrote: plain data and the place of every value, within limits, or
BadInput.

We build the data from the parser's events ourselves. So no tag can name a type, an alias cannot be
multiplied without being counted, and a repeated key is seen; ruamel's own loaders were tried and
let at least one of the three pass.
"""

import errno
import os
import re
import stat
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from ..errors import BadInput, shown
from .yaml_builder import Builder, too_deep
from .yaml_document import Document

MAX_BYTES = 1 << 20
# counted before parsing: the parser looks 1024 characters ahead, quadratic in open brackets
MAX_OPEN_BRACKETS = 256


def read_yaml(path: Path) -> Document:
    """The one document of a file; data is None where the file is empty. Raises BadInput."""
    return parse_yaml(decode(read_bytes(path), shown_path(path)), shown_path(path))


def shown_path(path: Path) -> str:
    """The path as the user gave it, on one line whatever is in it."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def read_bytes(path: Path) -> bytes:
    """A regular file's bytes, at most MAX_BYTES. Never waits: a FIFO is refused, not opened for a
    writer to come.
    """
    name = shown_path(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        code = error.errno if isinstance(error, OSError) else None
        known = {
            errno.ENOENT: "no such file; check the path, or see `attnbench list scenarios`",
            errno.ENOTDIR: "a part of this path is not a directory; check the path",
            errno.ELOOP: "symbolic links that go in a circle; wanted a file",
            errno.EACCES: "may not be read; check its permissions",
        }
        raise BadInput(
            f"{name}: {known.get(code or 0, f'cannot be opened: {error}; wanted a readable file')}"
        ) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = (
            "a directory"
            if stat.S_ISDIR(mode)
            else "a pipe"
            if stat.S_ISFIFO(mode)
            else "a special file"
        )
        raise BadInput(f"{name}: {kind}; wanted a file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInput(f"{name}: larger than 1 MiB; wanted a scenario, which takes a few KiB")
    return content


def decode(content: bytes, origin: str) -> str:
    """UTF-8 text. Raises BadInput at the line and column of the first bad byte."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(
            f"{origin}:1:1: UTF-16 text; wanted UTF-8; convert it with `iconv -f UTF-16 -t UTF-8`"
        )
    if b"\0" in content:
        raise BadInput(
            f"{place(origin, content[: content.index(0)].decode(errors='replace'))}: a NUL byte;"
            " wanted UTF-8 text"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = place(origin, content[: error.start].decode())
        raise BadInput(
            f"{where}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def place(origin: str, before: str) -> str:
    """file:line:col of the character that follows `before`."""
    return f"{origin}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def parse_yaml(text: str, origin: str, *, lines: bool = True) -> Document:
    """The one document in `text`. Without `lines`, as for a flag's value, places are the origin
    alone. Raises BadInput.
    """
    refuse_deep(text, origin)
    parser = YAML(typ="safe", pure=True)
    builder = Builder(parser.parse(text), origin, lines=lines)
    try:
        document = builder.document()
    except BadInput as error:
        raise BadInput(*builder.problems, *error.problems) from None
    except MarkedYAMLError as error:
        raise BadInput(
            f"{builder.at(error.problem_mark or error.context_mark)}: {syntax(error)}"
        ) from None
    except ReaderError as error:
        where = place(origin, text[: error.position]) if lines else origin
        code = error.character if isinstance(error.character, int) else ord(error.character)
        raise BadInput(
            f"{where}: control character U+{code:04X}; wanted plain text; remove it"
        ) from None
    except YAMLError as error:
        raise BadInput(f"{origin}: not valid YAML: {shown(str(error))}") from None
    if builder.problems:
        raise BadInput(*builder.problems)
    return document


def syntax(error: MarkedYAMLError) -> str:
    """What the parser says, on one line."""
    problem = " ".join(str(error.problem or error.context).split())
    if r"'\t'" in problem or "tab" in problem:
        return "a tab where YAML wants spaces; indent with spaces"
    context = " ".join(str(error.context or "").split())
    return f"not valid YAML: {problem}" + (
        f" ({context})" if context and context != problem else ""
    )


def refuse_deep(text: str, origin: str) -> None:
    """Raises BadInput where hundreds of brackets stand open; block nesting and the exact limit are
    the builder's.
    """
    if text.count("[") + text.count("{") <= MAX_OPEN_BRACKETS:
        return
    depth = 0
    for found in re.finditer(r"[\[\]{}]", text):
        depth += 1 if found[0] in "[{" else -1
        if depth > MAX_OPEN_BRACKETS:
            raise BadInput(f"{place(origin, text[: found.start()])}: {too_deep()}")
