"""One archive of all that a day has made."""

import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

BESIDE_RUNS = ("*.jsonl",)  # calibrations and self-checks, which stand beside the runs


def write(archive: Path, root: Path, day: str, runs: Iterable[str]) -> None:
    """The day's folder, these of the runs, and what stands beside them; whole, or as it was.

    Names in it begin with the name of `root`, so that it can be unpacked beside another root. Links
    are left out.
    """
    folders = [root / day, *(root / "runs" / run for run in runs)]
    files = [path for folder in folders for path in sorted(folder.rglob("*"))]
    files += [path for pattern in BESIDE_RUNS for path in sorted((root / "runs").glob(pattern))]
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=6) as tar:
            for path in files:
                if path.is_file() and not path.is_symlink():
                    tar.add(path, arcname=str(Path(root.name) / path.relative_to(root)))
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)
