"""A suite: scenarios measured one after the other into one folder, resumable after any end."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ... import __version__
from ..files.errors import BadInput, EnvironmentUnmet, NothingSelected, Refusal, Stopped, StoreError
from ..files.safe_files import FileLock
from ..process.interpreter import Interpreter
from ..process.interpreter import given_again as interpreters_given_again
from ..process.worker_process import signal_name
from ..rows.run_files import SUITE, read_suite
from ..scenario import Scenario, from_mapping
from ..scenario.selection import Selection
from ..scenario.shards import read_shard
from ..store.run_store import create_suite, point_latest, remove_suite, write_suite, writer_lock
from ..store.suites import RunState, run_state, runs_by_entry, suite_state
from ..studies import takes, taking_files
from ..studies.attachments import Attachment, given_again, names_in
from .resumable import Unfinished
from .run_rows import RunResult
from .start import RunOptions, resume_run, start_run

NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """A scenario of a suite, and which of its cases are measured."""

    scenario: Scenario
    selection: Selection


class Suite:
    """A suite that is being measured: the only writer of its folder, until closed.

    Which run belongs to which entry is in the runs, and how far a run is follows from its rows, so
    nothing is lost if the writer is killed between two writes.
    """

    def __init__(
        self,
        path: Path,
        interpreters: Sequence[Interpreter] = (),
        attachments: Sequence[Attachment] = (),
        *,
        retry_failed: bool = False,
        lock: FileLock | None = None,
    ) -> None:
        """`interpreters`, `attachments`: those of its environments and of what its studies
        still look at, by their names. `lock`: its folder's, if it is held already.

        Raises BadInput; EnvironmentUnmet if another process measures this suite.
        """
        self.path = path
        self._lock = lock or writer_lock(path)
        try:
            self._document = read_suite(path)
            self.entries = _entries_of(path, self._document, interpreters)
            self._retry_failed = retry_failed
            self._give(attachments)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(
        cls, root: Path, name: str, entries: Sequence[SuiteEntry], seed: int, command: Sequence[str]
    ) -> "Suite":
        """A new suite under `root`; nothing is measured yet. Raises BadInput."""
        selection = entries[0].selection
        interpreters, shard = selection.interpreters, selection.shard
        document = {
            "attnbench": __version__,
            "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": list(command),
            "seed": seed,
            "pythons": [{"name": one.name, "path": str(one.path)} for one in interpreters],
            **({"shard": {"number": shard.number, "of": shard.of}} if shard else {}),
            **({"copies": selection.copies} if selection.copies > 1 else {}),
            "entries": [_planned(entry) for entry in entries],
        }
        path, lock = create_suite(root, NOT_IN_NAMES.sub("_", name.lower())[:64], document)
        given = {one.name: one for entry in entries for one in entry.selection.attachments}
        return cls(path, interpreters, list(given.values()), lock=lock)

    def pending(self) -> list[int]:
        """The numbers of the entries that still lack something. Raises BadInput."""
        done = {
            number
            for number, state in self._states().items()
            if state.is_finished and not (self._retry_failed and state.can_be_retried)
        }
        return [number for number in range(len(self.entries)) if number not in done]

    def measure(
        self, number: int, options: RunOptions, *, force: bool = False
    ) -> RunResult | Refusal:
        """Start an entry's run, or resume it.

        What this machine cannot run, or the filters leave nothing of, is refused, and the others go
        on. Raises BadInput, StoreError.
        """
        entry, run = self.entries[number], runs_by_entry(self.path).get(number)
        options = replace(options, suite_entry=number)
        try:
            if run is None:
                seed, selection = self._document["seed"], entry.selection
                result = start_run(entry.scenario, self.path, seed, selection, options)
            else:
                result = resume_run(
                    run,
                    options,
                    entry.selection.interpreters,
                    attachments=entry.selection.attachments,
                    retry_failed=self._retry_failed,
                    force=force,
                )
        except Stopped as stopped:
            return stopped
        except (EnvironmentUnmet, NothingSelected) as refusal:
            self._note(number, run, "refused", str(refusal))
            return refusal
        stopped_by = "" if result.signal is None else signal_name(result.signal)
        ended = "interrupted" if stopped_by else "finished"
        reason = f"stopped by {stopped_by}" if stopped_by else ""
        self._note(number, result.path, ended, reason, result.statuses)
        return result

    @property
    def has_failures(self) -> bool:
        """A case of any of its runs crashed, failed, timed out or was incorrect."""
        return any(state.has_failures for state in self._states().values())

    def close(self) -> str:
        """A suite of which no run has started is removed. Returns a remark for the user, or ""."""
        try:
            if not runs_by_entry(self.path):
                remove_suite(self.path)
            elif suite_state(self.path).has_ended:
                return point_latest(self.path.parent, self.path.name)
        finally:
            self._lock.release()
        return ""

    def _states(self) -> dict[int, RunState]:
        """How far the run of each entry is, by its number. Raises BadInput if one is broken."""
        return {number: run_state(run) for number, run in runs_by_entry(self.path).items()}

    def _give(self, attachments: Sequence[Attachment]) -> None:
        """To each entry those that it still looks at. Raises BadInput."""
        runs = runs_by_entry(self.path)
        names: dict[int, dict[str, str]] = {}
        for number in self.pending():
            if (run := runs.get(number)) is None:
                names[number] = _attached(self._document["entries"][number])
            else:
                left = Unfinished.read(run, retry_failed=self._retry_failed).left("studies")
                names[number] = names_in(left)
        wanted = {name: option for some in names.values() for name, option in some.items()}
        given = {one.name: one for one in given_again(self.path, wanted, attachments)}
        for number, some in names.items():
            entry = self.entries[number]
            selection = replace(entry.selection, attachments=tuple(given[one] for one in some))
            self.entries[number] = replace(entry, selection=selection)

    def _note(
        self,
        number: int,
        run: Path | None,
        ended: str,
        reason: str,
        statuses: Mapping[str, int] | None = None,
    ) -> None:
        """Write how an entry ended, for readers of suite.json."""
        entry = self._document["entries"][number]
        entry |= {"run": run.name if run else None, "ended": ended, "reason": reason}
        if statuses is not None:
            entry["statuses"] = dict(statuses)
        try:
            write_suite(self.path, self._document)
        except OSError as error:
            raise StoreError(
                f"{self.path / SUITE}: {error.strerror}; all rows are safe", []
            ) from None


def _planned(entry: SuiteEntry) -> dict[str, Any]:
    """The entry as it begins in suite.json."""
    scenario, selection = entry.scenario, entry.selection
    attached: dict[str, list[str]] = {}  # by the option, as "checkpoints"
    for one in selection.attachments:
        attached.setdefault(f"{takes(one.study)}s", []).append(one.name)
    return {
        "scenario": scenario.given(),
        "source": scenario.stored_source,
        "only": list(selection.only),
        "within": list(selection.within),
        "skip": list(selection.skip),
        **attached,
        "run": None,
        "ended": None,
        "reason": "",
        "statuses": {},
    }


def _attached(entry: Mapping[str, Any]) -> dict[str, str]:
    """The names of what an entry in suite.json looks at, each with its option."""
    options = [takes(study) for study in taking_files()]
    return {name: option for option in options for name in entry.get(f"{option}s", ())}


def _entries_of(
    path: Path, document: Mapping[str, Any], interpreters: Sequence[Interpreter]
) -> list[SuiteEntry]:
    """What suite.json plans. Raises BadInput."""
    try:
        recorded = document["pythons"]
        int(document["seed"])
        copies = int(document.get("copies", 1))
        shard = (
            read_shard("{number}/{of}".format(**given))
            if (given := document.get("shard"))
            else None
        )
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{SUITE}: no seed or no pythons; the suite cannot be resumed") from None
    pythons = interpreters_given_again(path, recorded, interpreters)
    return [
        SuiteEntry(
            scenario=from_mapping(entry["scenario"], entry["source"]),
            selection=Selection(
                only=tuple(entry["only"]),
                within=tuple(entry["within"]),
                skip=tuple(entry["skip"]),
                interpreters=pythons,
                copies=copies,
                shard=shard and replace(shard, turn=number),
            ),
        )
        for number, entry in enumerate(document["entries"])
    ]
