"""The command `attnbench`, also as `python -m attnbench`: from a bare checkout with PYTHONPATH=.package and nothing
installed.
"""

import sys

# `python -m` puts the current folder first, where a numpy.py of the user's would stand in for numpy.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn


def main() -> None:
    """The command line; Ctrl-C ends it in one line, also while its packages are imported."""
    interrupt = Interrupt()
    try:
        from .harness.verbs.app import main as command

        command()
    except BaseException as error:
        # What an interrupted import raises may be anything, such as an ImportError of its package.
        done = isinstance(error, SystemExit) and not error.code
        if not interrupt.came or done:
            raise
        interrupt.end()
    finally:
        interrupt.leave()


class Interrupt:
    """Notices the first SIGINT, unless it is ignored as in a shell's background job."""

    def __init__(self) -> None:
        self.came = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            sys.unraisablehook = self._unraisable

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt

    def _unraisable(self, what: Any) -> None:
        """Where nothing can be raised, such as in a __del__, Python would go on."""
        if isinstance(what.exc_value, KeyboardInterrupt):
            self._say()
            os._exit(128 + signal.SIGINT)
        sys.__unraisablehook__(what)

    def end(self) -> NoReturn:
        self._say()
        sys.exit(128 + signal.SIGINT)

    def leave(self) -> None:
        """From here on there is nothing to end in order."""
        if signal.getsignal(signal.SIGINT) == self._note:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _say(self) -> None:
        with suppress(OSError):
            os.write(2, b"stopped by SIGINT\n")


if __name__ == "__main__":
    main()
