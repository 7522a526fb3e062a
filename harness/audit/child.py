"""The child that compiles kernels: requests in, events out (process/child.py).

Requests carry the key "op": first `plan`, answered by the kernels of a selection, then `compile`,
answered by the result for one kernel.
"""

import gc
import os
from collections.abc import Mapping
from typing import Any

from ..files.errors import first_line, traceback_end
from ..process.child import Parent


def main() -> None:
    parent = Parent()
    os.environ.pop("TRITON_INTERPRET", None)  # interpreted kernels cannot be compiled
    import torch

    from ..machine.environment import collect
    from ..process.fingerprint import git_commit
    from .compiler import TRITON

    torch.set_num_threads(1)
    gc.freeze()  # what is imported stays: not to be looked at again while kernels are compiled
    environment = collect(torch.device("cpu")) | {"git": git_commit(), "triton": TRITON}
    parent.say({"event": "ready", "environment": environment})
    jobs: dict[str, Any] = {}
    for request in parent.requests():
        if request["op"] == "plan":
            event, jobs = plan(request)
            parent.say(event)
        elif request["op"] == "compile":
            parent.say(compiled(jobs[request["case"]]))


def plan(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The event, and the jobs by the ids in it."""
    from .compiler import plan_kernels
    from .readings import known_to_ptxas, ptxas_version

    capabilities = [(major, minor) for major, minor in request["capabilities"]]
    for one in capabilities:
        known = known_to_ptxas(one)
        if known and one not in known:
            found = {"capability": one, "ptxas": ptxas_version(one), "known": sorted(known)}
            return {"event": "unknown_capability", **found}, {}
    kernels = list(plan_kernels(capabilities, tuple(request["dtypes"]), request["kernels"]))
    event = {"event": "planned", "kernels": [fields for fields, _ in kernels]}
    return event, {fields["case"]: job for fields, job in kernels}


def compiled(job: Any) -> dict[str, Any]:
    """The event."""
    from . import compiler

    try:
        found = {"status": "ok", "reason": "", "log_tail": None, **compiler.compile_kernel(job)}
    except Exception as error:  # noqa: BLE001 - a compiler may raise anything; the others go on
        found = {"status": "error", "reason": first_line(error), "log_tail": traceback_end()}
    return {"event": "compiled", **found}


if __name__ == "__main__":
    main()
