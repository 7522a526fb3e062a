"""The schedule: a process measures all groups before the next process does, in limited parts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.cases.case import Case, Group
from attnbench.harness.process.child import CaseEnded
from attnbench.harness.process.replies import JUDGE, WORKER, Reply
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run.case_state import CaseState
from attnbench.harness.run.schedule import MAX_CASES, Schedule, schedule_parts
from attnbench.harness.run.worker_pool import FIRST, Runtime, Seat
from attnbench.harness.scenario import Plan
from attnbench.impls.problem import Problem
from tests.fakes.specs import run_spec

TWO = ("fused", "naive")


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


CONDITIONS = {"calls": 1, "wall_s": 0.1}


def reply(op: str, call_ms: float) -> Reply:
    """What a worker says that does whatever it is asked."""
    per_call = dict.fromkeys(("wall_block_ms", "hot_block_ms", "graph_block_ms"))
    quantities = {"block_ms": [call_ms], "conditions": CONDITIONS, **per_call}
    nothing = dict.fromkeys(("graph_reason", "launch_ms", "kv_copies"))
    fields: dict[str, dict[str, Any]] = {
        "draw": {"compiles": False},
        "check": {"fields": {"exactness": "exact"}},
        "warm_up": {
            "stationary": True,
            "call_ms": 1.0,
            "shortest_call_ms": 0.002,
            "digests": ["00"],
            **nothing,
        },
        "sample": {"quantities": quantities, "spent_s": 0.1, "block_s": 0.1},
        "output": {"numbers": [[1.0]]},
        "window": {
            "window": {"way": "eager", "window_s": 0.1, "calls": 1},
            "tables": {},
            "missing": {},
        },
        "profile": {"window": None, "tables": {"kernel_table": []}, "missing": {}},
    }
    return WORKER[op].model_validate({"op": op, **fields.get(op, {})})


class FakePool:
    """Workers that do whatever they are asked, and note it as (seat, op, case). `breaks`: a worker
    is lost, or a case ended, once, when asked for this op of this backend. `judges`: what the judge
    says. `call_ms`: what every call takes. `sees`: windows are not empty.
    """

    def __init__(
        self,
        notes: list[tuple[Seat, str, str]],
        breaks: tuple[str, str, Exception] | None = None,
        call_ms: float = 1.0,
        judges: Mapping[str, Any] = {},
        *,
        sees: bool = True,
    ) -> None:
        self.notes, self.breaks, self.call_ms, self.judges = notes, breaks, call_ms, judges
        self.sees = sees
        self.pid = 0  # of no process
        self.seat = FIRST

    def worker(self, seat: Seat) -> Any:
        self.seat = seat
        if self.breaks is not None and self.breaks[0] == "start":
            raise self.breaks[2]
        return self

    @contextmanager
    def for_check(self, seat: Seat) -> Iterator[Any]:
        yield self.worker(seat)

    def ask(self, op: str, timeout_s: float, **fields: Any) -> Reply:
        case = fields.get("case", "")
        name = case if isinstance(case, str) else case["case"]
        self.notes.append((self.seat, op, name))
        if self.breaks is not None and self.breaks[0] == op and name.startswith(self.breaks[1]):
            failure, self.breaks = self.breaks[2], None
            raise failure
        found = reply(op, self.call_ms)
        return found if self.sees or op != "window" else found.model_copy(update={"window": None})

    def judged(self, timeout_s: float, **fields: Any) -> Reply:
        self.notes.append((self.seat, "judged", fields["exactness"]))
        right = {"op": "judged", "complaint": "", "error_ratio": 0.5, "error_limit_ratio": 2.0}
        return JUDGE["judged"].model_validate({**right, **self.judges})

    def dismiss(self, seat: Seat) -> None:
        self.notes.append((seat, "dismiss", ""))


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """What the workers were asked, and the records. `mine` is a backend from outside."""
    (tmp_path / "mine.py").write_text("def attend(q, k, v, *, causal, scale): return v\n")
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))

    def run(
        groups: list[list[Case]],
        processes: int = 3,
        breaks: Any = None,
        call_ms: float = 1.0,
        judges: Mapping[str, Any] = {},
        sees: bool = True,
        **more: Any,
    ) -> tuple[list[tuple[Seat, str, str]], list[Any]]:
        notes: list[tuple[Seat, str, str]] = []
        pool: Any = FakePool(notes, breaks, call_ms, judges, sees=sees)
        runtime = Runtime(spec=run_spec(**{"plan": plan(processes), **more}), pool=pool)
        return notes, list(Schedule(runtime).records(groups))

    return run


def test_a_process_visits_every_group_before_the_next_one_does(measured):
    notes, records = measured([[case(8), case(8, "naive")], [case(16)], [case(32)]])
    warmed = [seat.process for seat, op, _ in notes if op == "warm_up"]
    assert warmed == [0] * 4 + [1] * 4 + [2] * 4
    assert len({record.id for record in records}) == 4
    assert {record["processes"] for record in records} == {3}
    assert {str(record.status) for record in records} == {"ok"}


def test_rows_of_one_group_share_a_session_and_those_of_others_do_not(measured):
    _, records = measured([[case(8), case(8, "naive"), case(8, "mine")], [case(16)]])
    sessions = {record.id: record["session"] for record in records}
    assert sessions[case(8).id] == sessions[case(8, "naive").id]
    assert len(set(sessions.values())) == 3, "a backend from outside is in blocks of its own"


def test_a_backend_from_outside_has_its_own_worker_and_the_baseline_beside_it(measured):
    notes, records = measured([[case(8), case(8, "mine")]], baseline="fused")
    of = {name: {seat for seat, _, one in notes if one == name} for _, _, name in notes}
    assert {seat.backend for seat in of[case(8, "mine").id]} == {"mine"}
    assert {seat.backend for seat in of[case(8).id]} == {"", "mine"}
    by_id = {record.id: record for record in records}
    mine, fused = by_id[case(8, "mine").id], by_id[case(8).id]
    assert (mine["beside"], fused["beside"]) == ("fused", None)
    assert len(mine["beside_ms"]) == len(mine["block_ms"]) == 3


@pytest.mark.parametrize("op", ["warm_up", "sample", "output"])
def test_a_baseline_that_cannot_be_timed_beside_it_leaves_the_case_unpaired(measured, op):
    lost = WorkerFailure(Status.CRASHED, "SIGSEGV")
    _, records = measured([[case(8, "mine")]], baseline="fused", breaks=(op, "fused", lost))
    assert [(str(record.status), record["beside"]) for record in records] == [("ok", None)]


# ---- judging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", ["forward", "backward"])
def test_each_case_is_judged_in_each_process_after_one_of_its_blocks(measured, passes):
    cases = [Case(backend=b, problem=replace(case(8).problem, passes=passes)) for b in TWO]
    notes, records = measured([cases], plan=Plan(processes=3, min_blocks=3, max_blocks=3))
    for record in records:
        assert {one["process"] for one in record["judged"]} == {0, 1, 2}
        assert len({one["places_seed"] for one in record["judged"]}) == len(record["judged"])
        seeds = {one["values_seed"] for one in record["judged"]}
        assert (seeds == {0}) == (passes == "backward"), "whose graph holds the first inputs"
    asked = [op for _, op, _ in notes]
    assert all(asked[place - 1] == "output" for place, op in enumerate(asked) if op == "judged")
    assert {asked[place - 1] for place, op in enumerate(asked) if op == "output"} == {"sample"}


def test_all_backends_of_a_round_get_the_same_new_numbers(measured, monkeypatch):
    seeds: list[int] = []
    ask = FakePool.ask

    def noted(pool: FakePool, op: str, timeout_s: float, **fields: Any) -> Reply:
        seeds.extend([fields["seed"]] if op == "sample" else [])
        return ask(pool, op, timeout_s, **fields)

    monkeypatch.setattr(FakePool, "ask", noted)
    measured([[case(8), case(8, "naive")]], plan=Plan(processes=1, min_blocks=4, max_blocks=4))
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 4


WRONG = {"complaint": "3 of 8 checked rows are wrong"}


def test_what_the_judge_finds_wrong_ends_the_case_without_samples(measured):
    _, (record,) = measured([[case(8)]], judges=WRONG)
    assert record.status is Status.INCORRECT
    assert record.reason == f"in a timed call: {WRONG['complaint']}"
    assert record["block_ms"] is None


def test_results_that_no_one_knows_must_at_least_follow_the_inputs():
    state = CaseState(case=case(8), fields={"exactness": "approximate"})
    assert state.places_seed(1) == state.places_seed(2) == 1
    state.refuse_stale(1, [[0.5]])
    state.refuse_stale(1, [[0.5]])
    with pytest.raises(CaseEnded, match="answers from memory"):
        state.refuse_stale(2, [[0.5]])


# ---- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["draw", "check", "warm_up", "sample", "output"])
def test_a_lost_worker_costs_its_case_and_the_blocks_of_its_process(measured, op):
    lost = WorkerFailure(Status.CRASHED, "SIGSEGV")
    groups = [[case(8), case(8, "naive")], [case(16)]]
    _, records = measured(groups, breaks=(op, "naive", lost))
    ends = {record.id: (str(record.status), record.reason) for record in records}
    assert ends == {
        case(8).id: ("ok", ""),
        case(8, "naive").id: ("crashed", "SIGSEGV"),
        case(16).id: ("ok", ""),
    }
    for record in records:
        if record.status is Status.OK:
            assert [len(process) for process in record["block_ms"]] == [1, 1, 1]


def test_a_step_that_takes_too_long_says_what_to_do(measured):
    late = WorkerFailure(Status.TIMEOUT, "still running")
    _, (record,) = measured([[case(8)]], breaks=("sample", "fused", late))
    assert record.status is Status.TIMEOUT
    assert record.reason == (
        "one step took more than 10 s; raise the limit with --timeout, or make the case smaller"
    )


def test_after_an_error_on_a_gpu_its_process_is_not_used_again(measured):
    error = CaseEnded(Status.ERROR, "CUDA error: device-side assert", "latency")
    notes, records = measured(
        [[case(8), case(8, "naive")]], device="cuda", breaks=("sample", "naive", error)
    )
    assert sorted(str(record.status) for record in records) == ["error", "ok"]
    place = next(place for place, (_, op, _) in enumerate(notes) if op == "dismiss")
    assert notes[place - 1][1:] == ("sample", case(8, "naive").id)


def test_a_worker_that_cannot_be_had_is_the_end_of_its_cases(measured):
    lost = WorkerFailure(Status.CRASHED, "SIGSEGV")
    _, records = measured([[case(8), case(8, "naive")]], breaks=("start", "", lost))
    assert [str(record.status) for record in records] == ["crashed"] * 2


# ---- records ---------------------------------------------------------------------------------


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
def test_profiling_is_the_last_step_of_the_last_process_which_a_gpu_gets_anew(measured, device):
    measure = ("latency", "utilization", "kernels")
    notes, (record, *_) = measured([[case(8)]], processes=2, measure=measure, device=device)
    asked = [(seat.process, op) for seat, op, _ in notes]
    assert record.status is Status.OK
    windows = max(place for place, (_, op) in enumerate(asked) if op == "window")
    assert asked.index((1, "profile")) > windows
    assert asked[-1] == (1, "dismiss" if device == "cuda" else "release")


def test_windows_are_spread_over_the_processes_after_the_latencies(measured):
    notes, _ = measured([[case(8), case(8, "naive")]], measure=("latency", "utilization"))
    asked = [(seat.process, op) for seat, op, _ in notes]
    windows = [number for number, op in asked if op == "window"]
    assert windows == [0, 0, 1, 1, 2, 2]
    last_block = max(place for place, (_, op) in enumerate(asked) if op == "sample")
    assert last_block < asked.index((0, "window"))


def test_groups_with_one_window_per_case_take_turns_over_the_processes(measured):
    once = Plan(processes=3, min_blocks=1, max_blocks=1, budget_s=10.0, windows=1)
    groups = [[case(8)], [case(16)], [case(32)], [case(64)]]
    notes, _ = measured(groups, plan=once, measure=("latency", "utilization"))
    assert sorted(seat.process for seat, op, _ in notes if op == "window") == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"measure": ("latency", "memory")}, "no window: measure is latency, memory"),
        ({"measure": ("latency", "energy"), "watch": {"seq_len": [16]}}, "leaves this problem out"),
        ({"measure": ("latency", "energy"), "sees": False}, "the worker took none"),
    ],
)
def test_a_timed_row_of_a_gpu_without_a_window_says_why(measured, more, why):
    _, (record,) = measured([[case(8)]], device="cuda", **more)
    assert record.status is Status.OK
    assert why in record["missing"]["windows"]


def test_a_row_of_a_cpu_without_a_window_needs_no_reason(measured):
    _, (record,) = measured([[case(8)]], measure=("latency", "memory"))
    assert record["missing"] is None
