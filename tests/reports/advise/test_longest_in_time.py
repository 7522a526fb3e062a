"""The longest context in a time: by measured times and fits, and never by a guess."""

from pathlib import Path

from attnbench.reports.advise.memory import MemoryOver
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024, 2048)
ROOMY = {
    "shapes": FakeShapes(formulas={"hf:sdpa": 7}),
    "memory_bytes": 1 << 40,
    "most_context": 4096,
}


def longest(rows, seconds, **changes):
    asked = inquiry(**{**ROOMY, "max_seconds": {"prefill": seconds}, **changes})
    return MemoryOver(inquiry=asked, rows=rows).longest(SDPA, "prefill")


def rows(folder: Path, *lengths: int, **changes):
    asked = inquiry(implementations=(SDPA,))
    return rows_of(asked, measured(folder, asked, lengths, changes={SDPA.backend: changes}))


def true_s(context: int) -> float:
    """As the made-up rows grow, in three layers of 8 heads and two of 4."""
    return 1e-3 * sum(n * (0.02 + 2.1e-6 * context**2 * w) for n, w in ((3, 1), (2, 0.5)))


def test_a_fit_ends_the_context_where_time_does(tmp_path: Path):
    found = longest(rows(tmp_path, *LENGTHS), true_s(1500))
    assert found.context is not None
    assert 1200 < found.context < 1900
    assert (found.limit, found.found_by, found.at_least) == ("time", "time", False)
    assert found.words.startswith("time fitted through N = 128, 256, 512, 1,024, 2,048; bytes ")
    assert found.time is not None
    assert found.time.total_ms is not None
    assert found.time.total_ms.value <= 1e3 * true_s(1500)
    assert found.need is not None
    assert found.need.context == found.context


def test_without_a_fit_measured_lengths_are_a_bound(tmp_path: Path):
    found = longest(rows(tmp_path, 512, 2048), true_s(1024))
    assert (found.context, found.limit, found.at_least) == (512, "time", True)


def test_beyond_the_longest_measured_length_nothing_is_known(tmp_path: Path):
    found = longest(rows(tmp_path, 512), 60.0)
    assert (found.context, found.limit, found.at_least) == (512, "unknown", True)


def test_memory_or_the_model_ends_it_where_time_allows_more(tmp_path: Path):
    known = rows(tmp_path, *LENGTHS)
    assert (longest(known, 60.0).context, longest(known, 60.0).limit) == (4096, "model")
    tight = longest(known, 60.0, memory_bytes=1_000_000)
    assert (tight.limit, tight.found_by) == ("memory", "bytes")
    assert tight.time is not None


def test_without_a_time_there_is_no_answer_and_it_says_why():
    found = longest(StoredRows(), 60.0)
    assert found.context is None
    assert found.words == "its time is not known: not measured"


def test_a_failure_has_no_time(tmp_path: Path):
    failed = rows(tmp_path, 1024, status="error")
    assert longest(failed, 60.0, most_context=1024).context is None


def test_even_one_token_may_take_too_long(tmp_path: Path):
    found = longest(rows(tmp_path, *LENGTHS), 1e-9)
    assert (found.context, found.limit) == (0, "time")


def test_a_phase_without_a_limit_has_none(tmp_path: Path):
    asked = inquiry(**{**ROOMY, "max_seconds": {"decode": 1e-9}, "implementations": (EAGER, SDPA)})
    found = MemoryOver(inquiry=asked, rows=rows(tmp_path, *LENGTHS)).longest(SDPA, "prefill")
    assert (found.context, found.limit, found.time) == (4096, "model", None)


def test_nothing_is_asked_beyond_what_the_model_takes(tmp_path: Path):
    class Limited(FakeShapes):
        def asked(self, phase, context):
            assert context <= ROOMY["most_context"]
            return super().asked(phase, context)

    known = rows(tmp_path, *LENGTHS)
    found = longest(known, 60.0, shapes=Limited(formulas=ROOMY["shapes"].formulas))
    assert (found.context, found.limit) == (4096, "model")
