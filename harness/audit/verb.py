"""`attnbench kernels`: audit our Triton kernels without a GPU, keep tuned configurations."""

import sys
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from ..cli.options import DEFAULT_ROOT, AsJson, Quiet, Root, argument, own_option
from ..cli.verbs import command, verbs
from ..files.errors import BadInput, instead_of, unless_refused

if TYPE_CHECKING:
    from ...impls._triton.tuned import Choice, Kind

kernels_app = typer.Typer(
    cls=verbs("attnbench kernels audit", "attnbench kernels keep latest"),
    help="Look at our Triton kernels without a GPU.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@kernels_app.callback()
def kernels() -> None:
    """Look at our Triton kernels without a GPU."""


@command(kernels_app)
def audit(
    arch: str = own_option(
        "--arch A,B", "Compute capabilities, as 80,90,100 or 8.6.", default="80,90,100"
    ),
    dtype: str | None = own_option("--dtype A,B", "fp32, bf16, fp16; all by default."),
    kernel: str | None = own_option("--kernel A,B", "forward, grad_q, grad_kv; all by default."),
    out: Root = DEFAULT_ROOT,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compile every tuned configuration to machine code and say what it takes: registers, spills,
    shared memory, occupancy.

    Needs triton, and no GPU. Exit code 1 where a kernel spills, does not compile, or has no
    configuration that fits. Prints the run folder.
    """
    import json

    from ...impls._triton.configs import KERNELS
    from ...impls.problem import Dtype
    from ...reports.audit.cells import LEGEND
    from ...reports.pages.terminal_blocks import render_block
    from ..run.listener import Listener
    from ..terminal.progress import JsonProgress, echo, say, started
    from .occupancy import parse_capabilities
    from .pool import KernelSelection
    from .run import audit as audit_kernels
    from .table import AuditProgress, tables

    selection = KernelSelection(
        capabilities=parse_capabilities(arch),
        dtypes=_chosen("--dtype", dtype, ("bf16", "fp16", "fp32"), get_args(Dtype)),
        kernels=_chosen("--kernel", kernel, KERNELS, KERNELS),
    )
    progress = JsonProgress() if as_json else Listener() if quiet else AuditProgress()
    with started(progress, "starting compilers"):
        audited = audit_kernels(selection, out, ["attnbench", *sys.argv[1:]], progress)
    sentences = [verdict.sentence for verdict in audited.verdicts]
    if as_json:
        end = {"reason": "end", "run": str(audited.path), "verdicts": sentences}
        typer.echo(json.dumps(end))
        raise typer.Exit(audited.exit_code)
    if not quiet:
        for table in tables(audited.rows):
            for part in render_block(table):
                echo(part)
            typer.echo("")
        say(f"{LEGEND} Of causal and not, the worse.")
        typer.echo("")
        for sentence in sentences:
            say(sentence)
    typer.echo(audited.path)
    raise typer.Exit(audited.exit_code)


@command(kernels_app)
def keep(
    runs: Annotated[list[str], argument("RUN", "Runs of the backend triton on a GPU.")],
    out: Root = DEFAULT_ROOT,
) -> None:
    """Take the configurations that runs found fastest into the table that ships with the backend,
    so that nobody need time them again.

    A choice replaces an older one for the same kind of problem. Commit the file that is printed,
    and the runs that chose.
    """
    from ...impls._triton.tuned import FILE, merged
    from ..files.safe_files import write_whole
    from ..store.names import find
    from .tuning_results import choices

    found: dict[Kind, Choice] = {}
    for run in runs:
        chosen, notes = choices(find(run, out))
        found |= chosen
        for note in notes:
            typer.echo(note, err=True)
    if not found:
        raise BadInput(
            f"{' '.join(runs)}: nothing was timed to choose by; run `attnbench run kernel_sweep"
            " --device cuda` first"
        )
    with unless_refused(FILE, "keep choices from a checkout of your own"):
        write_whole(FILE, merged(found.values(), FILE))  # workers may be reading it
    typer.echo(f"{len(found)} kinds of problem", err=True)
    typer.echo(FILE)


def _chosen(
    flag: str, text: str | None, usual: tuple[str, ...], known: tuple[str, ...]
) -> tuple[str, ...]:
    """What stands between commas, each once. Raises BadInput."""
    chosen = usual if text is None else tuple(dict.fromkeys(one.strip() for one in text.split(",")))
    for one in chosen:
        if one not in known:
            raise BadInput(f"{flag}: no {one!r}; {instead_of(one, known)}")
    return chosen
