"""What a child may say: whatever comes through the reply channel is a known event with the right
types, or a bad reply.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbench.harness.process import events
from attnbench.harness.process.events import BadReply, parse

BLOCK = {
    "block_ms": [1.0, 2],
    "wall_block_ms": None,
    "hot_block_ms": None,
    "graph_block_ms": None,
    "conditions": {"calls": 2, "new_values": 1, "wall_s": 0.1, "steal_s": 0.0},
}
GOOD: list[dict[str, Any]] = [
    {"event": "done"},
    {"event": "running", "case": None, "phase": "gate"},
    {"event": "facts", "case": "a", "fields": {"peak_bytes": 1, "kernel": None, "tables": {}}},
    {"event": "samples", "case": "a", "quantities": BLOCK, "spent_s": 0.1, "block_s": 1},
    {
        "event": "ended",
        "case": "a",
        "status": "error",
        "reason": "why",
        "phase": "gate",
        "log_tail": None,
        "poisoned": False,
    },
]


def changed(event: dict[str, Any], /, **fields: Any) -> bytes:
    return json.dumps(event | fields).encode()


@pytest.mark.parametrize("event", GOOD, ids=lambda event: event["event"])
def test_a_good_event_passes_as_it_is(event: dict[str, Any]) -> None:
    assert parse(json.dumps(event).encode(), events.WORKER) == event


DONE, RUNNING, FACTS, SAMPLES, ENDED = GOOD


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "b'nonsense' is not an event"),
        (b"\xff\xfe", "is not an event"),
        (b'{"event": ["done"]}', "is not an event"),
        (b'{"event": "done"} {"event": "done"}', "is not an event"),
        (b"9" * 5000, "... is not an event"),
        (b"[" * 1_000_000, "... is not an event"),
        (b'{"a":' * 100_000, "... is not an event"),
        (b'{"event": "done", "x": ' + b"[" * 200 + b"]" * 200 + b"}", "more than 32 lists"),
        (changed(DONE, event="finished"), "event: Input tag 'finished'"),
        (changed(DONE, more=1), "done.more: Extra inputs are not permitted"),
        (b'{"event": "running", "case": "a"}', "running.phase: Field required"),
        (changed(RUNNING, case=7), "running.case: Input should be a valid string"),
        (changed(FACTS, fields={"speed": 1}), "speed: Extra inputs are not permitted"),
        (changed(FACTS, fields={"peak_bytes": 1.5}), "peak_bytes: Input should be a valid int"),
        (changed(FACTS, fields={"peak_bytes": 2**70}), "a number of more than 64 bits"),
        (b'{"event": "warm", "call_ms": NaN}', "nan in place of a finite number"),
        (
            changed(SAMPLES, quantities=BLOCK | {"block_ms": [0.0]}),
            "samples.quantities.block_ms.0: Input should be greater than",
        ),
        (changed(ENDED, status="ok"), "status ok with reason 'why'"),
        (changed(ENDED, status="done"), "ended.status: Value error, wanted one of ok, oom"),
        (changed(ENDED, **{"\x1b[31m": 1}), r"ended.\x1b[31m: Extra inputs"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_a_bad_one_says_what_is_wrong_in_one_inert_line(line: bytes, said: str) -> None:
    with pytest.raises(BadReply) as bad:
        parse(line, events.WORKER)
    assert said in str(bad.value)
    assert str(bad.value).isprintable()
    assert len(str(bad.value)) < 400


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


@pytest.mark.long
@given(event=st.sampled_from(GOOD), name=st.sampled_from(sorted({*ENDED, *SAMPLES})), value=JSON)
def test_any_value_of_any_field_passes_or_is_a_bad_reply(
    event: dict[str, Any], name: str, value: Any
) -> None:
    for kind in (events.WORKER, events.any_event):
        assert complaint(changed(event, **{name: value}), kind).isprintable()


def complaint(line: bytes, kind: events.Events) -> str:
    try:
        parse(line, kind)
    except BadReply as bad:
        return str(bad)
    return ""
