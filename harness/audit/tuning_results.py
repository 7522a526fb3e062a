"""The configurations that runs on a GPU found fastest, for the table of the backend `triton`.

`attnbench kernels keep` merges them into the table.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...impls._triton.tuned import Choice, Kind, choice_of
from ..cases.case import problem_of
from ..rows.record import Status
from ..rows.run_files import read_meta, read_rows


def choices(run: Path) -> tuple[dict[Kind, Choice], list[str]]:
    """The last timed choice for each kind of problem, and why other rows give none.

    Raises BadInput.
    """
    meta = read_meta(run)
    environments = {one["name"]: one["environment"] for one in meta.get("environments", ())} or {
        None: meta["environment"]
    }
    found: dict[Kind, Choice] = {}
    notes: list[str] = []
    for row in _timed(run):
        try:
            choice = _choice(row, environments[row.get("python")], run.name)
        except (KeyError, TypeError, ValueError) as error:
            notes.append(f"{row['case']}: left out: {error}")
        else:
            found[choice.kind] = choice
    return found, notes


def _timed(run: Path) -> Iterator[dict[str, Any]]:
    """Rows whose configuration was chosen by timing, not from the table or as the only one."""
    for row in read_rows(run):
        if row["kind"] == "latency" and row["backend"] == "triton" and row["status"] == Status.OK:
            facts = row.get("configuration") or {}
            if facts.get("configuration_source") == "timed":
                yield row


def _choice(row: Mapping[str, Any], environment: Mapping[str, Any], run: str) -> Choice:
    """Raises KeyError, TypeError or ValueError if the table cannot hold it."""
    if row["dtype"] == "fp32" and environment["tf32"]:
        raise ValueError("chosen for products in TF32; the table is for full precision")
    if environment["compute_capability"] is None:
        raise ValueError("the run does not know the GPU's compute capability")
    major, minor = map(int, environment["compute_capability"].split("."))
    gpu, triton = environment["device_name"], environment["triton"]
    return choice_of(
        problem_of(row), (major, minor), row["configuration"], run=run, gpu=gpu, triton=triton
    )
