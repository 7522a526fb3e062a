"""What comparisons with a baseline can show."""

from pathlib import Path

from ..files.printable import duration_text
from ..rows.record import Status
from ..rows.run_files import read_meta, read_rows


def what_it_shows(run: Path) -> str:
    """By the rows of the run, and by how much runs are known to differ on its machine."""
    from ...reports.data.noise_floor import FEWEST_STARTS, newest_noise_floor
    from ...reports.data.run_meta import device_identity
    from ...reports.formatting import rough_percent_text

    rows = [row for row in read_rows(run) if row["status"] == Status.OK]
    if not any(row.get("block_ms") for row in rows):
        return "It shows changes of bytes; no case was timed."
    floor = newest_noise_floor([run.parent], device_identity(read_meta(run)))
    starts = floor.starts if floor else 0
    if floor is None or floor.between_runs is None:
        return (
            "It shows changes of bytes, and none of times yet: how much runs differ on this machine"
            f" is not known ({starts} of {FEWEST_STARTS} self-checks). Find out once, in about 2"
            " min: attnbench doctor --deep"
        )
    differ = rough_percent_text(floor.between_runs.ratio)
    return (
        f"It shows changes of bytes, and of times by more than the {differ} that runs differ by"
        f" here ({starts} self-checks over {duration_text(floor.span_s)})."
    )
