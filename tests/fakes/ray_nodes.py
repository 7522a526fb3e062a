"""Ray nodes of this machine, until stdin ends: `python -m tests.fakes.ray_nodes COUNT AUTOSCALED`.

AUTOSCALED: how many more an autoscaler may start. Prints the cluster's address. A line on stdin is
something to do: `kill` the last node as a power cut would; `add` one; `hold` the processors of the
last as a stranger's actor, and `release` them; `silence` the last node, whose processes stop but do
not end; `unlike`: add one that has a single core.
"""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

NODE: dict[str, Any] = {
    "num_cpus": 1,
    "object_store_memory": 80 << 20,
    "include_dashboard": False,
    "include_log_monitor": False,
}
"""As little as a node needs: its processes have 15 s to start, on a machine that may be busy."""
COMMANDS = (
    *("initialization_commands", "setup_commands", "head_setup_commands"),
    *("worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands"),
    *("cluster_synced_files", "rsync_exclude"),
)


def autoscaling(most: int) -> dict[str, Any]:
    """For the head: Ray's own provider of nodes on one machine starts them."""
    from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID
    from ray.util import get_node_ip_address

    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    measuring = {"resources": {"CPU": 1}, "node_config": {}, "max_workers": most}
    head = {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0}
    config = {
        "cluster_name": "attnbench",
        "provider": {
            "type": "fake_multinode",
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "gcs_address": f"{get_node_ip_address()}:{port}",
        },
        "available_node_types": {"ray.head.default": head, "measuring": measuring},
        "head_node_type": "ray.head.default",
        "max_workers": most,
        "upscaling_speed": 100,
        "idle_timeout_minutes": 10,
        "file_mounts_sync_continuously": False,
        **{name: {} for name in ("auth", "docker", "file_mounts")},
        **{name: [] for name in COMMANDS},
    }
    path = Path(os.environ["ATTNBENCH_NODES"]) / "autoscaling.yaml"
    path.write_text(json.dumps(config))
    return {
        "autoscaling_config": str(path),
        "gcs_server_port": port,
        "env_vars": {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID},
    }


def patiently(start: Callable[[], Any]) -> Any:
    """Ray gives a node 30 s to start, which a busy machine may take longer for."""
    for _ in range(4):
        before = psutil.Process().children(recursive=True)
        try:
            return start()
        except Exception as error:  # noqa: BLE001 - Ray raises no other type
            print(f"again: {error}", flush=True)
            for one in {*psutil.Process().children(recursive=True)} - {*before}:
                one.kill()
    return start()


def main(count: int, autoscaled: int = 0) -> None:
    import ray
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    more = autoscaling(autoscaled) if autoscaled else {"no_monitor": True}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args={**NODE, **more}))
    nodes = [patiently(lambda: cluster.add_node(**NODE)) for _ in range(count - 1)]
    cluster.wait_for_nodes(90)
    print(f"address {cluster.address}", flush=True)
    held = None

    @ray.remote(num_cpus=1)
    class Stranger:
        def ready(self) -> str:
            return "held"

    for line in sys.stdin:
        match line.strip():
            case "kill":
                cluster.remove_node(nodes.pop(), allow_graceful=False)
            case "add":
                nodes.append(patiently(lambda: cluster.add_node(**NODE)))
            case "unlike":
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
                nodes.append(patiently(lambda: cluster.add_node(**NODE)))
            case "silence":
                raylet = psutil.Process(nodes[-1].all_processes["raylet"][0].process.pid)
                for one in (raylet, *raylet.children(recursive=True)):
                    one.suspend()
            case "hold":
                ray.init(address=cluster.address, log_to_driver=False)
                last = NodeAffinitySchedulingStrategy(nodes[-1].node_id, soft=False)
                held = Stranger.options(scheduling_strategy=last).remote()
                ray.get(held.ready.remote())
            case "release":
                ray.kill(held)
        print(f"did {line.strip()}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    os.environ |= {"RAY_memory_monitor_refresh_ms": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"RAY_worker_niceness": "0"}  # 15 gives them nothing on a busy machine
    os.environ |= {"RAY_health_check_period_ms": "2000", "RAY_health_check_timeout_ms": "5000"}
    os.environ |= {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"}
    os.environ.setdefault("RAY_TMPDIR", tempfile.gettempdir())
    main(*map(int, sys.argv[1:]))
