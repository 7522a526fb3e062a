"""Messages with memory between a worker and its judge: JSON, then bytes, over a socket."""

import json
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import Any

LENGTHS = struct.Struct("<QQ")  # of the JSON and of the bytes that follow
MOST_JSON_BYTES = 1 << 20


class Ended(Exception):
    """The other side is gone."""


def send(
    to: socket.socket, message: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
) -> None:
    """`data`: pieces of `size` bytes in all. Raises Ended, ValueError."""
    text = json.dumps(message, allow_nan=False).encode()
    try:
        to.sendall(LENGTHS.pack(len(text), size) + text)
        for piece in data:
            to.sendall(piece)
            size -= piece.nbytes
    except OSError as error:
        raise Ended(str(error)) from None
    if size:
        raise ValueError(f"{size} bytes fewer than announced")


def receive(of: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """The next message and its bytes. Raises Ended, ValueError for what is no message."""
    length, size = LENGTHS.unpack(_exactly(of, LENGTHS.size))
    if length > MOST_JSON_BYTES:
        raise ValueError(f"a message of {length} bytes")
    message = json.loads(_exactly(of, length))
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message, _exactly(of, size)


def _exactly(of: socket.socket, size: int) -> bytearray:
    found = bytearray(size)
    view = memoryview(found)
    while view:
        try:
            count = of.recv_into(view)
        except OSError as error:
            raise Ended(str(error)) from None
        if not count:
            raise Ended("no more messages")
        view = view[count:]
    return found
