"""The exit code of a command, and the line that says why."""

import errno
import json
import re
import sys
from typing import Any

import typer

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, StoreError
from ..files.printable import visible
from .verbs import UsageError


def exit_code(app: typer.Typer) -> int:
    """Run the command line. What is refused is one line on stderr; a bug is a traceback."""
    try:
        code = app(prog_name="attnbench", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            sys.stderr.write(f"{misused(error)}\n")
        return int(error.exit_code)
    except typer.Abort:
        return 1
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


def misused(error: Any) -> str:
    """A line on options or arguments that the command does not take."""
    context = error.ctx
    command = context.command_path if context else "attnbench"
    text = re.sub(r"^Invalid value for (.+?): (?:Value error, )?", r"\1: ", error.format_message())
    text = re.sub(r"Input should be (an? )?(?:valid )?", r"wanted \1", text)
    text = re.sub(r", unable to parse .*", "", text).rstrip(".")
    text = re.sub(r"'(--?[\w-]+)'", r"\1", text)
    if re.match(r"Missing argument 'RUN", text):
        text += ", such as latest"
    if unknown := re.match(r"No such command '(.*?)'", text):
        from ..scenario.names import shipped  # which imports what reads scenarios

        if unknown[1] in shipped():
            text += f"; a scenario is measured with `attnbench run {unknown[1]}`"
        elif "Did you mean" not in text:
            text += f"; there are: {', '.join(context.command.list_commands(context))}"
    return visible(f"{command}: {' '.join(text.split())}; see `{command} -h`")
