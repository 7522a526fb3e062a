"""`attnbench published`, and what show, report and compare do with a name such as
`published:cudnn-h200`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..cli.options import DEFAULT_ROOT, Root, Texts, argument, own, own_option
from ..files.errors import BadInput, instead_of, shown
from .names import PREFIX, Convention

if TYPE_CHECKING:
    from ...impls.problem import Dtype
    from ...reports.elements import Table


def published(
    tables: Texts = own(
        argument("TABLE", "Names of tables, or files; all are listed if not given.")
    ),
    backward: str = own_option(
        "--backward 2|2.5",
        "FLOPs of the backward pass over the forward pass: 2 as our rows count, 2.5 with the scores"
        " computed again.",
        default="2",
    ),
    beside: Texts = own_option("--beside RUN", "Runs of yours, as marks on the page; repeatable."),
    model: str | None = own_option(
        "--model CONFIG",
        "The nearest published shapes to those of a model; a name from attnbench list models, or a"
        " config.json.",
    ),
    device: str | None = own_option("--device NAME", "With --model: of this GPU, such as h200."),
    context: int = own_option("--context TOKENS", "With --model.", default=8192, min=1),
    output: Path | None = own_option("--output -o FILE", "Write the page about the wall."),
    out: Root = DEFAULT_ROOT,
) -> None:
    """What others measured on GPUs and published, with sources. Not checked by us: such tables have
    no intervals and get no verdicts.

    `published:TABLE` is a name for show, report and compare too.
    """
    if backward not in get_args(Convention):
        raise BadInput(
            f"--backward {shown(backward)}: {instead_of(backward, list(get_args(Convention)))}"
        )
    if (model is None) != (device is None):
        given, other = ("--model", "--device h200") if model else ("--device", "--model gpt2")
        raise BadInput(f"{given}: alone it asks nothing; wanted the other too, such as {other}")
    if model is not None and device is not None:
        from ..cli.tables import show as print_blocks

        print_blocks([like(model, device, context=context)[0]])
        return
    if output is not None:
        _write(beside or [], output, out, backward)  # type: ignore[arg-type]
        return
    show([PREFIX + name if not name.endswith(".csv") else name for name in tables or []], backward)  # type: ignore[arg-type]


def show(names: Sequence[str], convention: Convention = "2") -> None:
    """In the terminal: the tables, or which there are."""
    from ...reports.pages.terminal_blocks import render_block
    from ...reports.published.text import origin, sources, tables_of
    from ..terminal.progress import echo, say
    from .tables import read

    if not names:
        for part in render_block(sources()):
            echo(part)
        say(
            f"one: attnbench show {PREFIX}cudnn-h200; the page about the wall: attnbench published"
            " -o wall.html"
        )
    for name in names:
        source = read(name)
        for table in tables_of(source, convention):
            for part in render_block(table):
                echo(part)
        say(origin(source))


def report(names: Sequence[str], output: Path | None, out: Path) -> Path | None:
    """The page about the wall, with the runs among the names as marks."""
    from .tables import read

    for name in names:
        if name.startswith(PREFIX):
            read(name)  # refuses what is no table
    runs = [one for one in names if not one.startswith(PREFIX)]
    return _write(runs, output or Path("wall.html"), out)


def compare(base: str, new: str | None, out: Path) -> None:
    """A run over a published table, by ratios alone. Raises BadInput."""
    from ...reports.data.load import rows_of
    from ...reports.data.read import read_runs
    from ...reports.pages.terminal_blocks import render_block
    from ...reports.published.text import beside
    from ..store.names import find
    from ..terminal.progress import echo
    from .tables import read

    if new is None or new.startswith(PREFIX):
        raise BadInput(f"{shown(new or base)}: wanted a run of yours after {base}, such as latest")
    table = beside(read(base), rows_of(read_runs([find(new, out)])))
    if not table.rows:
        raise BadInput(
            f"{base}: {new} has no case of the same shape, dtype and passes; measure some with"
            " `attnbench run published`"
        )
    for part in render_block(table):
        echo(part)


def like(
    config: str, device: str, *, context: int, batch: int = 1, dtype: "Dtype" = "bf16"
) -> "tuple[Table, list[dict[str, Any]]]":
    """The nearest published shapes to those of a model, also for --json. Raises BadInput."""
    from ...reports.published.text import nearest_rows, nearest_table
    from .nearest import nearest

    found = nearest(config, device, context=context, batch=batch, dtype=dtype)
    return nearest_table(found, config, device), nearest_rows(found)


def _write(
    runs: Sequence[str], output: Path, out: Path, convention: Convention = "2"
) -> Path | None:
    """None if it went into a pipe."""
    from ...reports.data.read import read_runs
    from ...reports.pages.html import render
    from ...reports.published.page import wall
    from ..cli.report import written_to
    from ..files.safe_files import write_output
    from ..store.names import find

    folders = [find(name, out) for name in runs]
    page = render(wall(read_runs(folders), convention))
    with written_to(output, "--output FILE"):
        if not write_output(output, page):
            return None
        sys.stdout.write(f"{output}\n")
    return output
