"""The schedule: a process measures all groups before the next process does, in limited parts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from attnbench.harness.cases.case import Case, Group
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import group as group_module
from attnbench.harness.run.runtime import Runtime
from attnbench.harness.run.schedule import MAX_CASES, Schedule, schedule_parts
from attnbench.harness.scenario import Plan
from attnbench.impls.problem import Problem
from tests.fakes.specs import run_spec


def case(seq_len: int, backend: str = "fused") -> Case:
    return Case(backend=backend, problem=Problem(batch=1, seq_len=seq_len, d_model=8, heads=1))


def group(number: int, size: int = 3) -> Group:
    return Group(number=number, cases=tuple(case(number + 1, f"b{place}") for place in range(size)))


def plan(processes: int) -> Plan:
    return Plan(processes=processes, min_blocks=1, max_blocks=1)


def sizes(of: Iterator[tuple[Group, ...]]) -> list[list[int]]:
    return [[one.number for one in part] for part in of]


def test_groups_share_a_part_up_to_its_limit_and_a_large_group_is_whole():
    many = [group(i, 8) for i in range(5)]
    assert sizes(schedule_parts(many, plan(5))) == [[0, 1, 2], [3, 4]]
    assert sizes(schedule_parts([group(0, 2), group(1, MAX_CASES + 1), group(2, 2)], plan(5))) == [
        [0],
        [1],
        [2],
    ]
    assert sizes(schedule_parts([], plan(5))) == []


ANSWERS: dict[str, dict[str, Any]] = {
    "check": {"event": "facts", "fields": {"exactness": "exact"}},
    "warm_up": {
        "event": "warm",
        "stationary": True,
        "graph_reason": None,
        "launch_ms": None,
        "call_ms": 1.0,
        "shortest_call_ms": 0.002,
        "kv_copies": None,
    },
    "sample": {"event": "samples", "spent_s": 0.1, "block_s": 0.1},
}
JUDGED = {"check": ("first", "wide"), "warm_up": ("process",), "confirm": ("after",)}
"""The checks of results that the judge makes in each step."""


def verdict(name: str, check: str, **more: Any) -> dict[str, Any]:
    errors = {"error_l2_ratio": 1e-7, "output_cosine": None}
    errors |= {"error_ratio": 0.5, "error_limit_ratio": 2.0}
    seeds = {"rows_seed": 1, "values_seed": 0, "output_digest": "00"}
    told = {"case": name, "check": check, "exactness": "exact", "complaint": ""}
    return {"event": "verdict", **told, **errors, **seeds, **more}


class FakePool:
    """Workers that do whatever they are asked, and note it; those that must break do so once, when
    asked for the `op` in `breaks`; after ("silence", a case) no samples of it come. `call_ms` is
    what every call takes.
    """

    def __init__(
        self,
        notes: list[tuple[Any, ...]],
        breaks: tuple[str, str | None] | None = None,
        call_ms: float = 1.0,
        judged: Mapping[str, Iterable[Any]] = JUDGED,
        ends: Mapping[str, Mapping[str, Any]] = {},
    ) -> None:
        self.notes, self.ends = notes, ends
        self.judged = judged
        self.breaks = breaks
        self.call_ms = call_ms

    def worker(self, number: int) -> Any:
        pool, answers, verdicts = self, [], []
        if self.breaks == ("start", None):
            raise WorkerFailure(Status.CRASHED, "SIGSEGV")

        class Worker:
            pid = 0  # of no process

            def send(self, request: dict[str, Any]) -> None:
                op, names = request["op"], tuple(one["case"] for one in request["cases"])
                pool.notes.append((number, op, names))
                if pool.breaks == (op, None):
                    pool.breaks = None
                    raise WorkerFailure(Status.CRASHED, "SIGSEGV")
                for name in names:
                    told = [
                        one if isinstance(one, dict) else {"check": one}
                        for one in pool.judged.get(op, ())
                    ]
                    verdicts.extend(verdict(name, **one) for one in told)
                    answers.append({"event": "running", "case": name, "phase": "latency"})
                    if (op, pool.breaks) == ("sample", ("silence", name)):
                        continue
                    if op in ANSWERS:
                        answers.append({"case": name, **ANSWERS[op]})
                    if op == "sample":
                        assert name in request["calls"]
                        conditions = {"calls": 1, "wall_s": 0.1, "new_values": 0}
                        quantities = {"block_ms": [pool.call_ms], "conditions": conditions}
                        answers[-1] |= {"quantities": quantities}
                    if op in pool.ends:
                        answers.append({"event": "ended", "case": name, **pool.ends[op]})
                answers.append({"event": "done"})

            def receive(self, timeout_s: float) -> dict[str, Any]:
                return answers.pop(0)

            def verdicts(self) -> list[dict[str, Any]]:
                found, verdicts[:] = [*verdicts], []
                return found

        return Worker()

    def pids(self) -> list[int]:
        return []

    def start_ahead(self, slots: Any) -> None: ...

    def wait_started(self) -> None: ...

    def close(self) -> None: ...

    def dismiss(self, number: int) -> None:
        self.notes.append((number, "dismiss", ()))


@pytest.fixture
def measured():
    """What the workers were asked, and the records."""

    def run(
        groups: list[list[Case]],
        processes: int = 3,
        breaks: Any = None,
        call_ms: float = 1.0,
        judged: Mapping[str, Iterable[Any]] = JUDGED,
        ends: Mapping[str, Mapping[str, Any]] = {},
        **more: Any,
    ) -> tuple[list[tuple[Any, ...]], list[Any]]:
        notes: list[tuple[Any, ...]] = []
        spec = run_spec(**{"plan": plan(processes), **more})
        pool: Any = FakePool(notes, breaks, call_ms, judged, ends)
        return notes, list(Schedule(Runtime(spec=spec, pool=pool)).records(groups))

    return run


def test_a_process_visits_every_group_before_the_next_one_does(measured):
    notes, records = measured([[case(8), case(8, "naive")], [case(16)], [case(32)]])
    warmed = [(number, names) for number, op, names in notes if op == "warm_up"]
    assert [number for number, _ in warmed] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for process in range(3):
        assert {len(names) for number, names in warmed if number == process} == {1, 2}
    assert len({record.id for record in records}) == 4
    assert {record["processes"] for record in records} == {3}
    assert {str(record.status) for record in records} == {"ok"}


def test_rows_of_one_group_share_a_session_and_those_of_others_do_not(measured):
    _, records = measured([[case(8), case(8, "naive")], [case(16)]])
    sessions = {record.id: record["session"] for record in records}
    assert len(set(sessions.values())) == 2
    assert (
        len({record["session"] for record in records if record.planned.problem.seq_len == 8}) == 1
    )


@pytest.mark.parametrize("op", JUDGED)
def test_a_case_that_lacks_a_verdict_is_an_error_whatever_its_worker_says(measured, op):
    judged = {one: checks for one, checks in JUDGED.items() if one != op}
    _, (record,) = measured([[case(8)]], processes=1, judged=judged)
    assert record.status is Status.ERROR
    assert all(check in record.reason for check in JUDGED[op])
    assert record["block_ms"] is None


def test_only_a_backend_that_was_judged_as_exact_needs_no_wide_scores(measured):
    as_other = [{"check": "first", "exactness": "approximate"}]
    _, (record,) = measured([[case(8)]], judged=JUDGED | {"check": as_other})
    assert record.status is Status.ERROR  # the worker says that it is exact


WRONG = {
    "by a complaint": {"complaint": "3 of 8 checked rows are wrong"},
    "by an error above its limit": {"error_ratio": 2.7e6},
}


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("op", JUDGED)
def test_what_the_judge_finds_wrong_is_incorrect_though_its_worker_goes_on(measured, op, how):
    found = [{"check": JUDGED[op][-1], **WRONG[how]}, *JUDGED[op][:-1]]
    _, (record,) = measured([[case(8)]], judged=JUDGED | {op: found})
    assert record.status is Status.INCORRECT
    assert record.reason == WRONG[how].get("complaint", record.reason)
    assert record["block_ms"] is None


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_a_case_with_long_calls_is_confirmed_too_though_it_is_not_in_every_process(
    measured, monkeypatch, processes
):
    monkeypatch.setattr(group_module.secrets, "randbelow", lambda below: below - 1)
    long = Plan(processes=processes, min_blocks=1, max_blocks=1, budget_s=0.01)
    notes, (record,) = measured([[case(8)]], plan=long)
    assert record.status is Status.OK
    assert sum(op == "sample" for _, op, _ in notes) == min(3, processes)
    assert [op for _, op, _ in notes].count("confirm") == 1


def test_a_case_of_which_no_samples_come_is_an_error_and_not_asked_for_ever(measured):
    silent = case(8, "naive")
    _, records = measured([[case(8), silent]], breaks=("silence", silent.id))
    ends = {record.id: (str(record.status), record.reason) for record in records}
    assert ends == {
        case(8).id: ("ok", ""),
        silent.id: ("error", f"bad reply: done of '{silent.id}' answers no request"),
    }


@pytest.mark.parametrize(
    ("seq_len", "reason"),
    [(4096, "this device's limit is"), (8, "an operation on one number takes more than")],
)
def test_a_time_that_the_device_cannot_reach_is_an_error_and_no_sample_of_it_is_kept(
    measured, seq_len, reason
):
    _, (record,) = measured([[case(seq_len)]], call_ms=0.001)
    assert record.status is Status.ERROR
    assert record["phase"] == "latency"
    assert record.reason.startswith("impossible: ")
    assert reason in record.reason
    assert record["block_ms"] is None
    assert record["shortest_call_ms"] == 0.002


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_profiling_comes_last_and_on_a_gpu_its_process_measures_nothing_more(measured, device):
    measure = ("latency", "utilization", "kernels")
    notes, (record, *_) = measured([[case(8)]], processes=2, measure=measure, device=device)
    asked = [(number, op) for number, op, _ in notes]
    assert record.status is Status.OK
    windows = max(place for place, (_, op) in enumerate(asked) if op == "watch")
    assert asked.index((0, "profile_kernels")) > windows
    assert asked[-1] == (0, "dismiss" if device == "cuda" else "release")


def test_windows_are_spread_over_the_processes_after_the_latencies(measured):
    notes, _ = measured([[case(8), case(8, "naive")]], measure=("latency", "utilization"))
    asked = [(number, op) for number, op, _ in notes]
    windows = [number for number, op in asked if op == "watch"]
    assert windows == [0, 0, 1, 1, 2, 2]
    last_block = max(place for place, (_, op) in enumerate(asked) if op == "sample")
    assert last_block < asked.index((0, "watch"))


def test_groups_with_one_window_per_case_take_turns_over_the_processes(measured):
    once = Plan(processes=3, min_blocks=1, max_blocks=1, budget_s=10.0, windows=1)
    groups = [[case(8)], [case(16)], [case(32)], [case(64)]]
    notes, _ = measured(groups, plan=once, measure=("latency", "utilization"))
    assert sorted(number for number, op, _ in notes if op == "watch") == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"measure": ("latency", "memory")}, "no window: measure is latency, memory"),
        ({"measure": ("latency", "energy"), "watch": {"seq_len": [16]}}, "leaves this problem out"),
        ({"measure": ("latency", "energy")}, "the worker took none"),
    ],
)
def test_a_timed_row_of_a_gpu_without_a_window_says_why(measured, more, why):
    _, (record,) = measured([[case(8)]], device="cuda", **more)
    assert record.status is Status.OK
    assert why in record["missing"]["windows"]


def test_a_row_of_a_cpu_without_a_window_needs_no_reason(measured):
    _, (record,) = measured([[case(8)]], measure=("latency", "memory"))
    assert record["missing"] is None


def test_a_worker_that_cannot_be_had_is_the_end_of_its_cases(measured):
    _, records = measured([[case(8), case(8, "naive")]], breaks=("start", None))
    assert [str(record.status) for record in records] == ["crashed"] * 2
