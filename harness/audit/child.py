"""The child that compiles kernels: requests in, events out (process/child.py).

Requests carry the key "op": first `plan`, answered by the kernels of a selection, then `compile`,
answered by the result for one kernel, or by `built` if its machine code is still to be read. `read`
does that for all of those at once and is answered by their results, in the order they were built.
"""

import gc
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..files.errors import first_line, traceback_end
from ..process.child import Parent


def main() -> None:
    parent = Parent()
    os.environ.pop("TRITON_INTERPRET", None)  # interpreted kernels cannot be compiled
    import torch

    from ..machine.environment import collect
    from .compiler import TRITON

    torch.set_num_threads(1)
    gc.freeze()  # what is imported stays: not to be looked at again while kernels are compiled
    environment = collect(torch.device("cpu")) | {"triton": TRITON}
    parent.say({"event": "ready", "environment": environment})
    jobs: dict[str, Any] = {}
    unread: list[Any] = []
    for request in parent.requests():
        if request["op"] == "plan":
            event, jobs = plan(request)
            parent.say(event)
        elif request["op"] == "compile":
            parent.say(compiled(jobs[request["case"]], unread))
        elif request["op"] == "read":
            for answer in read(unread):
                parent.say(answer)
            unread.clear()


def plan(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The event, and the jobs by the ids in it."""
    from .compiler import plan_kernels
    from .cuda_tools import known_to_ptxas, ptxas_version

    capabilities = [(major, minor) for major, minor in request["capabilities"]]
    for one in capabilities:
        known = known_to_ptxas(one)
        if known and one not in known:
            found = {"capability": one, "ptxas": ptxas_version(one), "known": sorted(known)}
            return {"event": "unknown_capability", **found}, {}
    kernels = list(plan_kernels(capabilities, tuple(request["dtypes"]), request["kernels"]))
    event = {"event": "planned", "kernels": [fields for fields, _ in kernels]}
    return event, {fields["case"]: job for fields, job in kernels}


def compiled(job: Any, unread: list[Any]) -> dict[str, Any]:
    """The event; a kernel whose machine code is still to be read goes to `unread`."""
    from . import compiler

    try:
        built = compiler.build(job)
    except Exception as error:  # noqa: BLE001 - a compiler may raise anything; the others go on
        return _failed(error)
    if built.reading is None:
        unread.append(built)
        return {"event": "built"}
    return _result(built)


def read(unread: list[Any]) -> Iterator[dict[str, Any]]:
    """An event for each."""
    from .compiler import disassemble

    disassemble(unread)
    yield from map(_result, unread)


def _result(built: Any) -> dict[str, Any]:
    from .compiler import row_fields

    try:
        found = row_fields(built)
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(error)
    return {"event": "compiled", "status": "ok", "reason": "", "log_tail": None, **found}


def _failed(error: Exception) -> dict[str, Any]:
    tail = traceback_end()
    return {
        "event": "compiled",
        "status": "error",
        "reason": first_line(error),
        "log_tail": tail,
    }


if __name__ == "__main__":
    main()
