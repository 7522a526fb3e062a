"""Which devices of a cluster a run gets, by what Ray lists and what is seen beside them."""

from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.fleet.ray_seats import (
    RESOURCE,
    Looked,
    Seat,
    chosen,
    refuse_other_code,
    seats_of,
)
from attnbench.harness.process.fingerprint import fingerprint


def node(name: str, *, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "NodeManagerHostname": name, "Resources": resources}


def looked(number: int, kind: str, **changes: Any) -> Looked:
    seat = Seat(node_id=str(number), host=f"host{number}", gpus=1, cpus=0)
    facts = {"host": seat.host, "kind": kind, "fingerprint": fingerprint(), **changes}
    return Looked(number=number, memory_monitor=False, **facts)


def test_a_host_without_a_gpu_is_one_device_with_all_its_cpus() -> None:
    nodes = [node("a", CPU=8, **{RESOURCE: 1}), node("b", CPU=8), node("c", alive=False, GPU=1)]
    assert seats_of(nodes, "auto") == [Seat(node_id="a", host="a", gpus=0, cpus=8)]


def test_gpus_of_different_hosts_come_before_the_second_of_one() -> None:
    nodes = [node("a", CPU=9, GPU=2), node("b", CPU=4, GPU=1, **{RESOURCE: 1})]
    found = [(seat.node_id, seat.cpus) for seat in seats_of(nodes, "auto")]
    assert found == [("a", 4), ("b", 4), ("a", 4)]


def test_a_cluster_without_devices_says_how_to_declare_them() -> None:
    wanted = r"none of the cluster's 1 nodes has the resource .* ray start --resources='\{"
    with pytest.raises(EnvironmentUnmet, match=wanted):
        seats_of([node("a", CPU=8)], "auto")
    with pytest.raises(EnvironmentUnmet, match="no cuda device: the cluster's 1 nodes have none"):
        seats_of([node("a", CPU=8)], "cuda")


def test_a_run_measures_one_kind_which_is_chosen_by_a_part_of_its_name() -> None:
    found = [looked(0, "NVIDIA H100"), looked(1, "NVIDIA A100"), looked(2, "NVIDIA H100")]
    with pytest.raises(BadInput, match=r"not given, .* 2 kinds; .* NVIDIA H100 \(2\), NVIDIA A100"):
        chosen(found, None, None)
    assert [one.number for one in chosen(found, None, "h100")] == [0, 2]
    assert [one.number for one in chosen(found, 1, "H100")] == [0]
    with pytest.raises(BadInput, match="not clear"):
        chosen(found, None, "nvidia")
    with pytest.raises(EnvironmentUnmet, match=r"--device-kind B200: not in the cluster; there"):
        chosen(found, None, "B200")
    with pytest.raises(EnvironmentUnmet, match="--devices 3: the cluster has 2 of this kind"):
        chosen(found, 3, "H100")


def test_a_node_with_another_attnbench_is_refused_by_its_host() -> None:
    refuse_other_code([looked(0, "H100")])
    other = {**fingerprint(), "attnbench": "0.0.1"}
    with pytest.raises(EnvironmentUnmet, match=r"^host1 has attnbench '?0.0.1'?; wanted attnbench"):
        refuse_other_code([looked(0, "H100"), looked(1, "H100", fingerprint=other)])
    other = {**fingerprint(), "code": "0" * 12}
    with pytest.raises(EnvironmentUnmet, match=r"host1 has attnbench .* with different code"):
        refuse_other_code([looked(1, "H100", fingerprint=other)])
