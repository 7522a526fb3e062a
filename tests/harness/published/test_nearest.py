"""The nearest published shapes to a model's, of one device, with what differs."""

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.published.nearest import nearest


@pytest.mark.parametrize(
    ("device", "context", "differs"),
    [
        ("h200", 8192, {"prefill": "batch 2 for 1, heads 64 for 32", "decode": "heads 64 for 32"}),
        (
            "A100",
            3000,
            {
                "prefill": "batch 2 for 1, kv_seq_len 4096 for 3000, heads 64 for 32",
                "decode": "kv_seq_len 2048 for 3000, heads 64 for 32",
            },
        ),
    ],
)
def test_the_first_of_each_phase_is_the_nearest_and_says_how_it_differs(device, context, differs):
    found = nearest("llama-3-8b", device, context=context, batch=1, dtype="bf16")
    first = {one.asked.phase: one for one in reversed(found)}
    assert {phase: one.differs for phase, one in first.items()} == differs
    assert {device.lower() in one.source.device.lower() for one in found} == {True}


def test_a_decode_step_is_near_to_no_prefill_and_what_has_dropout_to_nothing():
    found = nearest("gpt2", "a100", context=1024, batch=16, dtype="fp16")
    assert {one.asked.phase for one in found} == {"prefill", "decode"}
    for one in found:
        assert (one.cell.shape.seq_len == 1) == (one.asked.phase == "decode")
        assert one.cell.exact
        assert not one.cell.also


def test_a_device_is_named_by_whole_words():
    found = nearest("gpt2", "b200", context=1024, batch=1, dtype="bf16")
    assert {one.source.device for one in found} == {"NVIDIA B200"}
    with pytest.raises(BadInput, match="no published table is of it"):
        nearest("gpt2", "a10", context=1024, batch=1, dtype="bf16")
