"""Turns over several groups: each process visits every group before the next process does, and a
lap is never too large.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.cases import Case, Group
from attnbench.harness.process.worker_process import Fault
from attnbench.harness.record import Status
from attnbench.harness.run.schedule import MOST_CASES, Lap, laps
from attnbench.harness.scenario import Plan
from attnbench.impls.problem import Problem


def case(seq_len: int, backend: str = "fused", python: str | None = None) -> Case:
    return Case(
        backend=backend,
        problem=Problem(batch=1, seq_len=seq_len, d_model=8, heads=1),
        python=python,
    )


def group(number: int, size: int = 3) -> Group:
    return Group(number=number, cases=tuple(case(number + 1, f"b{place}") for place in range(size)))


def plan(processes: int) -> Plan:
    return Plan(processes=processes, min_blocks=1, max_blocks=1)


def sizes(of: Iterator[tuple[Group, ...]]) -> list[list[int]]:
    return [[one.number for one in lap] for lap in of]


def test_with_one_process_every_group_is_a_lap():
    assert sizes(laps([group(i) for i in range(3)], plan(1))) == [[0], [1], [2]]


def test_groups_share_a_lap_up_to_its_most_cases_and_a_large_group_is_whole():
    many = [group(i, 8) for i in range(5)]
    assert sizes(laps(many, plan(5))) == [[0, 1, 2], [3, 4]]
    assert sizes(laps([group(0, 2), group(1, MOST_CASES + 1), group(2, 2)], plan(5))) == [
        [0],
        [1],
        [2],
    ]
    assert sizes(laps([], plan(5))) == []


class Crew:
    """Workers that do whatever they are asked, and note it; those that must break do so once, when
    asked for the `op` in `breaks`.
    """

    def __init__(
        self, notes: list[tuple[Any, ...]], breaks: tuple[str, str | None] | None = None
    ) -> None:
        self.notes = notes
        self.breaks = breaks

    def worker(self, number: int, python: str | None = None) -> Any:
        crew, answers = self, []

        class Worker:
            def send(self, request: dict[str, Any]) -> None:
                crew.notes.append(
                    (
                        seat(number, python),
                        request["op"],
                        tuple(one["case"] for one in request["cases"]),
                    )
                )
                if crew.breaks == (request["op"], python):
                    crew.breaks = None
                    raise Fault(Status.CRASHED, "SIGSEGV")
                for one in request["cases"]:
                    answers.append({"event": "running", "case": one["case"], "phase": "latency"})
                    if request["op"] == "block":
                        reading = {"calls": 1, "wall_s": 0.1}
                        quantities = {"block_ms": [1.0], "conditions": reading}
                        answers.append(
                            {
                                "event": "samples",
                                "case": one["case"],
                                "quantities": quantities,
                                "spent_s": 0.1,
                            }
                        )
                answers.append({"event": "done"})

            def receive(self, timeout_s: float) -> dict[str, Any]:
                return answers.pop(0)

        return Worker()

    def pids(self) -> list[int]:
        return []

    def close(self) -> None: ...

    def dismiss(self, number: int, python: str | None = None) -> None:
        self.notes.append((seat(number, python), "dismiss", ()))


def seat(number: int, python: str | None) -> Any:
    return number if python is None else (number, python)


@pytest.fixture
def measured():
    """What the workers were asked, and the records that came of it."""

    def run(
        groups: list[list[Case]], processes: int = 3, breaks: Any = None, **more: Any
    ) -> tuple[list[tuple[Any, ...]], list[Any]]:
        from attnbench.harness.run.group import Means
        from attnbench.harness.run.worker_pool import Terms

        notes: list[tuple[Any, ...]] = []
        given: dict[str, Any] = {
            "measure": ("latency",),
            "timeout_s": 10.0,
            "budget_bytes": 1 << 30,
            "seed": 0,
            **more,
        }
        terms = Terms(
            device="cpu", baseline=None, contrast=(), **{"plan": plan(processes), **given}
        )
        means = Means(
            terms=terms, crew=Crew(notes, breaks), attempts={}, running=lambda what, phase: None
        )  # type: ignore[arg-type]
        return notes, list(Lap(means).records(groups))

    return run


def test_a_process_visits_every_group_before_the_next_one_does(measured):
    notes, records = measured([[case(8), case(8, "naive")], [case(16)], [case(32)]])
    turns = [(number, names) for number, op, names in notes if op == "open"]
    assert [number for number, _ in turns] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for process in range(3):
        assert {len(names) for number, names in turns if number == process} == {1, 2}
    assert len({record.id for record in records}) == 4
    assert {record.processes for record in records} == {3}
    assert {str(record.status) for record in records} == {"ok"}


def test_rows_of_one_group_share_a_session_and_those_of_others_do_not(measured):
    _, records = measured([[case(8), case(8, "naive")], [case(16)]])
    sessions = {record.id: record.session for record in records}
    assert len(set(sessions.values())) == 2
    assert len({record.session for record in records if record.case.problem.seq_len == 8}) == 1


def test_windows_are_spread_over_the_processes_after_the_latencies(measured):
    notes, _ = measured([[case(8), case(8, "naive")]], measure=("latency", "utilization"))
    asked = [(number, op) for number, op, _ in notes]
    windows = [number for number, op in asked if op == "watch"]
    assert windows == [0, 0, 1, 1, 2, 2]
    last_block = max(place for place, (_, op) in enumerate(asked) if op == "block")
    assert last_block < asked.index((0, "watch"))


def test_a_lap_that_was_never_begun_has_nothing_unfinished():
    assert list(Lap(SimpleNamespace()).unfinished("interrupted", "why")) == []  # type: ignore[arg-type]


# ---- several environments ------------------------------------------------------------------------

BOTH = [case(8, backend, python) for backend in ("fused", "naive") for python in ("old", "new")]


def test_every_environment_measures_its_own_cases_and_no_others(measured):
    notes, records = measured([BOTH])
    asked = [
        (where, names) for where, op, names in notes if op in ("judge", "open", "block", "watch")
    ]
    assert {where for where, _ in asked} == {
        (number, python) for number in range(3) for python in ("old", "new")
    }
    assert all(name.endswith(f"-{python}") for (_, python), names in asked for name in names)
    assert {(str(record.status), record.case.python) for record in records} == {
        ("ok", "old"),
        ("ok", "new"),
    }
    assert len({record.session for record in records}) == 1
    assert sorted(record.id for record in records) == sorted(one.id for one in BOTH)


def test_the_blocks_of_environments_interleave_in_one_random_order(measured):
    many = Plan(processes=1, min_blocks=12, max_blocks=12, precision_ratio=1e-9, budget_s=100.0)
    notes, records = measured([BOTH], plan=many)
    called = [name for _, op, names in notes if op == "block" for name in names]
    rounds = [called[place : place + len(BOTH)] for place in range(0, len(called), len(BOTH))]
    assert len(rounds) == 12
    assert all(sorted(one) == sorted(case.id for case in BOTH) for one in rounds)
    by_environment = [
        "".join(name[-3] for name in one) for one in rounds
    ]  # the first letter of old and of new
    assert len(set(by_environment)) > 2, "the environments are not always in the same order"
    assert any(order not in ("oonn", "nnoo") for order in by_environment), (
        "they change within a block"
    )
    assert {len(record.block_ms[0]) for record in records} == {12}


def test_what_is_opened_in_an_environment_is_closed_there(measured):
    notes, _ = measured([BOTH, [case(16, "fused", "new")]], measure=("latency", "utilization"))
    for seat_of in {where for where, _, _ in notes}:
        asked = [op for where, op, _ in notes if where == seat_of and op in ("open", "close")]
        assert asked == ["open", "close"] * (len(asked) // 2)
        assert asked


def test_a_worker_that_cannot_be_had_costs_its_own_environment_alone(measured):
    notes, records = measured([BOTH], breaks=("open", "new"))
    ended = {record.id: str(record.status) for record in records}
    assert {status for name, status in ended.items() if name.endswith("-new")} == {"crashed"}
    assert {status for name, status in ended.items() if name.endswith("-old")} == {"ok"}
    assert len(records) == len(BOTH)
    assert ((0, "new"), "dismiss", ()) in notes
