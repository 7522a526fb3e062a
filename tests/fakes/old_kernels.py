"""An audit's child with our kernels as they once were: with loops that may run zero times, and with
the list of configurations of that time.

The list is that of the forward kernel for compute capability 9.0 and heads of 64 and 128.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnbench.harness.audit import child
from attnbench.impls._triton.configs import Config
from tests.harness.audit.serialized import without_conditions

LIST = {
    64: (
        Config(128, 128, 8, 3),
        Config(128, 128, 8, 3, descriptors=True),
        Config(128, 64, 4, 3),
        Config(128, 64, 8, 3),
        Config(64, 64, 4, 3),
    ),
    128: (
        Config(128, 128, 8, 2),
        Config(128, 128, 8, 2, descriptors=True),
        Config(128, 64, 8, 3),
        Config(128, 64, 8, 3, descriptors=True),
        Config(64, 64, 4, 3),
    ),
}


def jobs(capability: tuple[int, int], dtypes: tuple[Any, ...]) -> Iterator[Any]:
    from attnbench.impls._triton.jobs import Job

    for width, configs in LIST.items():
        for config in configs:
            yield Job(
                kernel="forward",
                config=config,
                capability=capability,
                dtype=dtypes[0],
                d_k=width,
                d_v=width,
                causal=False,
            )


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        without_conditions(Path(folder))
        from attnbench.harness.audit import compiler

        compiler.jobs = jobs
        child.main()
