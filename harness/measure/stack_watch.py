"""Notice a backend that reads the call stack: to know who calls it, or to find the exact result.

CPython raises an audit event when Python code asks for frames or for the collector's objects (PEP
578; "Audit events table" of its library reference). A backend has no use for either. An event
counts if its own file asked; torch and other packages may. Frames reached through the traceback of
an exception raise no event and go unnoticed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EVENTS = {"sys._getframe", "sys._current_frames", "gc.get_objects", "gc.get_referrers"}
ON_BEHALF = ("/inspect.py", "/traceback.py")  # of the standard library, for whoever called them


class StackWatch:
    """`asked`: what the watched file did, "" if nothing. Make one only: a hook stays for good."""

    def __init__(self) -> None:
        self.asked = ""
        self._file: str | None = None
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(self, file: str | None) -> Iterator[None]:
        """Watch the code of one file; None watches nothing."""
        self.asked, self._file = "", file
        try:
            yield
        finally:
            self._file = None

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._file is None or event not in EVENTS:
            return
        file, self._file = self._file, None  # asking for frames below is an event too
        try:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.endswith(ON_BEHALF):
                frame = frame.f_back
            if frame is not None and frame.f_code.co_filename == file:
                self.asked = (
                    f"reads the call stack ({event} in line {frame.f_lineno} of its file): its"
                    " result must not depend on who calls"
                )
        finally:
            self._file = file
