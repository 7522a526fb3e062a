"""reports/sections/gpu_anatomy.py: audited kernels, explained with their own numbers."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from attnbench.harness.rows.record import Status
from attnbench.reports.analysis.audited_kernels import EXAMPLE_FIELDS
from attnbench.reports.pages import terminal
from attnbench.reports.pages.figures import write_figures
from attnbench.reports.pages.report import open_report
from tests.reports.fake_kernels import plan, row, three_gpus, write_audit
from tests.reports.fake_runs import quickstart
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import (
    NO_VALUE,
    markdown_of,
    page_of,
    section_of,
    summary_of,
    text_of,
    write_page,
)


def cells(page: str, title: str) -> list[list[str]]:
    """Of the table whose caption begins so."""
    after = page[page.index(f">{title}") :]
    rows = re.findall(r"<tr.*?</tr>", after[: after.index("</table>")], flags=re.DOTALL)
    return [[text_of(cell).strip() for cell in re.split(r"<t[hd][^>]*>", one)[1:]] for one in rows]


def test_each_gpu_has_a_sentence_first(tmp_path: Path) -> None:
    run = three_gpus(tmp_path)
    page = text_of(page_of(run))
    assert (
        "8.0 (Ampere: A100, A30): 1 of 6 kernels spill registers; an SM holds 8 of 64 warps."
        in page
    )
    assert (
        "9.0 (Hopper: H100, H200, GH200): none of 6 kernels spills registers; an SM holds 8 of 64"
        " warps." in page
    )
    assert summary_of(run)[0].startswith("8.0 (Ampere")
    assert "The plan has no case" not in page


def test_terms_are_explained_with_the_numbers_of_the_top_ranked_kernel(tmp_path: Path) -> None:
    page = page_of(three_gpus(tmp_path))
    head, *lines = cells(page, "Terms, and their values")
    assert head[2:] == ["8.0 Ampere", "9.0 Hopper", "10.0 Blackwell"]
    values = {line[0]: line[2:] for line in lines}
    assert values["SM"] == ["64 warps, 32 blocks at most"] * 3
    assert values["block"][0] == "128 × 64, 8 warps, 2 stages"
    assert values["warp"][0] == "8 in a block of 256 threads"
    assert values["registers of a thread"][0] == "205 of 255"
    # 205 x 32 = 6560, as 6656, of 8 warps
    assert values["registers of a block"][0] == "53,248 of 65,536: 1 block"
    assert values["shared memory"] == [
        "81 KiB of 164 KiB: 2 blocks",
        *["81 KiB of 228 KiB: 2 blocks"] * 2,
    ]
    assert values["tensor memory"] == ["none", "none", "256 of 512 columns: 2 blocks"]
    assert values["occupancy"][0] == "8 of 64 warps: 12.5 %"
    assert values["limited by"][0] == "registers"
    assert values["spill"] == ["nothing"] * 3
    assert values["matrix products"] == ["256 HMMA", "256 HGMMA", "256 UTCHMMA"]
    assert values["copies"][0] == "24 LDGSTS"
    assert values["exponentials"][0] == "132 of 1,474 instructions"
    assert "It does not measure speed" in text_of(page)


def test_each_kernel_has_a_figure_with_a_table_and_a_description(
    tmp_path: Path,
) -> None:
    run = three_gpus(tmp_path)
    page = page_of(run)
    assert section_of(page, "gpu_anatomy").count("<figure") == 3
    assert "Of forward an SM holds 8 of 64 warps on 8.0, 9.0 and 10.0" in text_of(page)
    assert (
        "forward kernel (bf16, heads 128 wide, causal) · Triton 3.9.0, ptxas 13.4.59 · each part is"
        " one block" in text_of(page)
    )
    assert page.count("one bar per resource of an SM") == 3
    lines = cells(section_of(page, "gpu_anatomy"), "One SM, and the resources of a block")
    assert [
        "8.0 Ampere",
        "128 × 64, 8 warps, 2 stages",
        "shared memory",
        "81 KiB",
        "164 KiB",
        "2",
    ] in lines
    assert len(lines) == 1 + 3 + 3 + 4
    drawn = re.findall(r">(\d+ × [^<]*)</text>", section_of(page, "gpu_anatomy"))
    assert drawn[:3] == ["1 × 53,248 of 65,536", "1 × 81 KiB of 164 KiB", "1 × 8 of 64"]
    assert page == page_of(run)
    files = write_figures(open_report([run]), tmp_path / "figures")
    assert {path.name for path in files} == {
        f"gpu-anatomy-{number}.{kind}" for number in (1, 2, 3) for kind in ("svg", "png")
    }


def test_every_kernel_is_in_a_table(tmp_path: Path) -> None:
    page = page_of(three_gpus(tmp_path))
    head, *lines = cells(
        page, "All 6 kernels for 8.0 (Ampere: A100, A30): Triton 3.9.0, ptxas 13.4.59"
    )
    assert len(lines) == 6
    assert dict(zip(head, lines[5], strict=True)) == {
        "kernel": "grad_kv",
        "dtype": "bf16",
        "head": "128",
        "causal": "yes",
        "configuration": "64 × 64, 8 warps, 2 stages, descriptors",
        "place in its list": "2",
        "registers": "255",
        "shared": "80 KiB",
        "spilled": "12 B stored, 8 B loaded",
        "blocks": "1",
        "warps": "8",
        "occupancy": "12.5 %",
        "limited by": "registers",
        "matrix products": "256 HMMA",
        "copies": "24 LDGSTS",
        "exponentials": "132",
        "instructions": "1,474",
        "tensor cores busy at most": "",
    }


def test_kernels_that_fail_the_audit_have_a_table_of_their_own(tmp_path: Path) -> None:
    page = page_of(three_gpus(tmp_path / "spills"))
    _, *lines = cells(page, "Kernels that fail the audit")
    kernel = (
        "grad_kv kernel (bf16, heads 128 wide, causal)",
        "64 × 64, 8 warps, 2 stages, descriptors",
        "255",
    )
    assert [tuple(line) for line in lines] == [
        ("8.0 Ampere", *kernel, "spills: 12 B stored, 8 B loaded")
    ]
    plans = [plan("9.0")]
    good = page_of(write_audit(tmp_path / "well", plans, [row(one) for one in plans]))
    assert "could not be read" not in good


def test_markdown_and_the_terminal_have_the_same(tmp_path: Path) -> None:
    run = three_gpus(tmp_path)
    text = markdown_of(run)
    assert "<details><summary>GPU anatomy: " in text
    assert "| shared memory |" in text
    assert "Memory wall" not in text
    out = StringIO()
    console = Console(file=out, width=300, highlight=False)
    for part in terminal.render(open_report([run]), (*terminal.USUAL, "gpu_anatomy")):
        console.print(part)
    assert "GPU anatomy" in out.getvalue()
    assert "8 of 64 warps:" in out.getvalue()
    assert "12.5 %" in out.getvalue()
    assert not re.search(NO_VALUE, text + out.getvalue())


@pytest.mark.long
def test_a_run_of_cases_has_no_section_and_an_audit_none_of_cases(tmp_path: Path) -> None:
    cases, audit = (
        quickstart(tmp_path / "cases", lengths=(128, 256)),
        three_gpus(tmp_path / "audit"),
    )
    assert "GPU anatomy" not in page_of(cases)
    page = page_of(audit)
    names = ["summary", "gpu_anatomy", "kernel_explained", "environment"]
    assert re.findall(r'<section id="([^"]*)"', page) == names
    both = page_of(cases, audit)
    assert {"latency", "rows", "gpu_anatomy"} <= set(re.findall(r'<section id="([^"]*)"', both))
    assert "is fastest at" in text_of(both)
    assert "1 of 6 kernels spill registers" in text_of(both)
    assert not re.search(NO_VALUE, text_of(both))


def test_failed_kernels_and_those_not_reached_are_listed(tmp_path: Path) -> None:
    plans = [plan("9.0", rank=rank) for rank in (1, 2, 4)]
    rows = [row(plans[0], Status.ERROR, "CompilationError: a bug"), row(plans[1])]
    page = page_of(write_audit(tmp_path, plans, rows))
    assert (
        "9.0 (Hopper: H100, H200, GH200): 2 of 3 kernels did not compile; none of the others spills"
        " registers" in text_of(page)
    )
    assert "error: CompilationError: a bug" in text_of(page)
    assert "not reached: planned" in text_of(page)
    assert not re.search(NO_VALUE, text_of(page))


@pytest.mark.parametrize(
    "changes",
    [
        {
            "instructions": None,
            "instruction_count": None,
            "spill_store_bytes": None,
            "spill_load_bytes": None,
        },
        {
            "instructions": None,
            "instruction_count": None,
            "spill_store_bytes": None,
            "spill_load_bytes": None,
            "thread_stack_bytes": 64,
        },
        {"thread_register_count": None, "block_shared_bytes": None, "thread_stack_bytes": None},
        {"triton": None, "ptxas": None},
        {"block_shared_bytes": 300 << 10},
        {"instructions": {}},
    ],
)
def test_what_could_not_be_read_is_left_out_and_the_rest_is_shown(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    plans = [plan("10.0"), plan("10.0", rank=2)]
    page = text_of(page_of(write_audit(tmp_path, plans, [row(one, **changes) for one in plans])))
    assert not re.search(NO_VALUE, page)
    if changes.get("thread_stack_bytes"):
        assert "64 B of stack" in page
    if changes.get("block_shared_bytes"):
        assert "2 do not fit and are skipped" in page


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {name: None}
            for name in (
                *EXAMPLE_FIELDS,
                "sm_block_count",
                "sm_warp_count",
                "instructions",
                "sm_tensor_memory_column_count",
            )
        ),
        *(
            {name: 0}
            for name in (
                "sm_most_warp_count",
                "sm_shared_bytes",
                "sm_register_count",
                "sm_tensor_memory_column_count",
            )
        ),
        {"sm_block_count": 1 << 40},
        {"block_limits": {}},
        {"limited_by": []},
        {"instructions": {"HMMA": 3}, "instruction_count": None},
    ],
)
def test_an_incomplete_row_does_not_affect_the_other_rows(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    plans = [plan("10.0", kernel) for kernel in ("forward", "grad_q")]
    page = text_of(page_of(write_audit(tmp_path, plans, [row(plans[0]) | changes, row(plans[1])])))
    assert "Of grad_q an SM holds 8 of 64 warps on 10.0" in page
    assert not re.search(NO_VALUE, page)


def test_a_gpu_that_is_not_known_has_no_occupancy(tmp_path: Path) -> None:
    plans = [plan("13.0")]
    found = row(plans[0])
    assert found["occupancy_ratio"] is found["architecture"] is found["sm_shared_bytes"] is None
    assert found["missing"]["occupancy_ratio"] == "what its SM holds is unknown"
    page = text_of(page_of(write_audit(tmp_path, plans, [found])))
    assert "13.0: none of 1 kernel spills registers." in page
    assert not re.search(NO_VALUE, page)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    plans = [plan("9.0", kernel=HOSTILE, dtype=HOSTILE)]
    plans[0]["config"] |= {HOSTILE: HOSTILE}
    rows = [
        row(plans[0])
        | {
            "architecture": HOSTILE,
            "triton": HOSTILE,
            "limited_by": [HOSTILE],
            "instructions": {HOSTILE: 3},
        }
    ]
    run = write_audit(tmp_path, plans, rows)
    page = page_of(run)
    assert "<img" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)
    assert "<img" not in markdown_of(run)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 320)])
def test_its_page_is_accessible_and_fits_a_telephone(
    visit: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    )
    page = visit(write_page(three_gpus(tmp_path)), width, color_scheme=scheme, bypass_csp=True)
    page.add_style_tag(content="section { content-visibility: visible !important }")
    page.evaluate(
        "document.querySelectorAll('details').forEach(details => { details.open = true })"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_kernel_whose_products_run_one_at_a_time_is_among_the_bad_ones(tmp_path: Path) -> None:
    one, other = plan("9.0"), plan("9.0", rank=2)
    cycles = {"tensor": 1024.0, "exponential": 528.0, "issue": 557.0}
    busy = {f"loop_{name}_cycles": value for name, value in cycles.items()}
    rows = [
        row(
            one,
            serialized=True,
            ptxas_notes=["C7515: wgmma.mma_async instructions are serialized due to the rest"],
        ),
        row(other, serialized=False, **busy, loop_overlaps=False),
    ]
    page = page_of(write_audit(tmp_path, [one, other], rows))
    assert "1 run their matrix products one at a time" in text_of(page)
    bad = [line for line in cells(page, "Kernels that fail the audit") if "9.0 Hopper" in line]
    assert [line[-1] for line in bad] == ["matrix products one at a time, due to the rest"]
    head, *lines = cells(page, "All 2 kernels for 9.0 (Hopper: H100, H200, GH200)")
    assert [dict(zip(head, line, strict=True))["tensor cores busy at most"] for line in lines] == [
        "",
        "65 %, turns",
    ]
