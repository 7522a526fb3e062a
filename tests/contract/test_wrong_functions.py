"""Wrong functions, each convicted by its own sentence, and right ones beside them that stay right.

Counted data: no entry goes, no sentence is loosened. Each entry is a file of a folder of backends,
measured in one of four scenarios.
"""

import pytest

from tests.contract.conftest import QUICK, only_run, rows, run_attnbench

SELF = "grid: {batch: 2, seq_len: 24, d_model: 32, heads: 4, kv_heads: 2}\ncausal: true"
CHUNK = (
    "grid: {seq_len: [1, 4], kv_seq_len: 12, d_model: 32, heads: 4}\n"
    "causal: true\ncausal_align: bottom_right"
)
TALL = (
    "grid: {seq_len: 12, kv_seq_len: 8, d_model: 32, heads: 4}\n"
    "causal: true\ncausal_align: bottom_right"
)
MASKS = "grid: {seq_len: 160, d_model: 32, heads: 4, mask: [random, local]}  # window 128"

TEXTBOOK = """
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

KEPT = {}


def triangle(q, k, causal, align="top_left", more=0):
    n_q, n_kv = q.shape[2], k.shape[2]
    own = torch.arange(n_q)[:, None] + (n_kv - n_q if align == "bottom_right" else 0)
    return torch.arange(n_kv) <= own + more if causal else torch.ones(n_q, n_kv).bool()


def repeated(q, x):
    return x.repeat_interleave(q.shape[1] // x.shape[1], 1)


def textbook(q, k, v, seen, scale):
    s = (q @ repeated(q, k).mT * scale).masked_fill(~seen, float("-inf"))
    return s.softmax(-1) @ repeated(q, v)


def rows_of(o, rows, value):
    o[:, :, rows] = value
    return o
"""
PLAIN = """
def attend(q, k, v, *, causal, scale):
    seen = triangle(q, k, causal)
"""
WITH_CORNER = """
def attend(q, k, v, *, causal, scale, causal_align):
"""
PREPARED = """
from attnbench.impls.layer import as_call
from attnbench.impls.shared.mask_tensors import mask_matrix

MASKS = ("{mask}",)


def prepare(problem, inputs, weights):
    positions = torch.arange(problem.seq_len)
    seen, distance = mask_matrix(problem, positions)[0], positions - positions[:, None]

    def attend(q, k, v):
        scale = problem.scale
        {body}

    return as_call(problem, inputs, weights, attend{fills})
"""
OUT = "textbook(q, k, v, seen, scale)"
FAR = "times as far from the exact result as the textbook formula in fp32"
ZERO = "not zero where exactly zero is right"
NAN = "the output has NaN or infinity"


def plain(*lines: str, head: str = PLAIN) -> str:
    return head + "".join(f"    {line}\n" for line in lines)


def prepared(body: str, mask: str, fills: str = "") -> str:
    return PREPARED.format(mask=mask, body=body, fills=fills)


WRONG: dict[str, tuple[str, str, str]] = {  # scenario, file, and what the row says
    "nan_in_one_row": (SELF, plain(f"return rows_of({OUT}, 5, float('nan'))"), NAN),
    "infinity_in_the_last_row": (SELF, plain(f"return rows_of({OUT}, -1, float('inf'))"), NAN),
    "sees_the_next_key": (
        SELF,
        plain("seen = triangle(q, k, causal, more=1)", f"return {OUT}"),
        FAR,
    ),
    "misses_its_own_key": (
        SELF,
        plain("seen = triangle(q, k, causal, more=-1)", "seen[0, 0] = True", f"return {OUT}"),
        FAR,
    ),
    "not_causal": (
        SELF,
        plain("seen[:] = True", f"return {OUT}"),
        "it is right for attention that is not causal",
    ),
    "scale_forgotten": (
        SELF,
        plain("scale = 1.0", f"return {OUT}"),
        "it is right for scores without the scale",
    ),
    "scale_twice": (SELF, plain("scale = scale**2", f"return {OUT}"), FAR),
    "heads_swapped": (SELF, plain(f"return {OUT}.flip(1)"), FAR),
    "heads_grouped_in_turns": (
        SELF,
        plain("k, v = k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)", f"return {OUT}"),
        FAR,
    ),
    "last_row_zero": (
        SELF,
        plain(f"return rows_of({OUT}, -1, 0.0)"),
        "2 of 48 rows are all zeros: not computed",
    ),
    "first_row_zero": (
        SELF,
        plain(f"return rows_of({OUT}, 0, 0.0)"),
        "2 of 48 rows are all zeros: not computed",
    ),
    "transposed": (
        SELF,
        plain(f"return {OUT}.transpose(1, 2).contiguous()"),
        "output of shape [2, 24, 4, 8]; wanted [2, 4, 24, 8]",
    ),
    "other_dtype": (
        SELF,
        plain(f"return {OUT}.double()"),
        "the output is of torch.float64; wanted torch.float32",
    ),
    "rounded_inside": (
        SELF,
        plain("q, k, v = (x.bfloat16() for x in (q, k, v))", f"return {OUT}.float()"),
        FAR,
    ),
    "second_entry_is_the_first": (
        SELF,
        plain(f"o = {OUT}", "o[1] = o[0]", "return o"),
        FAR,
    ),
    "no_maximum": (
        SELF,
        plain(
            "e = (q @ repeated(q, k).mT * scale).exp() * seen",
            "return e / e.sum(-1, keepdim=True) @ repeated(q, v)",
        ),
        "with scores up to 150: the output has NaN or infinity",
    ),
    "rows_shifted": (SELF, plain(f"return {OUT}.roll(1, 2)"), FAR),
    "last_key_dropped": (
        SELF,
        plain("seen[:, -1] = False", f"return {OUT}"),
        FAR,
    ),
    "returns_its_input": (
        SELF,
        plain("return q"),
        "the output is an input's own memory; wanted storage of its own",
    ),
    "one_row_for_all": (
        SELF,
        plain(f"return {OUT}[:, :, :1].clone().expand(-1, -1, 24, -1)"),
        "bytes; wanted storage of its own",
    ),
    "a_pair": (SELF, plain(f"return {OUT}, None"), "the output is of type tuple"),
    "softmax_over_queries": (
        SELF,
        plain(
            "s = (q @ repeated(q, k).mT * scale).masked_fill(~seen, float('-inf'))",
            "return s.softmax(-2) @ repeated(q, v)",
        ),
        FAR,
    ),
    "columns_reversed": (SELF, plain(f"return {OUT}.flip(-1)"), FAR),
    "one_buffer": (
        SELF,
        plain("o = KEPT.setdefault('o', torch.empty_like(q))", f"return o.copy_({OUT})"),
        "every call returns the same memory",
    ),
    "answers_from_memory": (
        SELF,
        plain(f"return KEPT.setdefault('o', {OUT}).clone()"),
        "it answers from memory",
    ),
    "writes_to_its_input": (SELF, plain("q.mul_(scale)", "scale = 1.0", f"return {OUT}"), "writes"),
    "wrong_corner": (
        CHUNK,
        plain(f"return {OUT}"),
        "it is right for causal_align top_left, where bottom_right was asked",
    ),
    "not_causal_in_chunks": (
        CHUNK,
        plain("seen[:] = True", f"return {OUT}"),
        "it is right for attention that is not causal",
    ),
    "takes_the_corner_and_forgets_it": (
        CHUNK,
        plain("seen = triangle(q, k, causal)", f"return {OUT}", head=WITH_CORNER),
        "it is right for causal_align top_left, where bottom_right was asked",
    ),
    "off_by_one_from_the_right": (
        CHUNK,
        plain(
            "seen = triangle(q, k, causal, causal_align, more=-1)",
            f"return {OUT}",
            head=WITH_CORNER,
        ),
        FAR,
    ),
    "nan_without_keys": (MASKS, prepared(f"return {OUT}", "random"), NAN),
    "mean_without_keys": (
        MASKS,
        prepared(f"seen[~seen.any(-1)] = True; return {OUT}", "random"),
        ZERO,
    ),
    "window_one_short": (
        MASKS,
        prepared(f"seen = distance.abs() <= problem.window - 1; return {OUT}", "local"),
        "it is right for window 127, where 128 was asked",
    ),
    "window_one_long": (
        MASKS,
        prepared(f"seen = distance.abs() <= problem.window + 1; return {OUT}", "local"),
        "it is right for window 129, where 128 was asked",
    ),
    "window_without_a_left_end": (
        MASKS,
        prepared(f"seen = distance <= problem.window; return {OUT}", "local"),
        FAR,
    ),
    "mask_ignored": (
        MASKS,
        prepared(f"seen[:] = True; return {OUT}", "local"),
        "it is right for attention without the mask local",
    ),
    "nan_before_the_first_key": (
        TALL,
        plain("seen = triangle(q, k, causal, causal_align)", f"return {OUT}", head=WITH_CORNER),
        NAN,
    ),
    "mean_before_the_first_key": (
        TALL,
        plain(
            "seen = triangle(q, k, causal, causal_align)",
            "seen[~seen.any(-1)] = True",
            f"return {OUT}",
            head=WITH_CORNER,
        ),
        ZERO,
    ),
    "only_rows_with_keys": (
        TALL,
        plain(
            "seen = triangle(q, k, causal, causal_align)[4:]",
            "q = q[:, :, 4:]",
            f"return {OUT}",
            head=WITH_CORNER,
        ),
        "output of shape [1, 4, 8, 8]; wanted [1, 4, 12, 8]",
    ),
}
RIGHT = {
    "as_the_textbook": (SELF, plain(f"return {OUT}")),
    "in_float64": (
        SELF,
        plain("q, k, v = (x.double() for x in (q, k, v))", f"return {OUT}.float()"),
    ),
    "by_torch": (
        SELF,
        plain("return sdpa(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)"),
    ),
    "head_by_head": (
        SELF,
        plain(
            "k, v = repeated(q, k), repeated(q, v)",
            "parts = zip(*(x.split(1, 1) for x in (q, k, v)))",
            "return torch.cat([textbook(*part, seen, scale) for part in parts], 1)",
        ),
    ),
    "as_it_lies_in_a_layer": (
        SELF,
        plain(f"return {OUT}.transpose(1, 2).contiguous().transpose(1, 2)"),
    ),
    "takes_the_corner": (
        CHUNK,
        plain("seen = triangle(q, k, causal, causal_align)", f"return {OUT}", head=WITH_CORNER),
    ),
    "has_the_corner_by_itself": (
        CHUNK,
        plain("seen = triangle(q, k, causal, 'bottom_right')", f"return {OUT}"),
    ),
    "zeros_without_keys": (MASKS, prepared(f"return {OUT}.nan_to_num(0.0)", "random")),
    "leaves_rows_without_keys_to_attnbench": (
        MASKS,
        prepared(f"return {OUT}", "random", ", fills=True"),
    ),
    "window_as_asked": (
        MASKS,
        prepared(f"seen = distance.abs() <= problem.window; return {OUT}", "local"),
    ),
    "zeros_before_the_first_key": (
        TALL,
        plain(
            "seen = triangle(q, k, causal, causal_align)",
            f"return {OUT}.nan_to_num(0.0)",
            head=WITH_CORNER,
        ),
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """The row of each function, in the last problem that it was asked."""
    folder = tmp_path_factory.mktemp("wrong")
    by_name: dict[str, dict[str, object]] = {}
    files = {name: (of, text) for name, (of, text, _) in WRONG.items()} | RIGHT
    for number, scenario in enumerate((SELF, CHUNK, TALL, MASKS)):
        names = [name for name, (of, _) in files.items() if of == scenario]
        backends = folder / f"backends{number}"
        backends.mkdir()
        for name in names:
            (backends / f"{name}.py").write_text(TEXTBOOK + files[name][1])
        file, runs = folder / f"of{number}.yaml", folder / f"runs{number}"
        file.write_text(
            f"name: of{number}\nquestion: Which are right?\nbackends: [{', '.join(names)}]\n"
            f"device: cpu\n{scenario}\nmeasure: [latency]\n{QUICK}\n"
        )
        run_attnbench("run", file, "--runs", runs, env={"ATTNBENCH_BACKENDS": str(backends)})
        # One query is no chunk, and a file computes one of the masks.
        asked = [
            row
            for row in rows(only_run(runs))
            if row["seq_len"] > 1 and row["status"] != "unsupported"
        ]
        assert sorted(names) == sorted(row["backend"] for row in asked)
        by_name |= {row["backend"]: row for row in asked}
        if scenario == CHUNK:
            single = [row for row in rows(only_run(runs)) if row["seq_len"] == 1]
            by_name |= {f"{row['backend']} of one query": row for row in single}
    return by_name


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_is_convicted_by_its_own_sentence(
    found: dict[str, dict[str, object]], name: str
) -> None:
    row = found[name]
    assert WRONG[name][2] in str(row["reason"])
    assert row["status"] == "incorrect"
    assert not row.get("latency_ms")


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_stays_right(found: dict[str, dict[str, object]], name: str) -> None:
    assert (found[name]["status"], found[name]["reason"]) == ("ok", "")


def test_a_row_says_that_attnbench_filled_rows(found: dict[str, dict[str, object]]) -> None:
    filled = found["leaves_rows_without_keys_to_attnbench"]["configuration"]
    assert filled == {"note": "rows without keys are filled by attnbench"}
    assert found["zeros_without_keys"].get("configuration") is None


def test_one_query_at_the_last_key_needs_no_corner(found: dict[str, dict[str, object]]) -> None:
    assert found["wrong_corner of one query"]["status"] == "ok"
    assert found["off_by_one_from_the_right of one query"]["status"] == "incorrect"


def test_there_are_as_many_as_were_counted() -> None:
    assert (len(WRONG), len(RIGHT)) >= (39, 11)
