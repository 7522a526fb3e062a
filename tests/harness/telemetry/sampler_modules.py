"""The sampler, which prints at its end the heavy packages that it has imported."""

import atexit
import sys

from attnbench.harness.telemetry import sampler

HEAVY = ("torch", "numpy", "pandas")


def print_heavy() -> None:
    print([name for name in HEAVY if name in sys.modules])


if __name__ == "__main__":
    atexit.register(print_heavy)
    sampler.main()
