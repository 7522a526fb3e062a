"""What comparisons with a baseline can show."""

from pathlib import Path


def what_it_shows(run: Path) -> str:
    """By the rows of the run, and by how much runs are known to differ on its machine."""
    from ...reports.data.load import rows_of
    from ...reports.data.noise_floor import ASSUMED_RATIO
    from ...reports.data.read import read_run
    from ...reports.formatting import rough_percent_text

    timed = [row for row in rows_of([read_run(run)]) if row["latency_ms"] is not None]
    if not timed:
        return "It shows changes of bytes; no case was timed."
    ratio = timed[0]["between_runs_ratio"]
    differ = rough_percent_text(ASSUMED_RATIO if ratio is None else ratio)
    known = (
        " that runs differ by here."
        if ratio is not None
        else ": how much runs differ on this machine is not known. Find out once, in about 2 min:"
        " attnbench doctor --deep"
    )
    return f"It shows changes of bytes, and of times by more than {differ}{known}"
