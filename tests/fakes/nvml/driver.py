"""Build the fake NVIDIA driver library, and the environment in which a process loads it.

README.md has the script's lines.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent
LIBRARY = "libnvidia-ml.so.1"
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O1",
    "-fPIC",
    *("-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"),
)

UUID = "GPU-11111111-2222-3333-4444-555555555555"
# One idle GPU that supports everything but MIG.
H100 = f"""\
gpu {UUID}
name NVIDIA H100 80GB HBM3
memory_total_mib 81559
memory_used_mib 4
memory_reserved_mib 550
power_w 70
power_limit_w 700
energy_base_mj 1000000
sm_clock_mhz 1980
memory_clock_mhz 2619
max_sm_clock_mhz 1980
max_memory_clock_mhz 2619
temperature_c 31
temperature_limit_c 87
event_reasons 0x1
power_throttle_share 0
sync_boost_share 0
busy_percent 0
memory_busy_percent 0
gpm 1
ecc 1
ecc_errors 0
persistence 1
compute_mode 0
mig 0
pcie_generation 5
pcie_width 16
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeDriver:
    """A built library and its script. `library`: the folder that has it."""

    library: Path
    script: Path

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.library, self.script)

    def write(self, text: str) -> None:
        """Replace the script in one step: a process that reads it now never sees a part."""
        new = self.script.with_suffix(".new")
        new.write_text(text)
        new.replace(self.script)


def build(folder: Path, *, old: bool = False) -> Path:
    """Compile into `folder`, for LD_LIBRARY_PATH; an old driver lacks the newer functions."""
    folder.mkdir(parents=True, exist_ok=True)
    output = ["-shared", f"-Wl,-soname,{LIBRARY}", "-o", str(folder / LIBRARY)]
    options = ["-DOLD_DRIVER"] if old else []
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    subprocess.run(
        ["gcc", *FLAGS, *options, *output, *sources, "-lm", "-lpthread", "-ldl"], check=True
    )
    return folder


def environment(library_dir: Path, script_path: Path) -> dict[str, str]:
    """For a new process: the loader reads LD_LIBRARY_PATH at its start."""
    others = os.environ.get("LD_LIBRARY_PATH")
    return {
        "LD_LIBRARY_PATH": f"{library_dir}:{others}" if others else str(library_dir),
        "FAKE_NVML": str(script_path),
    }
