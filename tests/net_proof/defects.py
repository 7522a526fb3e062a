"""Twenty-four defects that a rewrite may bring, each planted by its effect, and what notices it.

Whoever rewrites a place plants its defect anew in the same commit; 24 stays 24.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

NET = ("tests/contract", "tests/approved")


class NotPlanted(Exception):
    """A defect does not apply to this tree."""


class Patch(NamedTuple):
    """`old` stands once in the file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """`noticed_by`: tests of which one has to fail. `missed`: why none does."""

    name: str
    patches: tuple[Patch, ...]
    noticed_by: tuple[str, ...]
    missed: str = ""

    def patched(self, tree: Path) -> dict[str, str]:
        """The files that change, by path, as they are with it. Raises NotPlanted."""
        after: dict[str, str] = {}
        for path, old, new in self.patches:
            text = after.get(path) or (tree / path).read_text()
            if (count := text.count(old)) != 1:
                raise NotPlanted(f"{self.name}: {path} has {count} times, not once:\n{old}")
            after[path] = text.replace(old, new)
            compile(after[path], path, "exec")
        return after

    @contextmanager
    def planted(self, tree: Path) -> Iterator[None]:
        """Raises NotPlanted."""
        after = self.patched(tree)
        before = {path: (tree / path).read_text() for path in after}
        try:
            for path, text in after.items():
                (tree / path).write_text(text)
            yield
        finally:
            for path, text in before.items():
                (tree / path).write_text(text)


def defect(name: str, noticed_by: str, *patches: Patch, missed: str = "") -> Defect:
    return Defect(name=name, patches=patches, noticed_by=(noticed_by,), missed=missed)


DEFECTS = (
    defect(
        "2 ms inside the clock",
        "tests/contract/test_clock.py::test_a_latency_is_the_time_of_the_call_and_of_nothing_else",
        Patch(
            "harness/measure/clock.py",
            "result = call()\n                readings.append",
            "result = call(), time.sleep(2e-3)\n                result = result[0]\n"
            "                readings.append",
        ),
    ),
    defect(
        "blocks not interleaved",
        "tests/contract/test_timing.py::test_the_blocks_of_a_problem_are_interleaved_in_changing_order",
        Patch(
            "harness/run/group.py",
            "while wanting := self._wanting(seat):",
            "while wanting := self._wanting(seat)[:1]:",
        ),
    ),
    defect(
        "L2 flush lost",
        "tests/contract/test_gpu_fakes.py::test_cold_calls_find_a_cache_that_was_written_over",
        Patch(
            "harness/measure/clock.py", "        if flush:\n            self.flush.zero_()\n", ""
        ),
        Patch(
            "harness/measure/clock.py",
            "            clock.flush.zero_()\n            self.start.record()",
            "            self.start.record()",
        ),
    ),
    defect(
        "limit of correctness 20",
        "tests/contract/test_own_function.py::test_what_is_wrong_in_little_is_incorrect_and_has_no_speed[slightly_wrong:rounding-128]",
        Patch("harness/measure/error_limits.py", "\nLIMIT_RATIO = 2.0", "\nLIMIT_RATIO = 20.0"),
    ),
    defect(
        "8 judged rows",
        "tests/contract/test_own_function.py::test_what_is_wrong_in_little_is_incorrect_and_has_no_speed[slightly_wrong:row-128]",
        Patch(
            "harness/measure/correctness.py",
            "    widths = p.heads * n * p.d_k",
            "    rows = rows[:: -(-len(rows) // 8)]\n    widths = p.heads * n * p.d_k",
        ),
        Patch("harness/measure/judge.py", "PLACES = 128", "PLACES = 8"),
    ),
    defect(
        "a key too many at long N",
        "tests/contract/test_own_function.py::test_what_is_right_is_measured[naive-1024]",
        Patch(
            "impls/shared/softmax.py",
            "(rows + problem.causal_offset)",
            "(rows + problem.causal_offset + (problem.kv_seq_len >= 1024))",
        ),
    ),
    defect(
        "warm-up of one call",
        "tests/contract/test_clock.py::test_calls_are_not_timed_before_they_are_as_fast_as_they_get",
        Patch(
            "harness/worker/blocks.py",
            "    least_s, most_s = seconds\n",
            "    least_s, most_s = seconds\n    if readings:\n        return None, readings[-1]\n",
        ),
    ),
    defect(
        "seed reused",
        "tests/contract/test_timing.py::test_places_and_values_are_drawn_anew_for_each_block_that_is_judged",
        Patch(
            "harness/run/group.py",
            "case.problem: secrets.randbits(SEED_BITS) for",
            "case.problem: self.spec.seed for",
        ),
    ),
    defect(
        "a row lost in resume",
        "tests/contract/test_resume.py::test_resuming_adds_exactly_what_is_missing_and_changes_no_byte",
        Patch(
            "harness/run/spec.py", 'if one["case"] not in but]', 'if one["case"] not in but][1:]'
        ),
    ),
    defect(
        "two rows for one case",
        "tests/contract/test_run.py::test_every_case_of_a_small_scenario_is_measured_once",
        Patch(
            "harness/run/run_rows.py",
            "self.store.append(records)\n",
            "self.store.append(2 * records)\n",
        ),
    ),
    defect(
        "W for mW",
        "tests/contract/test_gpu_fakes.py::test_power_is_in_watt_and_energy_is_power_times_time[hopper]",
        Patch(
            "harness/devices/probes/energy.py",
            "power_w = Reading(energy_j / (end_s - start_s))",
            "power_w = Reading(1e3 * energy_j / (end_s - start_s))",
        ),
    ),
    defect(
        "SM and tensor columns swapped",
        "tests/contract/test_gpu_fakes.py::test_counters_of_hopper_are_in_their_columns",
        Patch("harness/devices/probes/gpm.py", '"sm_active_ratio": 2', '"sm_active_ratio": 5'),
        Patch("harness/devices/probes/gpm.py", '"any_tensor_ratio": 5', '"any_tensor_ratio": 2'),
    ),
    defect(
        "graph capture failing quietly",
        "tests/contract/test_gpu_fakes.py::test_a_call_that_no_graph_can_hold_says_why",
        Patch(
            "harness/measure/clock.py",
            "self.graph_reason = not_captured(error)",
            'self.graph_reason = ""',
        ),
    ),
    defect(
        "budget doubled",
        "tests/contract/test_budget.py::test_of_64_mib_a_backend_gets_32_and_not_96",
        Patch(
            "harness/measure/memory_budget.py",
            "self.limit = used + budget_bytes",
            "self.limit = used + 2 * budget_bytes",
        ),
    ),
    defect(
        "oom as error",
        "tests/contract/test_budget.py::test_of_64_mib_a_backend_gets_32_and_not_96",
        Patch(
            "harness/measure/memory_budget.py",
            "    if isinstance(error, torch.OutOfMemoryError | MemoryError):\n        return True\n"
            "    if isinstance(error, OSError)",
            "    return False\n    if isinstance(error, OSError)",
        ),
    ),
    defect(
        "interval at 80 %",
        "tests/approved/test_facts.py::test_the_facts_were_approved[after]",
        Patch("harness/stats/intervals.py", "\nCONFIDENCE = 0.965", "\nCONFIDENCE = 0.80"),
    ),
    defect(
        "Holm left out",
        "tests/approved/test_facts.py::test_the_facts_were_approved[compare_backends]",
        Patch(
            "harness/stats/contrasts.py",
            "        adjusted[place] = highest\n",
            "        adjusted[place] = p_values[place]\n",
        ),
    ),
    defect(
        "mark by another rule",
        "tests/approved/test_facts.py::test_the_facts_were_approved[cpu-20261124-quickstart]",
        Patch(
            "reports/words.py",
            "    if not low <= 1 <= high:\n",
            "    if low > 1.1 or high < 1 / 1.1:\n",
        ),
    ),
    defect(
        "an axis hidden",
        "tests/approved/test_facts.py::test_the_facts_were_approved[h200-20261126-kernel_sweep]",
        Patch(
            "reports/data/row_groups.py",
            "if len(values) > 1]\n\n\ndef distinguishing",
            'if len(values) > 1 and axis != "causal"]\n\n\ndef distinguishing',
        ),
    ),
    defect(
        "missing as 0",
        "tests/approved/test_facts.py::test_the_facts_were_approved[failures]",
        Patch(
            "reports/data/load.py",
            "and isnan(value)):\n        return None\n",
            "and isnan(value)):\n        return 0 if dtype == COUNT else None\n",
        ),
        Patch("reports/data/load.py", "import COLUMNS, DTYPES,", "import COLUMNS, COUNT, DTYPES,"),
    ),
    defect(
        "a backend that leaves one thread set changes its neighbour's time",
        "tests/contract/test_own_function.py::test_one_thread_that_a_backend_leaves_set_reaches_no_other",
        Patch(
            "harness/run/group.py",
            'backend = "" if is_ours(case.backend) else case.backend',
            'backend = ""',
        ),
    ),
    defect(
        "a child left alive",
        "tests/contract/test_statuses.py::test_what_a_backend_leaves_behind_is_ended",
        Patch(
            "harness/process/guard.py",
            "                os.kill(pid, signal.SIGKILL)\n        left,",
            "                os.kill(pid, 0)\n        left,",
        ),
    ),
    defect(
        "an open file per case",
        "tests/contract/test_many_cases.py::test_open_files_do_not_grow_with_the_cases",
        Patch(
            "harness/run/run_rows.py",
            "            self.left.pop(record.id, None)\n",
            "            self.left.pop(record.id, None)\n"
            '            self.__dict__.setdefault("opened", []).append(open("/dev/null"))\n',
        ),
    ),
    defect(
        "torch imported by show",
        "tests/contract/test_pages.py::test_results_are_read_without_torch",
        Patch("harness/verbs/show.py", "\nimport typer\n", "\nimport torch\nimport typer\n"),
    ),
)
assert len(DEFECTS) == 24
