"""Commands for a shell, from the files of a run.

Who wrote the files is not known. So a command starts `attnbench` and nothing else, names no other
program, permits no import, which naming a module does too, and is quoted.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

PROGRAMS = ("--python", "--base-python")
PERMISSION = "--allow-import"
BACKENDS = ("--backends", "--backend")
MODULE = re.compile(r"(?<![^,\s])([^\s,:\[\]]+):[^\s,]+,?")
"""In `--backends`: a variant of a backend, or a module; naming that permits to import it."""
SHIPPED = {file.stem for file in (Path(__file__).parents[2] / "impls").glob("*.py")}
LEFT_OUT = (
    "  # its programs, modules and --allow-import are left out: give them again if you trust them"
)
UNPRINTABLE = "(not shown: it has characters that cannot be printed)"
FROM_PYTHON = re.compile(
    r"attnbench\.(run|open_run|wall|advise|doctor|merge)\(('[\w.:-]*')?\)(\.resume\(\))?", re.ASCII
)


def typed(words: object) -> str | None:
    """The command of run.json, without programs and permissions; None if it is none of ours."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    if len(words) == 1 and FROM_PYTHON.fullmatch(words[0]):
        return str(words[0])
    if words[:1] == ["pytest"]:
        return "pytest"  # its options can name plugins
    if words[:1] != ["attnbench"]:
        return None
    safe = [*_without_programs(words)]
    return joined(safe) + (LEFT_OUT if safe != words else "")


def _without_programs(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in BACKENDS:
            value = value if equals else next(rest, "")
            if kept := _without_modules(value):
                yield from ([f"{option}={kept}"] if equals else [option, kept])
        elif option in PROGRAMS and not equals:
            next(rest, None)
        elif option not in (*PROGRAMS, PERMISSION):
            yield word


def _without_modules(backends: str) -> str:
    kept = MODULE.sub(lambda found: found[0] if found[1] in SHIPPED else "", backends)
    return kept if kept == backends else kept.rstrip(", ")


def joined(words: Sequence[str]) -> str:
    return shlex.join(words) if all(word.isprintable() for word in words) else UNPRINTABLE


def with_plan(words: object, plan: str) -> str | None:
    """What was typed, with another plan; None if it was no run, or one that needs a permission."""
    return _with(words, "--plan", plan)


def with_case(words: object, case: str) -> str | None:
    """The same, of one case alone."""
    return _with(words, "--only", case)


def _with(words: object, option: str, value: str) -> str | None:
    known = typed(words) or LEFT_OUT
    if not isinstance(words, list) or words[:2] != ["attnbench", "run"] or LEFT_OUT in known:
        return None
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, _, given = word.partition("=")
        if name in (option, "--resume", "--set"):
            given = given or next(rest, "")
            if name == "--set" and f"--{given.partition('.')[0].partition('=')[0]}" != option:
                kept += [name, given]
        elif name != "--dry-run":
            kept.append(word)
    return joined([*kept, option, value])
