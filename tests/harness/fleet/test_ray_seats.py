"""Which devices of a cluster a run gets, by what Ray lists and what is seen beside them."""

from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.fleet.fingerprint import fingerprint
from attnbench.harness.fleet.ray_seats import (
    RESOURCE,
    Looked,
    Seat,
    Wish,
    device_of,
    no_seat,
    other_code,
    seats_of,
)


def node(name: str, *, alive: bool = True, address: str = "", **resources: float) -> dict[str, Any]:
    """Called as the letters of its id."""
    host = name.rstrip("0123456789")
    found = {"NodeID": name, "Alive": alive, "NodeManagerHostname": host, "Resources": resources}
    return {**found, "NodeManagerAddress": address or f"10.0.0.{name}"}


def looked(*kinds: str) -> list[Looked]:
    return [
        Looked(number=number, kind=kind, memory_monitor=False) for number, kind in enumerate(kinds)
    ]


def test_a_host_without_a_gpu_is_one_device_with_all_its_cpus() -> None:
    nodes = [node("a", CPU=8, **{RESOURCE: 1}), node("b", CPU=8), node("c", alive=False, GPU=1)]
    assert device_of(nodes, "auto") == "cpu"
    assert seats_of(nodes, "cpu") == [Seat(node_id="a", host="a", gpus=0, cpus=8)]


def test_gpus_of_different_hosts_come_before_the_second_of_one() -> None:
    nodes = [node("a", CPU=9, GPU=2), node("b", CPU=4, GPU=1, **{RESOURCE: 1})]
    assert device_of(nodes, "auto") == "cuda"
    found = [(seat.node_id, seat.cpus) for seat in seats_of(nodes, "cuda")]
    assert found == [("a", 4), ("b", 4), ("a", 4)]
    assert [seat.node_id for seat in seats_of(nodes, "cuda", known={"a"})] == ["b"]
    with pytest.raises(EnvironmentUnmet, match=r"a offers 0\.5 GPUs; wanted whole ones"):
        seats_of([node("a", GPU=0.5)], "cuda")


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        (("10.0.0.1", "10.0.0.2"), ["a (10.0.0.1)", "a (10.0.0.2)"]),
        (("10.0.0.1", "10.0.0.1"), ["a (node a1)", "a (node a2)"]),
    ],
)
def test_containers_of_one_name_are_told_apart(addresses, hosts) -> None:
    have = {"GPU": 1.0, "CPU": 4.0}
    nodes = [
        node(f"a{number}", address=address, **have) for number, address in enumerate(addresses, 1)
    ]
    others = [node("b", **have), node("a3", alive=False, **have)]
    assert [seat.host for seat in seats_of([*nodes, *others], "cuda")] == [*hosts, "b"]
    joined = seats_of([*nodes, *others], "cuda", known={"a1", "b"})
    assert [seat.host for seat in joined] == hosts[1:]


def test_a_cluster_without_devices_says_how_to_declare_them() -> None:
    nodes = [node("a", CPU=8)]
    assert seats_of(nodes, "cpu") == seats_of(nodes, "cuda") == []
    assert "none of the cluster's 1 nodes has the resource" in no_seat(nodes, "cpu")
    assert "ray start --resources='{" in no_seat(nodes, "cpu")
    assert "no cuda device: the cluster's 1 nodes have none" in no_seat(nodes, "cuda")


def test_a_run_measures_one_kind_which_is_chosen_by_a_part_of_its_name() -> None:
    found = looked("NVIDIA H100", "NVIDIA A100", "NVIDIA H100")
    with pytest.raises(BadInput, match=r"not given, .* 2 kinds; .* NVIDIA H100 \(2\), NVIDIA A100"):
        Wish().chosen(found, [])
    assert [one.number for one in Wish(kind="h100").chosen(found, [])] == [0, 2]
    with pytest.raises(BadInput, match="not clear"):
        Wish(kind="nvidia").chosen(found, [])
    with pytest.raises(EnvironmentUnmet, match=r"--device-kind B200: not in the cluster; there"):
        Wish(kind="B200").chosen(found, [])


def test_a_node_with_another_attnbench_is_refused_by_its_host() -> None:
    ours = fingerprint()
    assert other_code("a", ours, ours) == ""
    older = other_code("a", {**ours, "attnbench": "0.0.1"}, ours)
    assert older.startswith("a has attnbench '0.0.1'")
    assert "with different code" in other_code("a", {**ours, "code": "0" * 12}, ours)
