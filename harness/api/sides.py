"""What one side of a comparison is."""

from pathlib import Path

from ..files.errors import BadInput


def runs_in(folder: str) -> list[Path]:
    """Oldest first. Raises BadInput."""
    from ..store.run_store import runs

    found = runs(Path(folder))
    if not found:
        raise BadInput(
            f"{folder}: no runs in this folder; wanted what --runs named when the runs of one side"
            " were measured in turns"
        )
    return found
