"""The flags that several verbs share, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_ROOT = Path("results")


class Device(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


Root = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder that holds the run folders.")
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Run folder, or its name under --out; 'latest' is the newest."
    ),
]

Imported = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="MODULE:ATTRIBUTE",
        help="Also this callable or module of yours; needs --allow-import. Repeatable.",
    ),
]
AllowImport = Annotated[
    bool,
    typer.Option(
        "--allow-import", help="Let workers import and run the modules that --backend names."
    ),
]
Batch = Annotated[str | None, typer.Option(help="Batch sizes, as 1,8.")]
KvSeqLen = Annotated[str | None, typer.Option(help="Key/value lengths, where they differ.")]
DModel = Annotated[str | None, typer.Option(help="Model widths.")]
Heads = Annotated[str | None, typer.Option(help="Numbers of heads.")]
KvHeads = Annotated[str | None, typer.Option(help="Numbers of key/value heads, where they differ.")]
Dtype = Annotated[str | None, typer.Option(help="fp32, bf16, fp16.")]
Causal = Annotated[bool, typer.Option("--causal", help="Mask the future.")]
Mask = Annotated[str | None, typer.Option(help="none, padding, random, local, strided, blocks.")]
Window = Annotated[str | None, typer.Option(help="Windows of the masks that have one.")]
Passes = Annotated[str | None, typer.Option(help="forward, backward, forward+backward.")]
Scope = Annotated[str | None, typer.Option(help="core (from q, k, v) or layer (with projections).")]

Where = Annotated[
    Device | None, typer.Option(help="Where to measure; auto takes a GPU where there is one.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Time limit of one step of a case, or of one probe of a wall."
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run on this device to end.")]
Seed = Annotated[int, typer.Option(help="Of inputs and of the order of measuring.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing sentences.")]
AsJson = Annotated[bool, typer.Option("--json", help="Progress as JSON lines on stdout.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", "-n", help="Show every case with its predicted bytes; measure nothing."
    ),
]
