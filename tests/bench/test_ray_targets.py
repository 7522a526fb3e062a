"""A run on Ray: two devices share its time, and starting there costs little more than here."""

import json
import time

from tests.harness.fleet.conftest import QUICK, Nodes, nodes, until

__all__ = ["nodes", "until"]  # fixtures

MOST_SHARE = 0.6  # of the time of one device
MOST_START_S = 5.0
LENGTHS = ",".join(str(32 + 16 * number) for number in range(12))
CLOCKED = (
    *("--backends", "keeps_pace", "--batch", "1", "--d-model", "32", "--heads", "2", *QUICK),
    *("--device", "cpu", "--memory-gib", "0.5", "--out", "results", "--json"),
)
"""A backend that sleeps: two of them do not disturb each other."""


def times(nodes: Nodes, *arguments: str, here: bool = False) -> tuple[float, float]:
    """Seconds until the run began, and from there to its end."""
    began = time.monotonic()
    process = nodes.start(*CLOCKED, *arguments, here=here)
    assert process.stdout is not None
    begin_s = 0.0
    for line in process.stdout:
        if json.loads(line)["reason"] == "begin":
            begin_s = time.monotonic() - began
    assert process.wait() == 0, nodes.said.read_text()
    process.stdout.close()
    return begin_s, time.monotonic() - began - begin_s


def test_two_devices_take_at_most_0_6_of_the_time_of_one(benchmark, nodes: Nodes) -> None:
    _, one_s = times(nodes, "--seq-len", LENGTHS, "--devices", "1")

    def on_two() -> float:
        return times(nodes, "--seq-len", LENGTHS, "--devices", "2")[1]

    two_s = benchmark.pedantic(on_two, rounds=1)
    benchmark.extra_info["one_s"] = one_s
    assert two_s <= MOST_SHARE * one_s, f"{two_s:.1f} s and {one_s:.1f} s"


def test_starting_on_ray_takes_at_most_5_s_more_than_here(benchmark, nodes: Nodes) -> None:
    here_s, _ = times(nodes, "--seq-len", "32", here=True)

    def on_ray() -> float:
        return times(nodes, "--seq-len", "32", "--devices", "1")[0]

    on_ray_s = benchmark.pedantic(on_ray, rounds=1)
    benchmark.extra_info["here_s"] = here_s
    assert on_ray_s - here_s <= MOST_START_S, f"{on_ray_s:.1f} s and {here_s:.1f} s"
