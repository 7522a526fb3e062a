"""`attnbench list`: its verbs parse and hand over, as those of app.py do."""

from typing import Annotated

import typer

from .flags import DEFAULT_ROOT, Device, Root

list_app = typer.Typer(
    help="List backends, scenarios, studies, probes or runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@list_app.command("backends")
def list_backends(
    device: Annotated[Device, typer.Option(help="Where they would run.")] = Device.AUTO,
) -> None:
    """Backends, and why one cannot run here."""
    from ...impls import ignored
    from ..terminal import echo
    from .listing import backends_table

    echo(backends_table(device.value))
    for sentence in ignored():
        typer.echo(sentence, err=True)


@list_app.command("scenarios")
def list_scenarios() -> None:
    """Shipped scenarios and the question that each answers."""
    from ..terminal import echo
    from .listing import scenarios_table

    echo(scenarios_table())


@list_app.command("studies")
def list_studies() -> None:
    """What can be looked at without timing it, and the question that each study answers."""
    from ..terminal import echo
    from .listing import studies_table

    echo(studies_table())


@list_app.command("probes")
def list_probes() -> None:
    """What is read of the device while a backend runs, and which `measure` asks for it."""
    from ..terminal import echo
    from .listing import probes_table

    echo(probes_table())


@list_app.command("runs")
def list_runs(out: Root = DEFAULT_ROOT) -> None:
    """Runs in a folder: when, what, how they ended."""
    from ..terminal import echo
    from .listing import runs_table

    echo(runs_table(out))
