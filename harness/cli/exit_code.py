"""The exit code of a command, and the line that says why."""

import errno
import json
import sys

import typer

from ..errors import BadInput, EnvironmentUnmet, Refusal, StoreError


def exit_code(app: typer.Typer) -> int:
    """Run the command line. What is refused is one line on stderr; a bug is a traceback."""
    try:
        app(prog_name="attnbench")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        if isinstance(refusal, StoreError):
            for row in refusal.unsaved:
                sys.stderr.write(json.dumps(row) + "\n")
        return refusal.exit_code
    except ValueError as error:
        from ...impls import BadBackend

        if not isinstance(error, BadBackend):  # a user's file
            raise
        sys.stderr.write(f"{error}\n")
        return BadInput.exit_code
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        sys.stderr.write(f"{error.strerror}: wanted at least 32; raise the limit: ulimit -n 1024\n")
        return EnvironmentUnmet.exit_code
    except KeyboardInterrupt:
        return 130
    return 0
