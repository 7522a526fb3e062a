"""Published cells: each found in its source, and held against our formulas."""

import csv
import json
import re
from dataclasses import replace
from hashlib import sha256
from math import sqrt

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from attnbench.harness.cases.costs import minimal_bytes
from attnbench.harness.files.errors import BadInput
from attnbench.harness.measure.peak_memory import peak
from attnbench.harness.published.original import again
from attnbench.harness.published.tables import (
    FOLDER,
    MIB,
    MOST_BYTES,
    achieved,
    flash_bytes,
    flops,
    impossible,
    longest,
    names,
    read,
    refuted,
    sheet_share,
    standard_bytes,
    wrong_peak,
)
from attnbench.impls.problem import Problem
from tests.conftest import ROOT

PAPER = "flashattention-a100"
CUDNN = [name for name in names() if name.startswith(("cudnn", "sdpa"))]
CELLS = [(name, cell) for name in names() for cell in read(name).cells]
GB = 1e9


def cells(table):
    return [one for one in read(PAPER).cells if one.table == f"Table {table}"]


# ---- where each cell comes from ------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_a_file_names_its_source_licence_and_device(name):
    about = read(name).about
    assert {"title", "source", "url", "date", "licence", "device"} <= about.keys()
    if name in CUDNN:
        licence, holder = about["licence"].split(", ")[:2]
        assert holder.startswith("Copyright (c) 2020")
        assert (FOLDER / f"LICENSE-{licence}.txt").is_file()
        commit, path = about["source"].split(", ")[1:]
        assert about["url"].endswith(f"{commit.removeprefix('commit ')}/{path}")
    assert name in (FOLDER / "README.md").read_text()


def test_every_cell_is_found_by_source_table_row_and_column():
    places = [(name, one.table, one.row, one.column) for name, one in CELLS]
    assert len(places) == len(set(places)) > 1600
    assert all(table and row > 0 and column for _, table, row, column in places)


def test_a_printed_table_is_whole_and_a_cell_is_what_its_file_has():
    text = (FOLDER / f"{PAPER}.csv").read_text().splitlines()
    rows = {
        (row["table"], row["row"]): row for row in csv.DictReader(x for x in text if x[0] != "#")
    }
    assert {table for table, _ in rows} == set(map(str, range(9, 22)))
    assert len(rows) == 13 * 12
    for cell in read(PAPER).cells:
        row = rows[cell.table.removeprefix("Table "), str(cell.row)]
        printed = row[cell.column]
        value = cell.ms if row["unit"] == "ms" else (cell.peak_bytes or 0) / MIB
        assert (cell.status == "ok") == (printed != "-")
        assert cell.status != "ok" or value == float(printed)
        assert row["method"] == cell.method
        assert cell.shape.seq_len == int(cell.column)


def test_no_number_where_the_method_does_not_run():
    """Megatron takes no more than 2 048 tokens, which is no lack of memory."""
    status = {one.column: one.status for one in cells(9) if one.method == "Megatron"}
    assert (status["2048"], status["4096"]) == ("ok", "unsupported")
    status = {one.column: one.status for one in cells(9) if one.method == "PyTorch Attention"}
    assert (status["4096"], status["8192"]) == ("ok", "oom")


# ---- our formulas against them -------------------------------------------------------------------


@pytest.mark.parametrize("name", CUDNN)
def test_flops_of_cudnn_frontend_are_ours_with_the_scores_computed_again(name):
    """Printed: ms with three digits after the point, TFLOP/s without or with three."""
    for cell in read(name).cells:
        if cell.reason:
            continue
        digits = 1e-3 if cell.shape.seq_len == 1 else 1.0
        printed = cell.tflops / achieved(cell, "2.5") - 1
        masked = (
            1 / cell.shape.kv_seq_len
        )  # it counts N * N / 2 of a causal mask, we the diagonal too
        rounded = digits / cell.tflops + 1e-3 / cell.ms / 2 + masked
        assert abs(printed) < rounded
        if cell.shape.passes == "backward":
            more = cell.tflops / achieved(cell, "2") - 1
            assert more == pytest.approx(0.25, abs=max(0.01, 1.25 * rounded))


def test_flops_and_bytes_of_flashinfer_are_ours():
    """It counts N * N / 2 of a causal prompt, we the diagonal too."""
    for cell in read("flashinfer-b200").cells:
        decode = "q1s" in cell.shape.lengths
        assert cell.tflops == pytest.approx(achieved(cell, "2"), rel=1e-9 if decode else 1e-2)
        assert decode == (sheet_share(cell, "NVIDIA B200", "2") is None)
        assert cell.gb_per_s == pytest.approx(minimal_bytes(cell.shape) / cell.ms * 1e3 / GB)


@pytest.mark.parametrize("name", [one for one in CUDNN if "decode" in one])
def test_bytes_of_a_decode_step_are_ours(name):
    for cell in read(name).cells:
        ours = minimal_bytes(cell.shape) / cell.ms * 1e3 / GB
        assert cell.gb_per_s == pytest.approx(ours, rel=1e-4)


def test_flops_of_heads_of_two_widths_count_the_scores_again_by_the_width_of_keys():
    """DeepSeek-V3: q and k 192 wide, v 128. Three products of 192, two of 128, over one of each."""
    wide = Problem(batch=1, seq_len=64, d_model=192, heads=1, d_k=192, d_v=128, passes="backward")
    forward = flops(replace(wide, passes="forward"))
    assert flops(wide, "2.5") / forward == pytest.approx((3 * 192 + 2 * 128) / (192 + 128))
    assert flops(wide) == 2 * forward


@pytest.mark.parametrize(
    ("method", "formula", "from_n"),
    [("PyTorch Attention", standard_bytes, 128), ("FlashAttention", flash_bytes, 1024)],
)
def test_memory_of_the_paper_follows_its_formula_to_the_mebibyte(method, formula, from_n):
    known = [one for one in cells(21) if one.method == method and one.peak_bytes]
    exact = [one for one in known if one.shape.seq_len >= from_n]
    assert len(exact) >= 6
    assert [one.peak_bytes for one in exact] == [formula(one.shape) for one in exact]
    assert all(one.peak_bytes <= formula(one.shape) for one in known)


def test_kv_bytes_per_token_are_what_vllm_logged():
    """alvarobartt/hf-mem#60: gpt-oss-120b, 36 layers of 8 heads 64 wide in bf16; vLLM logged
    5.38 GiB for 78 384 tokens.
    """
    step = Problem(
        batch=1, seq_len=1, kv_seq_len=4096, d_model=4096, heads=64, kv_heads=8, dtype="bf16"
    )
    longer = replace(step, kv_seq_len=4097)
    per_token = 36 * (minimal_bytes(longer) - minimal_bytes(step))
    assert round(78_384 * per_token / 2**30, 2) == 5.38


# ---- such code, run here -------------------------------------------------------------------------


def textbook(q, k, v, dropout, mask):
    """Attention as textbooks have it, with dropout and a mask. [batch, N, heads, width] each."""
    b, n, h, d = q.shape
    scores = torch.empty(b * h, n, n, dtype=q.dtype)
    rows = q.transpose(1, 2).reshape(b * h, n, d)
    columns = k.permute(0, 2, 3, 1).reshape(b * h, d, n)
    scores = torch.baddbmm(scores, rows, columns, beta=0, alpha=1 / sqrt(d)).view(b, h, n, n)
    if mask is not None:
        scores.masked_fill_(mask, -torch.inf)
    weights = torch.softmax(scores, -1)
    return torch.einsum("bhts,bshd->bthd", F.dropout(weights, dropout), v)


def needed_bytes(problem, *, dropout, masked):
    """Peak of that code, forward and backward, with inputs and the output's gradient."""
    size = (problem.batch, problem.seq_len, problem.heads, problem.d_k)
    inputs = [torch.randn(size, dtype=torch.float16, requires_grad=True) for _ in range(3)]
    gradient = torch.randn(size, dtype=torch.float16)
    mask = torch.zeros(problem.batch, 1, 1, problem.seq_len, dtype=torch.bool) if masked else None

    def call(_):
        return torch.autograd.grad(textbook(*inputs, dropout, mask), inputs, gradient)

    return 4 * gradient.nbytes + peak(lambda: None, call, torch.device("cpu")).peak_bytes


SMALL = Problem(batch=2, seq_len=256, d_model=256, heads=4, dtype="fp16", passes="forward+backward")


@pytest.mark.parametrize("n", [128, 256, 512])
@pytest.mark.parametrize("masked", [False, True])
def test_textbook_attention_with_dropout_needs_what_the_paper_measured(n, masked):
    problem = replace(SMALL, seq_len=n, kv_seq_len=n)
    assert needed_bytes(problem, dropout=0.1, masked=masked) == standard_bytes(problem)


def test_the_longest_length_is_the_last_that_fits():
    problem = cells(21)[0].shape
    n = longest(standard_bytes, problem, 40 * 2**30)
    fits, not_any_more = (replace(problem, seq_len=at, kv_seq_len=at) for at in (n, n + 1))
    assert standard_bytes(fits) <= 40 * 2**30 < standard_bytes(not_any_more)
    assert longest(standard_bytes, problem, 0) == 0


# ---- above what a device can do ------------------------------------------------------------------


def test_what_no_device_can_do_is_found_and_nothing_else():
    found = {(source.name, cell.row) for source, cell, _ in refuted()}
    threads = {("threads", cell.row) for cell in read("threads").cells}
    above = {("cudnn-a100-decode", one.row) for one in read("cudnn-a100-decode").cells
             if one.share_percent > 100}  # fmt: skip
    assert len(above) == 10
    assert found == threads | above


def test_a_time_below_the_devices_limit_is_refuted():
    cell = read("cudnn-h200").cells[0]
    assert impossible(cell, "NVIDIA H200") == ""
    assert "impossible" in impossible(replace(cell, ms=cell.ms / 2), "NVIDIA H200")
    assert impossible(replace(cell, ms=cell.ms / 2), "a GPU without a data sheet") == ""


def test_a_share_above_all_names_both_bandwidths():
    cell = next(one for one in read("cudnn-a100-decode").cells if one.share_percent > 111)
    assert wrong_peak(cell, "NVIDIA A100 80GB PCIe") == (
        "111 % of a bandwidth of 1555 GB/s; the sheet of this board says 1935"
    )


def test_mfu_is_of_the_data_sheet():
    cell = read("cudnn-h200").cells[0]
    assert sheet_share(cell, "NVIDIA H200", "2") == pytest.approx(619 / 989.4, rel=2e-3)


# ---- files of others -----------------------------------------------------------------------------


def test_an_original_file_is_read_and_what_is_no_problem_of_ours_is_counted(tmp_path):
    fields = "backend,data_type,attn_mask,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,"
    fields += "head_dim_qk,head_dim_vo,profile_pass,deterministic_bwd,time_ms,tflops,success,"
    fields += "error_message,gpu_name"
    shape = "1,4096,4096,8,8,64,64"
    lines = [
        fields,
        f"math,bfloat16,no_mask,{shape},fwd,False,1.5,20,True,,NVIDIA B200",
        f"math,bfloat16,no_mask,{shape},fwd,False,,,False,CUDA out of memory,NVIDIA B200",
        f"cudnn,fp8,no_mask,{shape},fwd,False,1,1,True,,NVIDIA B200",
    ]
    path = tmp_path / "theirs.csv"
    path.write_text("\n".join(lines))
    source = read(str(path))
    assert [one.status for one in source.cells] == ["ok", "oom"]
    assert (source.device, source.left_out, source.cells[1].row) == ("NVIDIA B200", 1, 3)


TRAINING = (
    "backend,data_type,profile_pass,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,"
    "head_dim_qk,head_dim_vo,time_ms,tflops"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", ":1:1: no table that is known; wanted a column masking or forward_time"),
        ("# batch: 1\nmasking,method,dropout,128\nno,X,no,fast\n", ":3:1: "),
        *(
            (
                f"{TRAINING}\ncudnn,bfloat16,fwd,1,8,8,1,1,8,8,{ms},1\n",
                ":2:1: .* is no positive number",
            )
            for ms in ("0", "nan", "inf", "-1")
        ),
        ("x" * (MOST_BYTES + 1), "larger than 4 MiB; wanted a CSV file"),
    ],
    ids=map(str, range(7)),
)
def test_a_file_that_is_no_table_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=said):
        read(str(path))


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(BadInput, match="no published table; did you mean cudnn-h200"):
        read("published:cudnn-h20")


def test_the_paper_of_the_wall_is_the_one_that_the_scenario_measures():
    p = cells(21)[0].shape
    text = (ROOT / "scenarios" / "published.yaml").read_text()
    assert f"batch: {p.batch}" in text
    assert f"heads: {p.heads}" in text
    assert f"d_model: {p.d_model}" in text
    assert f"dtype: {p.dtype}" in text
    assert json.dumps(PAPER).strip('"') in text


def test_the_scenario_measures_shapes_of_both_training_tables():
    text = (ROOT / "scenarios" / "published.yaml").read_text()
    lines = re.findall(
        r"^  - {batch: (\d+), seq_len: (\d+)k, .* heads: (\d+),.*causal: (\w+)", text, re.M
    )
    asked = {(int(b), int(n) * 1024, int(h), causal == "true") for b, n, h, causal in lines}
    shapes = {
        name: {
            (p.batch, p.seq_len, p.heads, p.causal) for p in (one.shape for one in read(name).cells)
        }
        for name in ("cudnn-h200", "sdpa-b200")
    }
    assert asked <= shapes["cudnn-h200"] | shapes["sdpa-b200"]
    assert all(asked & of for of in shapes.values())


# ---- ours from an original -----------------------------------------------------------------------

ORIGINAL = """x,backend,data_type,attn_mask,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,\
head_dim_qk,head_dim_vo,profile_pass,deterministic_bwd,time_ms,tflops,max_diff,success,gpu_name
x,cudnn,bfloat16,top_left,2,64,64,8,2,16,16,fwd,False,1.500,7.000,0.0,True,NVIDIA X
x,cudnn,fp8,top_left,2,64,64,8,2,16,16,fwd,False,1.000,9.000,0.0,True,NVIDIA X
x,other,bfloat16,top_left,2,64,64,8,2,16,16,fwd,False,1.250,8.000,0.0,True,NVIDIA X
x,cudnn,bfloat16,no_mask,2,64,64,8,2,16,16,bwd,False,2.250,8.125,0.0,True,NVIDIA X
"""
OURS = "# title: x\n# device: NVIDIA X\n# methods: cudnn, flash\n"


def test_ours_is_made_from_an_original():
    made = again(ORIGINAL.encode(), OURS)
    head, _, table = made.partition("row,")
    assert head == f"{OURS}# sha256: {sha256(ORIGINAL.encode()).hexdigest()}\n"
    assert table.splitlines() == [
        "backend,data_type,attn_mask,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,"
        "head_dim_qk,head_dim_vo,profile_pass,time_ms,tflops",
        "2,cudnn,bfloat16,top_left,2,64,64,8,2,16,16,fwd,1.500,7",
        "5,cudnn,bfloat16,no_mask,2,64,64,8,2,16,16,bwd,2.250,8.125",
    ]
    assert again(ORIGINAL.encode(), made) == made


@pytest.mark.parametrize(
    ("original", "ours", "said"),
    [
        (ORIGINAL, f"{OURS}# sha256: 0\n", "another text than ours is from"),
        (ORIGINAL, "# device: NVIDIA X\n", "no line `# methods: `"),
        (ORIGINAL, OURS.replace("NVIDIA X", "NVIDIA Y"), "row 2 is of NVIDIA X; wanted NVIDIA Y"),
        ("a,b\n1,2\n", OURS, "no results file that is known"),
    ],
)
def test_an_original_of_something_else_is_refused(original, ours, said):
    with pytest.raises(BadInput, match=said):
        again(original.encode(), ours)


@pytest.mark.parametrize("name", CUDNN)
def test_a_file_has_the_form_that_is_made(name):
    """Taken as if it were an original itself: the same columns, rows and digits."""
    lines = (FOLDER / f"{name}.csv").read_text().splitlines(keepends=True)
    head = [line for line in lines if line[0] == "#" and not line.startswith("# sha256")]
    table = "".join(line for line in lines if line[0] != "#")
    made = again(table.encode(), "".join(head)).splitlines(keepends=True)
    kept = [line.partition(",")[2] for line in made if line[0] != "#"]
    assert kept == [line.partition(",")[2] for line in lines if line[0] != "#"]
