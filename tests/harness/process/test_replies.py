"""What a child may reply: whatever comes is a known reply with the right types, or a bad one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbench.harness.process.replies import JUDGE, WORKER, BadReply, Replies, parse

BLOCK = {
    "block_ms": [1.0, 2],
    "wall_block_ms": None,
    "hot_block_ms": None,
    "graph_block_ms": None,
    "conditions": {"calls": 2, "wall_s": 0.1, "steal_s": 0.0},
}
GOOD: list[dict[str, Any]] = [
    {"op": "release"},
    {"op": "predict", "predicted_seq_len": 8, "predicted_source": None, "predicted_reason": ""},
    {"op": "check", "fields": {"peak_bytes": 1, "kernel": None, "tables": {}}},
    {"op": "sample", "quantities": BLOCK, "spent_s": 0.1, "block_s": 1},
    {
        "op": "ended",
        "status": "error",
        "reason": "why",
        "phase": "gate",
        "log_tail": None,
        "fields": {},
    },
]
RELEASE, PREDICT, CHECK, SAMPLE, ENDED = GOOD


def changed(reply: dict[str, Any], /, **fields: Any) -> bytes:
    return json.dumps(reply | fields).encode()


@pytest.mark.parametrize("reply", GOOD, ids=lambda reply: reply["op"])
def test_a_good_reply_passes_as_it_is(reply: dict[str, Any]) -> None:
    assert parse(changed(reply), WORKER).model_dump(exclude_unset=True) == reply


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "b'nonsense' is not a reply"),
        (b"\xff\xfe", "is not a reply"),
        (b'{"op": ["release"]}', "is not a reply"),
        (b'{"op": "release"} {"op": "release"}', "is not a reply"),
        (b"9" * 5000, "... is not a reply"),
        (b"[" * 1_000_000, "... is not a reply"),
        (b'{"a":' * 100_000, "... is not a reply"),
        (b'{"op": "release", "x": ' + b"[" * 200 + b"]" * 200 + b"}", "more than 32 lists"),
        (changed(RELEASE, op="finished"), "op 'finished' is not one of ready, configure"),
        (changed(RELEASE, op="judged"), "op 'judged' is not one of ready, configure"),
        (changed(RELEASE, more=1), "release.more: Extra inputs are not permitted"),
        (b'{"op": "predict"}', "predict.predicted_seq_len: Field required"),
        (changed(PREDICT, predicted_source=7), "predicted_source: Input should be a valid string"),
        (changed(CHECK, fields={"speed": 1}), "speed: Extra inputs are not permitted"),
        (changed(CHECK, fields={"peak_bytes": 1.5}), "peak_bytes: Input should be a valid int"),
        (changed(CHECK, fields={"peak_bytes": 2**70}), "a number of more than 64 bits"),
        (b'{"op": "warm_up", "call_ms": NaN}', "nan in place of a finite number"),
        (b'{"op": "output", "numbers": [[1e999]]}', "inf in place of a finite number"),
        (
            changed(SAMPLE, quantities=BLOCK | {"block_ms": [0.0]}),
            "sample.quantities.block_ms.0: Input should be greater than",
        ),
        (changed(ENDED, status="ok"), "status ok with reason 'why'"),
        (changed(CHECK, fields={"status": "ok"}), "check.fields.status: Extra inputs"),
        (changed(ENDED, status="done"), "ended.status: Value error, wanted one of ok, oom"),
        (changed(ENDED, **{"\x1b[31m": 1}), r"ended.\x1b[31m: Extra inputs"),
        (changed(ENDED, op="\x1b[31m" * 99), "(794 characters) is not one of"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_a_bad_one_says_what_is_wrong_in_one_inert_line(line: bytes, said: str) -> None:
    with pytest.raises(BadReply) as bad:
        parse(line, WORKER)
    assert said in str(bad.value)
    assert str(bad.value).isprintable()
    assert len(str(bad.value)) < 400


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


@pytest.mark.long
@given(reply=st.sampled_from(GOOD), name=st.sampled_from(sorted({*ENDED, *SAMPLE})), value=JSON)
def test_any_value_of_any_field_passes_or_is_a_bad_reply(
    reply: dict[str, Any], name: str, value: Any
) -> None:
    for replies in (WORKER, JUDGE):
        assert complaint(changed(reply, **{name: value}), replies).isprintable()


def complaint(line: bytes, replies: Replies) -> str:
    try:
        parse(line, replies)
    except BadReply as bad:
        return str(bad)
    return ""
