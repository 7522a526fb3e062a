"""Names of runs: folders, `latest`, `last:5`, baselines (results/baselines/NAME.json)."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ..files.errors import BadInput, instead_of, option, shown, suggestion, unless_refused
from ..files.safe_files import NotPlain, is_folder, make_folder, refuse_way_out, write_whole
from ..files.user_cache import cache_folder
from .record import Status
from .run_files import META, SCHEMA, read_document, read_meta, read_rows
from .run_store import LATEST, runs
from .states import RunState, newest_finished, newest_started, run_state

FOLDER = "baselines"
PUBLISHED = "published/"
SHIPPED = Path(__file__).parent / "published"  # a link to results/published
PREFIX = "baseline:"
LAST, MOST_LAST = "last:", 999  # last:5 are five runs
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Baseline(NamedTuple):
    """`run`: the run's folder, relative to the results' folder or absolute."""

    name: str
    run: str
    saved_utc: str


def save(name: str, run: Path, root: Path, *, force: bool) -> tuple[Path, RunState]:
    """Name a finished run; returns the baseline's file, and how the run's cases ended.

    Raises BadInput, also if the name is taken and `force` is not set, and if the run is empty or
    interrupted, or nothing in it is ok or can be compared.
    """
    if not NAME.fullmatch(name):
        raise BadInput(
            f"{shown(name)}: not a name for a baseline; use up to 64 letters, digits, ., _ and -,"
            " such as main"
        )
    if (root / name / META).is_file():
        raise BadInput(f"{name}: already the name of a run in {root}; choose another")
    state = run_state(run)
    if why := state.why_not_counted:
        raise BadInput(
            f"{run.name}: {why}; a baseline is a run that has finished; see"
            f" `attnbench list runs --runs {root}`"
        )
    if not state.statuses[Status.OK]:
        ended = ", ".join(f"{count} {status}" for status, count in state.statuses.items())
        raise BadInput(
            f"{run.name}: no case is ok ({ended}); wanted at least one; see why with"
            f" `attnbench show {shlex.quote(str(run))}`"
        )
    compared = (row.get("block_ms") or row.get("peak_bytes") is not None for row in read_rows(run))
    if not any(compared):
        raise BadInput(f"{run.name}: no case has a time or bytes; wanted a run that measures cases")
    base = root.resolve()
    document = {
        "schema": SCHEMA,
        "name": name,
        "run": str(run.relative_to(base) if run.is_relative_to(base) else run),
        "saved_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    path = root / FOLDER / f"{name}.json"
    with unless_refused(path, f"choose another folder with {option('runs', 'DIR')}"):
        root.mkdir(parents=True, exist_ok=True)
        make_folder(path.parent)
        try:
            write_whole(path, json.dumps(document, indent=1) + "\n", new=not force)
        except FileExistsError:
            raise BadInput(
                f"{name}: already a baseline; replace it with {option('force', True)}, or choose"
                " another name"
            ) from None
        if not run.is_relative_to(base):
            mark = _mark(path, str(run))
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return path, state


def saved(root: Path) -> list[Baseline]:
    """All baselines by name. Raises BadInput if a file is broken."""
    return [read(root / FOLDER / f"{name}.json") for name in baseline_names(root)]


def run_of(name: str, root: Path) -> Path | None:
    """The run's folder of a baseline; None if there is no such baseline.

    `name` may begin with "baseline:", and must then be one. Raises BadInput.
    """
    bare = name.removeprefix(PREFIX)
    path = root / FOLDER / f"{bare}.json"
    if not NAME.fullmatch(bare) or not is_folder(path.parent) or not path.is_file():
        if name.startswith(PREFIX):
            hint = suggestion(bare, baseline_names(root))
            raise BadInput(
                f"{shown(bare)}: no such baseline; {hint}see `attnbench list baselines --runs"
                f" {root}`"
            )
        return None
    run = root / read(path).run
    if not run.resolve().is_relative_to(root.resolve()) and not _mark(path, str(run)).exists():
        raise BadInput(
            f"{path}: names {shown(str(run))}, outside of {root}, and was not saved here; save it"
            f" again with {option('force', True)} if you trust that folder"
        )
    return run


def _mark(path: Path, run: str) -> Path:
    """A file that says that a baseline which names a run elsewhere was saved here."""
    saved = f"{path.resolve()}\0{run}".encode()
    return cache_folder() / "baselines" / sha256(saved).hexdigest()


def read(path: Path) -> Baseline:
    """Raises BadInput."""
    document = read_document(path)
    run, saved_utc = document.get("run"), document.get("saved_utc")
    if not isinstance(run, str) or not isinstance(saved_utc, str):
        raise BadInput(f"{path}: not a baseline; save it again with {option('force', True)}")
    return Baseline(path.stem, run, saved_utc)


def find(name: str, root: Path, *, unfinished: bool = False) -> Path:
    """The folder of a run: by path, by name under `root`, by baseline, or a scenario's newest.

    "latest" is what finished last; with `unfinished`, as for --resume, what was started last.
    Raises BadInput.
    """
    if name == LATEST:
        return _latest(root, unfinished=unfinished).resolve()
    for path in (Path(name), root / name):
        if (path / META).is_file():
            return _inside(path).resolve()
    if name.startswith(PUBLISHED):
        return _published(name.removeprefix(PUBLISHED))
    if (named := run_of(name, root)) is not None:
        if not (named / META).is_file():
            raise BadInput(
                f"{name}: its run {named} is gone; save another with `attnbench compare RUN --save"
                " NAME --force`"
            )
        return named.resolve()
    if named_so := [path for path in runs(root) if scenario_in(path.name) == name]:
        return named_so[-1].resolve()
    if Path(name).is_dir():
        raise BadInput(f"{name}: a folder without {META}; name a run folder, such as {root}/latest")
    if not runs(root):
        raise BadInput(f"{name}: {no_runs(root)}")
    hint = suggestion(name, run_names(root))
    raise BadInput(
        f"{name}: no such run, and no baseline of this name; {hint}see `attnbench list runs --runs"
        f" {root}`"
    )


def _published(name: str) -> Path:
    """The folder of what others published. Raises BadInput."""
    known = sorted(path.parent.name for path in SHIPPED.glob(f"*/{META}"))
    if name not in known:
        raise BadInput(
            f"{shown(PUBLISHED + name)}: no such published run; {instead_of(name, known)}"
        )
    return (SHIPPED / name).resolve()


def number_of_last(name: str) -> int:
    """N of last:N; 0 for another name. Raises BadInput."""
    if not name.startswith(LAST):
        return 0
    digits = name.removeprefix(LAST)
    if re.fullmatch("[0-9]{1,3}", digits) and int(digits):
        return int(digits)
    raise BadInput(f"{shown(name)}: wanted 1 to {MOST_LAST} runs, such as last:5")


def earlier_runs(run: Path, root: Path) -> Iterator[Path]:
    """The finished runs of its scenario that were started before it, newest first. Raises BadInput
    for `run` itself.
    """
    scenario = str(read_meta(run)["scenario"].get("name"))
    for path in reversed(runs(root)):
        if path.name < run.name and scenario_in(path.name) == scenario:
            with suppress(BadInput):  # a broken run is none
                if run_state(path).is_finished:
                    yield path


def _latest(root: Path, *, unfinished: bool) -> Path:
    _inside(root / LATEST)
    newest = newest_started(root)
    found = newest if unfinished and newest else newest_finished(root)
    if found is not None:
        return found
    if not runs(root):
        raise BadInput(f"{LATEST}: {no_runs(root)}")
    hint = f"; continue {newest} with `attnbench run --resume latest`" if newest else ""
    what = "no finished run" if newest else "no such run"
    raise BadInput(f"latest: {what} in {root}{hint}; see `attnbench list runs --runs {root}`")


def _inside(path: Path) -> Path:
    """Raises BadInput for a link out of a folder of results."""
    try:
        refuse_way_out(path)
    except NotPlain as error:
        raise BadInput(f"{path}: {error.strerror}; name the folder itself") from None
    return path


def no_runs(root: Path) -> str:
    """What is said where runs are looked for and there are none."""
    return (
        f"no runs in {root.absolute()}; make one with `attnbench run quickstart`, or name their"
        f" folder with {option('runs', 'DIR')}"
    )


def run_names(root: Path) -> list[str]:
    """What `find` takes under `root`: "latest", baselines, scenarios, folders."""
    folders = [path.name for path in reversed(runs(root))]
    latest = [LATEST] if newest_finished(root) else []
    return [*latest, *baseline_names(root), *dict.fromkeys(map(scenario_in, folders)), *folders]


def baseline_names(root: Path) -> list[str]:
    folder = root / FOLDER
    files = sorted(folder.glob("*.json")) if is_folder(folder) else []
    return [path.stem for path in files if NAME.fullmatch(path.stem)]


def scenario_in(folder: str) -> str:
    """The scenario in a run folder's name."""
    return folder.partition("-")[2].rpartition("-")[0]
