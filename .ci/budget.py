"""How much code there may be: `make check` fails above .ci/budget.toml and names what grew.

A code line has a token that is neither blank, comment nor docstring; tokens tell lines that were
only made denser. Folders are compared with the commit that last changed the budget.
"""

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

TOPS = ("harness", "impls", "reports", "tests")
OTHER = (".html", ".jinja", ".j2", ".js", ".css")  # templates, scripts, styles: lines not blank
PLAIN = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE}
PLAIN |= {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
BUDGET = ".ci/budget.toml"


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, check=True).stdout


def size(text: str) -> tuple[int, int]:
    """Code lines and tokens of a Python file."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in PLAIN and token.start[0] not in docs
    ]
    lines = {line for token in code for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docs), len(code)


def measure(files: dict[str, str]) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """By (unit, area), and the lines by folder."""
    areas: Counter[tuple[str, str]] = Counter()
    folders: Counter[str] = Counter()
    for name, text in files.items():
        top, *inner = name.split("/")
        if name.endswith(OTHER):
            lines, tokens = sum(1 for line in text.split("\n") if line.strip()), 0
            counted = set() if top == "tests" else {"other"}
        else:
            lines, tokens = size(text)
            counted = {top, "tests" if top == "tests" else "source"}
        for area in counted:
            areas["lines", area] += lines
            areas["tokens", area] += tokens
        folders["/".join([top, *inner[:-1][:1]])] += lines
    return areas, folders


def main() -> None:
    names = git("ls-files", "-co", "--exclude-standard", *TOPS).decode().split()
    kept = [name for name in names if name.endswith((".py", *OTHER)) and Path(name).is_file()]
    areas, folders = measure({name: Path(name).read_text() for name in kept})
    budget = tomllib.loads(Path(BUDGET).read_text())
    above = [
        f"{area}: {areas[unit, area]:,} {unit}, at most {most:,}"
        for unit in ("lines", "tokens")
        for area, most in budget[unit].items()
        if areas[unit, area] > most
    ]
    if not above:
        return
    commit = git("log", "-1", "--format=%H", "--", BUDGET).decode().strip() or "HEAD"
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, *TOPS))) as tree:
        before = measure(
            {
                member.name: tree.extractfile(member).read().decode()
                for member in tree
                if member.isfile() and member.name.endswith((".py", *OTHER))
            }
        )[1]
    grown = folders - before  # only what is positive
    told = [f"  {name} +{lines}" for name, lines in grown.most_common()]
    sys.exit("\n".join([*above, f"grown since {commit[:9]}, which set {BUDGET}, in lines:", *told]))


if __name__ == "__main__":
    main()
