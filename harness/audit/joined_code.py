"""Disassembles several kernels at once: nvdisasm takes ten times longer to start than to read one.

It takes one file. So the code sections of cubins for one architecture are put into an ELF file of
their own; what else a cubin has, such as symbols, leaves no trace in instructions and labels but
their names. Imports triton.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...impls._triton.nvidia_tools import Unreadable, disassembly

# ELF64, little-endian (System V ABI): the file's header and that of a section
_FILE = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_MAGIC = b"\x7fELF\x02\x01"
_PROGBITS, _STRTAB, _EXECUTABLE = 1, 3, 4
_ALIGNED_BYTES = 128
INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
_PRINTED = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/", re.MULTILINE)
_BEGIN = re.compile(r"^//-+ \.text\.kernel(\d+) +-+$", re.MULTILINE)


class _Code(NamedTuple):
    """The only code section of a cubin, and the header of the file."""

    header: tuple[object, ...]
    instructions: bytes


def disassemblies(cubins: Sequence[bytes]) -> list[str | Unreadable]:
    """What nvdisasm says of each, or why it says nothing; one by one if not together."""
    try:
        return list(_together(cubins)) if len(cubins) > 1 else [_alone(one) for one in cubins]
    except (Unreadable, ValueError, struct.error):
        return [_alone(one) for one in cubins]


def _alone(cubin: bytes) -> str | Unreadable:
    try:
        return disassembly(cubin)
    except Unreadable as reason:
        return reason


def _together(cubins: Sequence[bytes]) -> Iterator[str]:
    """Raises Unreadable if not every instruction of every kernel is printed."""
    codes = [_code(cubin) for cubin in cubins]
    printed = disassembly(_file(codes))
    begins = list(_BEGIN.finditer(printed))
    if [int(one[1]) for one in begins] != list(range(len(codes))):
        raise Unreadable("nvdisasm printed other sections")
    ends = [*(one.start() for one in begins[1:]), len(printed)]
    for code, begin, end in zip(codes, begins, ends, strict=True):
        text = printed[begin.start() : end]
        if len(_PRINTED.findall(text)) * INSTRUCTION_BYTES != len(code.instructions):
            raise Unreadable("nvdisasm printed other instructions")
        yield text


def _code(cubin: bytes) -> _Code:
    """Raises ValueError and struct.error if it is no cubin with one code section."""
    header = _FILE.unpack_from(cubin)
    at, size, count = header[6], header[11], header[12]
    if not cubin.startswith(_MAGIC) or size != _SECTION.size:
        raise ValueError("not an ELF file of 64 bits")
    sections = (_SECTION.unpack_from(cubin, at + number * size) for number in range(count))
    code = [one for one in sections if one[1] == _PROGBITS and one[2] & _EXECUTABLE]
    if len(code) != 1:
        raise ValueError(f"{len(code)} sections of code; wanted 1")
    begin, length = code[0][4:6]
    return _Code(header, cubin[begin : begin + length])


def _file(codes: Sequence[_Code]) -> bytes:
    """Raises ValueError if they are for different architectures."""
    ident, kind, machine, version, *_ = codes[0].header
    same = {(code.header[0], code.header[2], code.header[3], code.header[7]) for code in codes}
    if len(same) != 1:
        raise ValueError("code for several architectures")
    names, places = b"\0.shstrtab\0", []
    for number in range(len(codes)):
        places.append(len(names))
        names += f".text.kernel{number}\0".encode()
    body, at = bytearray(), _FILE.size
    headers = [(0,) * 10, (1, _STRTAB, 0, 0, at, len(names), 0, 0, 1, 0)]
    body += names
    for place, code in zip(places, codes, strict=True):
        body += bytes(-(at + len(body)) % _ALIGNED_BYTES)
        begin, length = at + len(body), len(code.instructions)
        headers.append((place, _PROGBITS, 6, 0, begin, length, 0, 0, _ALIGNED_BYTES, 0))
        body += code.instructions
    body += bytes(-(at + len(body)) % 8)
    head = _FILE.pack(
        ident, kind, machine, version, 0, 0, at + len(body), codes[0].header[7],
        _FILE.size, 0, 0, _SECTION.size, len(headers), 1,
    )  # fmt: skip
    return head + bytes(body) + b"".join(_SECTION.pack(*one) for one in headers)
