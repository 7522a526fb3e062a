"""Every command that the documentation shows is one that attnbench, make, pytest or Python takes.

What is cheap is executed on stored runs; of `run` and `wall` the dry run is. The rest, which would
measure, compile or need another interpreter, is parsed.
"""

import ast
import gc
import inspect
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import attnbench
from attnbench.harness.files.errors import BadInput
from attnbench.harness.rows.names import save
from attnbench.harness.rows.run_store import point_latest
from attnbench.harness.verbs.app import HOMES, app, verb
from attnbench.harness.verbs.shell import asked
from tests.conftest import ROOT, ran
from tests.made_runs import case, problem, row, write_run

PAGES = (
    "README.md",
    "docs/**/*.md",
    "scenarios/README.md",
    "results/README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/*/README.md",
    "tests/fakes/*/README.md",
)
REFERENCE = ROOT / "results" / "reference" / "cpu-20261124-quickstart"
SUITE_FILE = "- quickstart\n- {scenario: head_cost, plan: quick}\n"
STANDS_FOR = {
    **dict.fromkeys(("RUN", "RUN...", "SUITE"), "latest"),
    "FILE": "my_scenario.yaml",
    "CONFIG": "gpt2",
    "BASE": "base",
    "NEW": "head",
    "FORMAT": "csv",
    "NAME": "other",
}
"""What placeholders of the documentation are here."""
MEASURE = {"doctor", "gate"}  # or look at this machine
UNKNOWN_HERE = (
    "latest published/flashattention",  # beside a run of its shape
    "published/cudnn-h200 h200-",  # a run of results/reference
    "attnbench merge",
    "--resume",
    "--device cuda",
    "--measure",
    "latest/",
    "--checkpoint",
    "--commit HEAD",
    "mine,sdpa",
    "advise tiny",  # recipes of docs/extending.md, which tests/test_recipes.py adds and runs
    "run mine",
)

NEED_MORE = ("run", "wall", "advise", "compare", "gate", "merge", "report")


def pages() -> Iterator[str]:
    for pattern in PAGES:
        for page in sorted(ROOT.glob(pattern)):
            yield page.read_text(encoding="utf-8")


def documented() -> list[str]:
    """The commands of indented or fenced blocks, and those in `backticks`, each once."""
    found: dict[str, None] = {}
    for text in pages():
        blocks = re.findall(r"^(?: {4}| *- run: |)(?:\w+=\S+ )?(attnbench [a-z].*)$", text, re.M)
        shown = [line for line in blocks if f"\n{line}" not in text]  # no line of prose
        shown += filter(is_whole, re.findall(r"`(attnbench [a-z]+[^`]*)`", text))
        shown += re.findall(r"^ {4}\S.* (?:-- |--wrap ')(attnbench [a-z][^'\n]*)", text, re.M)
        found |= dict.fromkeys(" ".join(words(one)) for one in shown)
    return list(found)


def words(command: str) -> list[str]:
    """Without the comment, the redirection and optional parts."""
    plain = re.sub(r" {2,}.*|\s>\s.*| \[.*\]$", "", command)
    given = shlex.split(plain, comments=True) if plain.count("'") % 2 == 0 else plain.split()
    return [shlex.quote(STANDS_FOR.get(word, word)) for word in given]


def is_whole(command: str) -> bool:
    """Not only the name of a command or of an option in a sentence."""
    words = command.split()
    needs_more = words[1] in NEED_MORE
    return "FILE" not in words and (not needs_more or (len(words) > 2 and words[2][0] != "-"))


COMMANDS = documented()
EXECUTED = [
    one
    for one in COMMANDS
    if one.split()[1] not in MEASURE and not any(part in one for part in UNKNOWN_HERE)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the documentation takes for granted: runs, a baseline, files of the user."""
    folder = tmp_path_factory.mktemp("documented")
    sides = (*["results"] * 5, "base", "base", "head", "head")
    for number, side in enumerate(sides):
        name = f"2026112{number}T000000Z-quickstart-0000000{number}"
        shutil.copytree(REFERENCE, folder / side / name)
    newest = folder / "results" / "20261124T000000Z-quickstart-00000004"
    point_latest(newest.parent, newest.name)
    save("main", newest, folder / "results", force=False)
    own = (ROOT / "scenarios" / "quickstart.yaml").read_text(encoding="utf-8")
    for name in ("my", "my_scenario"):
        (folder / f"{name}.yaml").write_text(own, encoding="utf-8")
    (folder / "my_suite.yaml").write_text(SUITE_FILE, encoding="utf-8")
    return folder


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(typer, "launch", lambda page: 0)  # no browser
    yield
    gc.enable()  # `compare` turns it off for the rest of its process


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for command in ("attnbench rnu", "attnbench run --nope"):
        with pytest.raises(Exception, match="No such"):
            parse(command)
    for command in ("attnbench list nothing", "attnbench run --plan fast", "attnbench merge"):
        with pytest.raises(BadInput, match="wanted"):
            parse(command)


def parse(command: str) -> None:
    """Raises if a verb or an option does not exist, an argument is missing, or a value is wrong."""
    parser, arguments = typer.main.get_command(app), shlex.split(command)[1:]
    context = parser.make_context("attnbench", list(arguments))
    while hasattr(parser, "resolve_command") and arguments:
        name, parser, arguments = parser.resolve_command(context, arguments)
        context = parser.make_context(name, list(arguments), parent=context)
        asked(verb(name), context.params)


HELP = [line for name in HOMES for line in verb(name).examples]


def test_the_documentation_and_the_help_show_commands_of_every_kind() -> None:
    verbs = {command.split()[1] for command in COMMANDS}
    assert verbs >= {"run", "wall", "show", "compare"}
    assert len(EXECUTED) >= 25
    assert {line.split()[1] for line in HELP} >= {"run", "gate", "compare", "list"}


@pytest.mark.parametrize("command", [*COMMANDS, *HELP])
def test_a_command_that_is_shown_is_taken(command: str) -> None:
    parse(command.partition(" > ")[0])


@pytest.mark.long
@pytest.mark.parametrize("command", EXECUTED)
@pytest.mark.usefixtures("there")
def test_a_cheap_documented_command_works(command: str) -> None:
    arguments = shlex.split(command)[1:]
    if arguments[0] in ("run", "wall") and "--dry-run" not in arguments:
        arguments.append("--dry-run")
    if "--save" in arguments:
        arguments.append("--force")
    done = CliRunner().invoke(app, arguments)
    allowed = (0, 3) if "--gate" in arguments else (0,)  # 3: the gate's verdict
    assert done.exit_code in allowed, done.exception or done.output


SHOWN = "\n".join(pages())
MADE = sorted(
    set(re.findall(r"^ {4}(make .+)$", SHOWN, re.M) + re.findall(r"`(make[^`]+)`", SHOWN))
)


@pytest.mark.parametrize("command", MADE)
def test_make_has_the_documented_targets_and_variables(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    for word in shlex.split(re.sub(r" {2,}.*", "", command))[1:]:
        variable, given, _ = word.partition("=")
        assert re.search(rf"\b{variable}\b", makefile) if given else word in targets


PYTEST = sorted(set(re.findall(r"^ {4}pytest (.+)$", SHOWN, re.M)))


@pytest.mark.long
@pytest.mark.parametrize("command", PYTEST)
def test_pytest_takes_a_documented_command(command: str, tmp_path: Path) -> None:
    """It finds cases; none is measured."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    (own_file,) = re.findall(r"^ {4}# bench\.scenario\.yaml .*\n((?: {4}.*\n)+)", SHOWN, re.M)
    (tmp_path / "bench.scenario.yaml").write_text(textwrap.dedent(own_file))
    planned = case("sdpa", problem(512))
    results = tmp_path / "results"
    save("main", write_run(results, [planned], [row(planned)], name="bench"), results, force=False)
    words = shlex.split(command, comments=True)
    arguments = [sys.executable, "-m", "pytest", *words, "--collect-only", "-q"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = ran(arguments, cwd=tmp_path, env=own, check=True)
    assert re.search(r"^\d+ tests collected", done.stdout, re.M), done.stdout


PYTHON = sorted(set(re.findall(r"^ {4}(?:\w+ = )?(attnbench\.\w+\(.*\))", SHOWN, re.M)))


@pytest.mark.parametrize("shown", PYTHON)
def test_a_documented_call_fits_the_function(shown: str) -> None:
    call = ast.parse(shown.partition("  #")[0]).body[0].value
    function = getattr(attnbench, call.func.attr)
    inspect.signature(function).bind(*call.args, **{one.arg: one.value for one in call.keywords})


@pytest.mark.long
@pytest.mark.usefixtures("there")
def test_a_documented_line_of_python_works() -> None:
    (line,) = set(re.findall(r'^ {4}python -c "(.*)"$', SHOWN, re.M))
    done = ran([sys.executable, "-c", line], env=None, check=True)
    assert "[36 rows x " in done.stdout
