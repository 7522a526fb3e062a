"""reports/sections/kernel_explained.py: how the kernel works, by the numbers of its audit."""

import re
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from attnbench.harness.rows.record import Status
from attnbench.reports.elements import Block, LaneChart, Table, Text, TileMap
from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from attnbench.reports.sections import kernel_explained
from tests.reports.fake_kernels import plan, row, three_gpus, write_audit
from tests.reports.fake_steps import forward, grad, in_gluon, planned
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import (
    NO_VALUE,
    blocks_of,
    markdown_of,
    page_of,
    section_of,
    sentences,
    summary_of,
    tables_of,
    text_of,
    write_page,
)

NAME = "kernel_explained"
FIELDS = (
    *("thread_register_count", "allocated_register_count", "sm_register_count", "block_limits"),
    *("block_shared_bytes", "allocated_shared_bytes", "sm_shared_bytes", "sm_block_count"),
    *("block_warp_count", "loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles"),
    *("loop_overlaps", "limited_by", "instructions", "architecture", "triton", "ptxas"),
)


def audit(parent: Path, *rows: dict[str, Any]) -> Path:
    known = ("case", "compute_capability", "kernel", "dtype", "d_k", "d_v", "causal", "masked")
    names = (*known, "tf32", "config", "rank")
    return write_audit(parent, [{name: one[name] for name in names} for one in rows], list(rows))


def explained(parent: Path, *rows: dict[str, Any]) -> list[Block]:
    return blocks_of(kernel_explained, audit(parent, *rows))


def lanes_of(blocks: list[Block]) -> LaneChart:
    (found,) = (block for block in blocks if isinstance(block, LaneChart))
    return found


def tiles_of(blocks: list[Block]) -> TileMap:
    (found,) = (block for block in blocks if isinstance(block, TileMap))
    return found


def test_tiles_stand_in_each_memory_with_their_bytes(tmp_path: Path) -> None:
    tiles = tiles_of(explained(tmp_path, forward(64), forward(128)))
    assert tiles.title == "A block holds 128 queries and loads 128 keys and values per step"
    narrow, wide = tiles.panels
    registers, shared = wide.stores
    assert {piece.label: piece.size / 1024 for piece in registers.pieces} == {
        "O": 64,
        "S": 64,
        "other values": 128,
    }
    assert "".join(piece.label for piece in shared.pieces) == "QKVKVother"
    assert "".join(piece.label for piece in narrow.stores[1].pieces) == "QKVKVKVother"
    assert registers.note == "256 KiB of 256 KiB, 255 per thread: 1 block fits"
    for store in (*narrow.stores, *wide.stores):
        assert sum(piece.size for piece in store.pieces) <= store.capacity
    assert ("128", "registers", "O", "64 KiB", "256 KiB") in tiles.table.rows
    assert "S 64 KiB" in tiles.description


def test_every_resident_block_has_its_part(tmp_path: Path) -> None:
    small = forward(64, thread_register_count=120, block_shared_bytes=65_536)
    (panel,) = tiles_of(explained(tmp_path, small)).panels
    assert [{piece.block for piece in store.pieces} for store in panel.stores] == [{0, 1}] * 2
    assert "K" in {piece.label for piece in panel.stores[1].pieces}


def test_sums_are_in_tensor_memory_where_there_is_one(tmp_path: Path) -> None:
    blocks = explained(tmp_path, row(plan("10.0")))
    (panel,) = tiles_of(blocks).panels
    assert [store.label for store in panel.stores] == [
        "registers",
        "shared memory",
        "tensor memory",
    ]
    labels = [{piece.label for piece in store.pieces} for store in panel.stores]
    assert "O" not in labels[0]
    assert {"O", "S"} <= labels[2]


def test_one_block_leaves_the_tensor_cores_idle_during_its_softmax(tmp_path: Path) -> None:
    chart = lanes_of(explained(tmp_path, forward(128)))
    (panel,) = chart.panels
    block, tensor, exponentials, *buffers = panel.lanes
    assert [lane.label for lane in buffers] == ["K, V buffer 1", "K, V buffer 2"]
    first = [span for span in block.spans if 0 <= span.start < 3162]
    assert [span.label for span in first] == ["QKᵀ", "softmax", "PV"]
    assert [span.end - span.start for span in first] == [1024, 1114, 1024]
    assert first[0].end == first[1].start
    assert (tensor.note, exponentials.note) == ("65 %", "33 %")
    softmax = first[1]
    assert all(
        span.end <= softmax.start + 1 or span.start >= softmax.end - 1 for span in tensor.spans
    )
    assert chart.end == 2 * 3162
    assert (
        "in a step of 3,162 cycles, the block has 2,048 cycles of matrix products, then 1,114"
        in (chart.description)
    )


def test_a_buffer_is_loaded_between_the_steps_that_use_it(tmp_path: Path) -> None:
    chart = lanes_of(explained(tmp_path, forward(64)))
    buffers = [lane for lane in chart.panels[0].lanes if lane.label.startswith("K, V")]
    assert len(buffers) == 3
    for lane in buffers:
        ordered = sorted(lane.spans, key=lambda span: span.start)
        assert {span.look for span in ordered[::2]} == {"rest"}
        assert {span.look for span in ordered[1::2]} == {"load"}
        for before, after in pairwise(ordered):
            assert before.end == pytest.approx(after.start)


def test_units_are_never_used_by_two_teams_at_once(tmp_path: Path) -> None:
    small = forward(64, thread_register_count=120, block_shared_bytes=65_536)
    rows = (small, in_gluon(128))
    for number, found in enumerate(rows):
        chart = lanes_of(explained(tmp_path / str(number), found))
        for lane in chart.panels[0].lanes:
            if lane.label in ("tensor cores", "exponentials"):
                ordered = sorted(lane.spans, key=lambda span: span.start)
                for before, after in pairwise(ordered):
                    assert before.end <= after.start + 1e-6, lane.label


def test_a_specialized_kernel_has_a_producer_and_consumers_in_turn(tmp_path: Path) -> None:
    blocks = explained(tmp_path, forward(128), in_gluon(128))
    chart = lanes_of(blocks)
    first, second = chart.panels
    assert first.heading == "Heads 128 wide: one block"
    assert second.heading == "Heads 128 wide: a producer and 2 consumers"
    assert [lane.label for lane in second.lanes][:3] == ["producer", "consumer 1", "consumer 2"]
    one, other = (
        next(span for span in lane.spans if span.label == "QKᵀ" and span.start >= 0)
        for lane in second.lanes[1:3]
    )
    assert other.start - one.start == 1024  # half a period
    said = " ".join(sentences(blocks))
    assert "the producer, only starts copies" in said
    assert "9.0 Hopper, warp-specialized, heads 128 wide" in said
    alone = " ".join(sentences(explained(tmp_path / "alone", forward(128))))
    assert "producer" not in alone


def test_products_beside_the_softmax_have_a_lane_of_their_own(tmp_path: Path) -> None:
    chart = lanes_of(explained(tmp_path, forward(128, loop_overlaps=True)))
    block, softmax, tensor, *_ = chart.panels[0].lanes
    assert {span.look for span in block.spans} == {"product"}
    assert {span.look for span in softmax.spans} == {"softmax"}
    assert tensor.note == "100 %"


def backward_of(blocks: list[Block]) -> LaneChart:
    """The second chart, or the only one of a run without forward kernels."""
    return [block for block in blocks if isinstance(block, LaneChart)][-1]


def test_backward_kernels_are_drawn_in_the_order_of_their_code(tmp_path: Path) -> None:
    grads = [grad(kernel, width) for width in (64, 128) for kernel in ("grad_q", "grad_kv")]
    blocks = explained(tmp_path, forward(64), forward(128), *grads)
    chart = backward_of(blocks)
    assert [panel.heading for panel in chart.panels] == [
        "dq, heads 64 wide: one block",
        "dk and dv, heads 64 wide: one block",
        "dq, heads 128 wide: one block",
        "dk and dv, heads 128 wide: one block",
    ]
    block, tensor, exponentials, *buffers = chart.panels[1].lanes
    first = [span for span in block.spans if 0 <= span.start < 2 * (512 + 427) - 1]
    assert [span.label for span in first] == ["KQᵀ", "P", "Pᵀ dO, V dOᵀ", "dS", "dSᵀ Q", ""]
    assert [span.end - span.start for span in first[::2]] == [256, 512, 256]
    assert (tensor.note, exponentials.note) == ("55 %", "27 %")
    assert [lane.label for lane in buffers] == ["Q, dO buffer 1", "Q, dO buffer 2"]
    assert chart.panels[0].lanes[3].label == "K, V buffer 1"
    assert chart.title == (
        "Backward keeps tensor cores busy at most 60 % (dq) and 55 % (dk and dv) for heads 64 wide,"
        " 75 % (dq) and 71 % (dk and dv) for heads 128 wide"
    )
    assert "KQᵀ 256, then P 600, then Pᵀ dO, V dOᵀ 512, then dS 180" in chart.description
    said = " ".join(sentences(blocks))
    assert "Backward is two kernels" in said
    assert "9.0 Hopper, grad_kv, heads 64 wide: the tensor cores are busy for at most 55 %" in said


def test_a_buffer_of_a_backward_kernel_is_loaded_between_the_steps_that_use_it(
    tmp_path: Path,
) -> None:
    chart = backward_of(explained(tmp_path, forward(64), grad("grad_kv", 64)))
    for lane in chart.panels[0].lanes[3:]:
        assert [span.look for span in lane.spans] == ["rest", "load"] * (len(lane.spans) // 2)
        for before, after in pairwise(lane.spans):
            assert before.end == pytest.approx(after.start)


def test_backward_is_drawn_without_forward_and_not_without_its_order(tmp_path: Path) -> None:
    alone = explained(tmp_path / "alone", grad("grad_q", 64))
    assert backward_of(alone).panels[0].heading == "dq, heads 64 wide: one block"
    older = grad("grad_q", 64)
    del older["loop_parts"]
    blocks = explained(tmp_path / "older", forward(64), older)
    assert backward_of(blocks).title.startswith("Tensor cores")
    assert not any("Backward is two kernels" in text for text in sentences(blocks))


def test_the_table_has_every_kernel_and_what_another_block_would_change(tmp_path: Path) -> None:
    backward = row(plan("9.0", "grad_q", causal=False))
    (table,) = tables_of(explained(tmp_path, forward(64), forward(128), backward))
    assert table.rows == (
        *(
            (
                *("forward, 64", "128 × 128, 8 warps, 3 stages", "512", "528", "478"),
                *("191", "1: registers", "49 %, turns", "97 %"),
            ),
            (
                *("forward, 128", "128 × 128, 8 warps, 2 stages", "1,024", "528", "557"),
                *("255", "1: registers and shared memory", "65 %, turns", "100 %"),
            ),
        ),
        (
            *("grad_q, 128", "128 × 64, 8 warps, 2 stages", "", "", "", "205", "1: registers"),
            *("", ""),
        ),
    )


def test_a_gpu_without_cycles_has_tiles_and_the_reason(tmp_path: Path) -> None:
    run = three_gpus(tmp_path)
    blocks = blocks_of(kernel_explained, run)
    assert tiles_of(blocks).panels
    assert not [block for block in blocks if isinstance(block, LaneChart)]
    said = sentences(blocks)
    for gpu, why in (
        ("8.0 Ampere", "its matrix products are HMMA"),
        ("10.0 Blackwell", "its matrix products are UTCHMMA"),
        ("9.0 Hopper", "the audit was made before it counted cycles, or could not; audit again"),
    ):
        assert any(
            text.startswith(f"No time is drawn for {gpu}: ") and why in text for text in said
        )


def test_the_gpu_with_cycles_is_drawn(tmp_path: Path) -> None:
    blocks = explained(tmp_path, row(plan("8.0")), forward(64))
    assert "for 9.0 Hopper" in tiles_of(blocks).caption
    assert any(text.startswith("No time is drawn for 8.0 Ampere") for text in sentences(blocks))
    (table,) = tables_of(blocks)
    assert [line[0] for line in table.rows] == ["8.0 Ampere", "9.0 Hopper"]


def test_without_a_forward_kernel_the_section_has_no_data(tmp_path: Path) -> None:
    run = audit(tmp_path, row(plan("9.0", "grad_q")))
    (lacking,) = blocks_of(kernel_explained, run)
    assert isinstance(lacking, Text)
    assert lacking.kind == "note"
    assert "Not in this run: How the kernel works" in text_of(page_of(run))


def test_a_kernel_that_failed_is_not_drawn(tmp_path: Path) -> None:
    failed = row(planned(64), Status.ERROR, "CompilationError: a bug")
    blocks = explained(tmp_path, failed)
    assert not [block for block in blocks if isinstance(block, TileMap | LaneChart)]
    assert any("it was not compiled (CompilationError: a bug)" in one for one in sentences(blocks))


@pytest.mark.parametrize("value", [None, 0, 1 << 40])
@pytest.mark.parametrize("name", FIELDS)
def test_an_incomplete_row_is_shown_without_what_it_lacks(
    tmp_path: Path, name: str, value: Any
) -> None:
    lists = ("block_limits", "limited_by", "instructions", "architecture", "triton", "ptxas")
    if name in lists and value is not None:
        value = {} if name in ("block_limits", "instructions") else None
    if name == "loop_overlaps":
        value = None
    run = audit(tmp_path, forward(64) | {name: value}, forward(128))
    shown = text_of(section_of(page_of(run), NAME))
    assert not re.search(NO_VALUE, shown)
    assert "Heads 128 wide" in shown


def test_hostile_names_are_text(tmp_path: Path) -> None:
    named = forward(64, plan=planned(64, **{HOSTILE: HOSTILE})) | {
        "architecture": HOSTILE,
        "triton": HOSTILE,
        "limited_by": [HOSTILE],
    }
    run = audit(tmp_path, named)
    page = page_of(run)
    assert "Heads 64 wide" in page
    assert "<img" not in page
    assert "<img" not in markdown_of(run)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)


def test_markdown_the_terminal_and_the_summary_have_sentences_and_a_table(tmp_path: Path) -> None:
    run = audit(tmp_path, forward(64), forward(128))
    text = markdown_of(run)
    assert "<details><summary>How the kernel works: A block holds 128 queries" in text
    assert "| forward, 128 | 128 × 128, 8 warps, 2 stages |" in text
    assert any(line.startswith("9.0 Hopper, heads 128 wide: ") for line in summary_of(run))
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in terminal.render(open_report([run]), (NAME,)):
        console.print(part)
    assert "Tensor cores are busy at most 49 % and 65 %" in out.getvalue()
    assert "1: registers and shared memory" in out.getvalue()
    assert not re.search(NO_VALUE, text + out.getvalue())


@pytest.mark.long
def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    run = audit(tmp_path, forward(64), in_gluon(128))
    assert section_of(page_of(run), NAME) == section_of(page_of(run), NAME)
    (tiles, lanes) = re.findall(r'<figure class="own">', section_of(page_of(run), NAME))
    assert tiles == lanes


@pytest.mark.parametrize(
    ("scheme", "width", "look"),
    [
        ("light", 1280, "wide"),
        ("dark", 1280, "wide"),
        ("light", 768, "wide"),
        ("light", 375, "narrow"),
        ("dark", 375, "narrow"),
    ],
)
def test_its_pictures_are_accessible_and_fit_the_page(
    visit: Any, tmp_path: Path, scheme: str, width: int, look: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    )
    run = audit(tmp_path, forward(64), forward(128), in_gluon(128))
    page = visit(write_page(run), width, color_scheme=scheme, bypass_csp=True)
    page.add_style_tag(content="section { content-visibility: visible !important }")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    shown = page.locator(f"#{NAME} svg[role=img]").filter(visible=True)
    assert shown.count() == 2
    for place in range(2):
        assert look in shown.nth(place).get_attribute("class").split()
        box = shown.nth(place).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    sizes = page.evaluate(
        f"[...document.querySelectorAll('#{NAME} svg.{look} text')].map(at =>"
        " parseFloat(getComputedStyle(at).fontSize) * at.getScreenCTM().a)"
    )
    assert min(sizes) >= 12
    found = axe.Axe().run(page, context=f"#{NAME}")
    assert found.violations_count == 0, found.generate_report()


def test_a_printed_page_has_the_wide_pictures(visit: Any, tmp_path: Path) -> None:
    page = visit(write_page(audit(tmp_path, forward(64))), 1280)
    page.emulate_media(media="print")
    shown = page.locator(f"#{NAME} svg[role=img]").filter(visible=True)
    assert [one.get_attribute("class") for one in shown.all()] == [
        "pic tiles wide",
        "pic lanes wide",
    ]


def test_one_gpu_has_no_column_in_the_table(tmp_path: Path) -> None:
    tables = [one for one in explained(tmp_path, row(plan("8.0"))) if isinstance(one, Table)]
    assert tables[0].columns[0] == "kernel, head"
