"""Turns over several groups: each process visits every group before the next process does, and a lap is never too large."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.case import Case, Group
from attnbench.harness.lap import MOST_CASES, Lap, laps
from attnbench.harness.scenario import Plan
from attnbench.impls.problem import Problem


def case(seq_len: int, backend: str = "fused") -> Case:
    return Case(backend=backend, problem=Problem(batch=1, seq_len=seq_len, d_model=8, heads=1))


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
    assert sizes(laps([group(0, 2), group(1, MOST_CASES + 1), group(2, 2)], plan(5))) == [[0], [1], [2]]
    assert sizes(laps([], plan(5))) == []


class Crew:
    """Workers that do whatever they are asked, and note it; those that must break do so once."""

    def __init__(self, notes: list[tuple[Any, ...]]) -> None:
        self.notes = notes

    def worker(self, number: int) -> Any:
        crew, answers = self, []

        class Worker:
            def send(self, request: dict[str, Any]) -> None:
                crew.notes.append((number, request["op"], tuple(one["case"] for one in request["cases"])))
                for one in request["cases"]:
                    answers.append({"event": "running", "case": one["case"], "phase": "latency"})
                    if request["op"] == "block":
                        reading = {"calls": 1, "wall_s": 0.1}
                        quantities = {"block_ms": [1.0], "conditions": reading}
                        answers.append({"event": "samples", "case": one["case"], "quantities": quantities, "spent_s": 0.1})
                answers.append({"event": "done"})

            def receive(self, timeout_s: float) -> dict[str, Any]:
                return answers.pop(0)

        return Worker()

    def pids(self) -> list[int]:
        return []

    def close(self) -> None: ...

    def dismiss(self, number: int) -> None: ...


@pytest.fixture
def measured():
    """What the workers were asked, and the records that came of it."""

    def run(groups: list[list[Case]], processes: int = 3, **more: Any) -> tuple[list[tuple[Any, ...]], list[Any]]:
        from attnbench.harness.crew import Terms
        from attnbench.harness.group import Means

        notes: list[tuple[Any, ...]] = []
        given: dict[str, Any] = {"measure": ("latency",), "timeout_s": 10.0, "budget_bytes": 1 << 30, "seed": 0, **more}
        terms = Terms(device="cpu", plan=plan(processes), baseline=None, contrast=(), **given)
        means = Means(terms=terms, crew=Crew(notes), attempts={}, running=lambda what, phase: None)  # type: ignore[arg-type]
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
