"""Two Ray nodes on this machine: `python -m tests.fakes.ray_nodes FOLDER`, until stdin ends.

Prints the cluster's address. A line `kill` on stdin kills the second node as a power cut would, and
`add` adds one.
"""

import os
import sys
import tempfile

NODE = {
    "num_cpus": 1,
    "resources": {"attnbench_host": 1},
    "object_store_memory": 80 << 20,
    "include_dashboard": False,
}


def main() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    second = cluster.add_node(**{**NODE, "include_dashboard": False})
    cluster.wait_for_nodes()
    print(f"address {cluster.address}", flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
        elif line.strip() == "add":
            cluster.add_node(**{**NODE, "include_dashboard": False})
            print("added", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    os.environ |= {"RAY_memory_monitor_refresh_ms": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.setdefault("RAY_TMPDIR", tempfile.gettempdir())
    main()
