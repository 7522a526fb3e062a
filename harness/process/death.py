"""How a process ended, in words."""

import signal
from contextlib import suppress

from ..machine.control_group import host_oom_kills


def signal_name(number: int) -> str:
    """`SIGSEGV`; `signal 35 (SIGRTMIN+1)` for one that has no name of its own."""
    with suppress(ValueError):
        return signal.Signals(number).name
    real_time = number - signal.SIGRTMIN
    more = f" (SIGRTMIN+{real_time})" if 0 < real_time < signal.SIGRTMAX - signal.SIGRTMIN else ""
    return f"signal {number}{more}"


def how_it_ended(name: str, exit_code: int, oom_kills_before: int | None) -> str:
    """Of the process called `name`; `exit_code` is -N if signal N ended it."""
    if exit_code >= 0:
        return f"the {name} ended with exit code {exit_code}"
    by = signal_name(-exit_code)
    if by != "SIGKILL":
        return by
    kills = host_oom_kills()
    if kills is not None and oom_kills_before is not None and kills > oom_kills_before:
        return f"{by} by the host's out-of-memory killer; lower limits.memory_gib"
    return f"{by}, maybe by the host's out-of-memory killer"
