"""What doctor says of torch, driver, CUDA and cuDNN, and of the CPU, its load and its memory."""

import os
import resource
from math import ceil

from ..devices.nvml import ERROR_TEXTS, without_function
from .facts import Facts
from .rules import Rule, gib

NO_DRIVER = (
    ERROR_TEXTS["NVML_ERROR_LIBRARY_NOT_FOUND"],
    ERROR_TEXTS["NVML_ERROR_DRIVER_NOT_LOADED"],
)
REMEDIES = {
    "busy or unavailable": (
        "another process holds it, or its compute mode forbids programs: see below"
    ),
    "no kernel image": (
        "install a build of torch that has kernels for this GPU's compute capability"
        " (torch.cuda.get_arch_list())"
    ),
    "driver on your system is too old": (
        "update the driver, or install a build of torch for the driver's CUDA version, below"
    ),
}
"""By a part of CUDA's error."""


def computes(facts: Facts) -> bool:
    """On a GPU."""
    return not facts["why_not"]


def unlisted(facts: Facts) -> bool:
    """Torch computes on a GPU, and NVML lists none."""
    return computes(facts) and not facts["listed"].value


def no_gpu(facts: Facts) -> bool:
    return not facts["has_gpu"]


def has_gpu(facts: Facts) -> bool:
    return bool(facts["has_gpu"])


def other(facts: Facts) -> bool:
    """Than an NVIDIA GPU."""
    return no_gpu(facts) and bool(facts["other"])


def no_cudnn(facts: Facts) -> bool:
    return computes(facts) and facts["loaded_cudnn"].value is None


def no_driver(facts: Facts) -> bool:
    return not facts["has_gpu"] and facts["listed"].reason in NO_DRIVER


def why_unlisted(facts: Facts) -> str:
    return without_function(facts["listed"].reason)


def gpu_name(facts: Facts) -> str:
    return (
        f"{facts['device_name']}, compute capability {facts['compute_capability']},"
        f" {facts['device_memory_bytes'] / 2**30:.0f} GiB"
    )


def remedy(facts: Facts) -> str:
    """What to do if there is a GPU and torch cannot use it."""
    for part, advice in REMEDIES.items():
        if part in facts["why_not"]:
            return advice
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if facts["cuda"] is None:
        return (
            "install a build of torch for a CUDA version that the driver has"
            " (pytorch.org/get-started)"
        )
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES={visible!r} may hide it; unset it"
    return "compare the driver's CUDA version with torch's, below"


def too_new(facts: Facts) -> bool:
    """A driver runs programs for its CUDA version, for older ones, and for the same major one."""
    newest = facts["driver_cuda"].value
    return bool(facts["cuda"] and newest and int(facts["cuda"].split(".")[0]) > newest // 1000)


def versions(facts: Facts) -> str:
    newest, reason = facts["driver_cuda"]
    torchs = f"torch was built {facts['built']}"
    if newest is None:
        return f"{torchs}; the driver's version is unknown: {reason}"
    return f"driver {newest // 1000}.{newest % 1000 // 10}, {torchs}"


def lacks_compiler(facts: Facts) -> bool:
    """Without one, backends that compile are unavailable."""
    return bool(facts["missing_compiler"][0]) and (computes(facts) or no_gpu(facts))


ON_THE_CPU = (
    "runs use the CPU: latency, exact memory and CPU time per thread; SM utilization needs a GPU"
)
COSTS = "runs measure latency and memory only, without clocks, power, energy and counters"
NO_GPU_LISTED = "{driver_version}, loaded, lists no GPU"
GIVE_ONE = "give the container a GPU (--gpus all), or look for 'fallen off the bus' in dmesg"
DERIVED = "no counters; derived from FLOPs once attnbench doctor --deep has measured peaks"
UPDATE = "update the driver, or install a build of torch for the driver's CUDA version"
OTHER_CUDNN = "sdpa:cudnn will not run; usually LD_LIBRARY_PATH names another cuDNN"
KERNELS = "every run still checks its results; make gpu notes which kernels this GPU has run"
SOFTWARE_RULES = (
    Rule("driver", "ok", why_unlisted, when=no_driver),
    # a note: without torch's GPU the finding on torch is bad, with it only counters are lost
    Rule("driver", "note", why_unlisted, COSTS, lambda f: f["listed"].value is None),
    Rule("driver", "note", NO_GPU_LISTED, GIVE_ONE, lambda f: not f["listed"].value),
    Rule("driver", "ok", "{driver_version}", when=lambda f: f["knows_driver"]),
    Rule("driver", "note", "{driver_version}"),
    Rule("gpu", "ok", gpu_name, when=unlisted),
    Rule("utilization", "note", DERIVED, when=unlisted),
    Rule("gpu", "note", "{other}, not measured", f"with --device cpu {ON_THE_CPU}", other),
    Rule("gpu", "ok", "none", ON_THE_CPU, no_gpu),
    Rule("torch", "ok", "{torch}, built {built}, computes on {device_name}", when=computes),
    Rule("torch", "bad", "{torch} cannot use the GPU: {why_not}", remedy, has_gpu),
    Rule("torch", "ok", "{torch}, built {built}"),
    Rule("cuda", "note", versions, UPDATE, lambda f: has_gpu(f) and too_new(f)),
    Rule("cuda", "ok", versions, when=lambda f: has_gpu(f) and f["driver_cuda"].value),
    Rule("cuda", "note", versions, when=has_gpu),
    Rule("cudnn", "note", "does not load: {loaded_cudnn.reason}", OTHER_CUDNN, no_cudnn),
    Rule("cudnn", "ok", "{loaded_cudnn.value[0]} from {loaded_cudnn.value[1]}", when=computes),
    Rule("utilization", "ok", "host: CPU time of the process, over torch's threads", when=no_gpu),
    Rule("compilers", "note", "{missing_compiler[0]}", "{missing_compiler[2]}", lacks_compiler),
    Rule("triton", "note", "{kernels}", KERNELS, lambda f: computes(f) and f["kernels"]),
)

# ---- the host ------------------------------------------------------------------------------------

CROWDED_SHARE = 0.5
"""Of the cores: a higher load disturbs calls that use them all."""


def usable_cores(facts: Facts) -> int:
    cores: int = facts["cores"]
    return min(cores, ceil(facts["quota_cores"] or cores))


def cpu(facts: Facts) -> str:
    return (
        f"{facts['cpu'] or 'unknown'}, {usable_cores(facts)} usable cores, torch uses"
        f" {facts['threads']} threads ({facts['cpu_capability']})"
    )


def memory(facts: Facts) -> str:
    whose = " (the host's memory)" if facts["shares_memory"] else ""
    free = f"{gib(facts['free_bytes'])} free on {facts['device']}{whose}"
    return f"{free}; runs take up to 70 % of it by default"


def limits(facts: Facts) -> str:
    """What a container, a service or a shell allows, of which less is free or usable."""
    memory, quota = facts["memory_limit"], facts["quota"]
    found = []
    if memory:
        size = f"{gib(memory.limit_bytes)}, {memory.free_bytes / 2**30:.1f} free"
        found.append(f"memory {size} ({memory.file})")
    if quota:
        found.append(f"{quota.cores:g} cores ({quota.file})")
    if facts["address_space_bytes"] != resource.RLIM_INFINITY:
        found.append(f"address space {gib(facts['address_space_bytes'])} (ulimit -v)")
    return "; ".join(found)


def settings(facts: Facts) -> str:
    return ", ".join(f"{name}={value}" for name, value in facts["allocator"].items())


SET_IT = "set OMP_NUM_THREADS, so that runs on other machines can be compared"
WAIT = "other processes will disturb CPU latencies: wait for them, or measure with --threads 1"
RECORDED = "these environment variables change numbers and are recorded"
CROWD = "{load:.1f} on {cores} cores"
HOST_RULES = (
    Rule("cpu", "ok", cpu, when=lambda f: f["threads"] == usable_cores(f)),
    Rule("cpu", "note", cpu, SET_IT, lambda f: "OMP_NUM_THREADS" not in f["allocator"]),
    Rule("cpu", "note", cpu),
    Rule("load", "note", CROWD, WAIT, lambda f: f["load"] > CROWDED_SHARE * f["cores"]),
    Rule("settings", "note", settings, RECORDED, settings),
    Rule("memory", "ok", memory),
    Rule("limits", "ok", limits, when=limits),
)
