"""Which backends run here: asked once, then kept until a file or a package changes.

Asking imports torch and every backend that may be imported, which takes seconds. What was found is
kept in $ATTNBENCH_CACHE, else in attnbench/ of the user's cache, with a digest of everything that
it depends on.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ... import impls
from ...impls._triton.ran_on_gpu import not_yet_run
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet, option
from ..files.safe_files import write_whole
from ..files.user_cache import cache_folder, installed_digest

if TYPE_CHECKING:
    import torch

    from ...impls.problem import Dtype


Row = tuple[str, ...]
"""Backend, what it is, its result, whether it runs, and a remark."""


def asked(device: str, *, refresh: bool = False) -> tuple[str, list[Row]]:
    """The kind of device, and what runs on it. Raises EnvironmentUnmet without it."""
    from ..devices.environment import pick_device

    path, digest = (
        cache_folder() / f"backends-{device}.json",
        installed_digest(device=device, kernels=not_yet_run()),
    )
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["digest"] == digest and not refresh:
            return str(kept["device"]), [tuple(map(str, row)) for row in kept["rows"]]
    found, why = pick_device(device)
    if why:
        raise EnvironmentUnmet(f"{no_device(device, why)}; try with {option('device', 'cpu')}")
    rows = [*backend_rows(found)]
    with suppress(OSError):  # a home that cannot be written costs seconds, and nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"digest": digest, "device": found.type, "rows": rows}
        write_whole(path, json.dumps(document) + "\n")
    return found.type, rows


def backend_rows(device: "torch.device") -> Iterator[Row]:
    """Each backend, and whether it runs a small problem."""
    from ...impls.discovery.names import ALIASES
    from ...impls.problem import ALL_MASKS, Problem, windowed
    from ..cases.case import Case
    from ..rows.record import Status
    from ..scenario.preflight import Preflight, preflight_outside_worker

    dtype: Dtype = "bf16" if device.type == "cuda" else "fp32"
    core = Problem(batch=1, seq_len=128, d_model=256, heads=4, dtype=dtype)
    # asked next if the backend does not support `core`
    special = {"in scope layer": replace(core, scope="layer")}
    special |= {
        f"with mask {mask}": replace(core, mask=mask) for mask in ALL_MASKS if windowed(mask)
    }
    special |= {
        "with lengths": replace(core, lengths="q96_q32", seq_len=0, kv_seq_len=0, causal=True),
        "with latent": replace(core, latent=128, rope=16),
        "with page": replace(core, page=16),
    }

    def view_of(name: str, problem: Problem) -> Preflight:
        return preflight_outside_worker(Case(backend=name, problem=problem), device, 1 << 40)

    for name in impls.names():
        view = view_of(name, core)
        runs = view.status.value if view.status else "not asked" if view.reason else "yes"
        runs = "broken" if impls.find(name).broken else runs
        why = view.reason
        if view.status is Status.UNSUPPORTED:
            fits = (only for only, one in special.items() if view_of(name, one).status is None)
            if only := next(fits, ""):
                runs, why = "yes", f"{only} only"
        also = [one for one, real in ALIASES.items() if real == name and one[0] != "_"]
        named = f"also named {', '.join(also)}" if also else ""
        kernels = not_yet_run() if name.partition(":")[0] == "triton" else ""
        remark = "; ".join(filter(None, (why, named, kernels)))
        yield name, impls.find(name).declared.about, impls.exactness(name), runs, remark
