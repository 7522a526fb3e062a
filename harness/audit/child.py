"""The child in which kernels are compiled: requests in, answers out (process/child.py).

Requests carry the key "op": `plan`, which comes first and is answered by the kernels of a
selection, and `compile`, answered by the result for one of them.
"""

import os
import traceback
from collections.abc import Mapping
from typing import Any

from ..errors import first_line
from ..process.child import Parent


def main() -> None:
    parent = Parent()
    os.environ.pop("TRITON_INTERPRET", None)  # interpreted kernels cannot be compiled
    import torch

    from ..environment import collect
    from .examine import TRITON

    torch.set_num_threads(1)
    environment = collect(torch.device("cpu")) | {"triton": TRITON}
    parent.say({"event": "ready", "environment": environment})
    jobs: dict[str, Any] = {}
    for request in parent.requests():
        if request["op"] == "plan":
            answer, jobs = plan(request)
            parent.say(answer)
        elif request["op"] == "compile":
            parent.say({"event": "compiled", **compiled(jobs[request["case"]])})


def plan(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer, and the jobs by the ids in it."""
    from .examine import planned
    from .tools import known_to_ptxas, ptxas_version

    capabilities = [(major, minor) for major, minor in request["capabilities"]]
    for one in capabilities:
        known = known_to_ptxas(one)
        if known and one not in known:
            found = {"capability": one, "ptxas": ptxas_version(one), "known": sorted(known)}
            return {"event": "unknown_capability", **found}, {}
    kernels = list(planned(capabilities, tuple(request["dtypes"]), request["kernels"]))
    answer = {"event": "planned", "kernels": [fields for fields, _ in kernels]}
    return answer, {fields["case"]: job for fields, job in kernels}


def compiled(job: Any) -> dict[str, Any]:
    """The result of compiling a kernel, as fields of its row."""
    from .examine import facts

    try:
        return {"status": "ok", "reason": "", "log_tail": None, **facts(job)}
    except Exception as error:  # noqa: BLE001 - a compiler may raise anything; the others go on
        log_tail = traceback.format_exc()[-4096:]
        return {"status": "error", "reason": first_line(error), "log_tail": log_tail}


if __name__ == "__main__":
    main()
