"""reports/audit/subjects/gpu_anatomy.py: audited kernels, with their own numbers."""

import re
from pathlib import Path

from tests.reports.fake_kernels import plan, row, write_audit
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import markdown_of, page_of, text_of


def cells(page: str, title: str) -> list[list[str]]:
    """Of the table whose caption begins so."""
    after = page[page.index(f">{title}") :]
    rows = re.findall(r"<tr.*?</tr>", after[: after.index("</table>")], flags=re.DOTALL)
    return [[text_of(cell).strip() for cell in re.split(r"<t[hd][^>]*>", one)[1:]] for one in rows]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    plans = [plan("9.0", kernel=HOSTILE, dtype=HOSTILE)]
    plans[0]["config"] |= {HOSTILE: HOSTILE}
    named = {"architecture": HOSTILE, "triton": HOSTILE}
    named |= {"limited_by": [HOSTILE], "instructions": {HOSTILE: 3}}
    run = write_audit(tmp_path, plans, [row(plans[0]) | named])
    page = page_of(run)
    assert "<img" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)
    assert "<img" not in markdown_of(run)


def test_a_kernel_whose_products_run_one_at_a_time_is_among_the_bad_ones(tmp_path: Path) -> None:
    one, other = plan("9.0"), plan("9.0", rank=2)
    cycles = {"tensor": 1024.0, "exponential": 528.0, "issue": 557.0}
    busy = {f"loop_{name}_cycles": value for name, value in cycles.items()}
    said = "C7515: wgmma.mma_async instructions are serialized due to the rest"
    serial = row(one, serialized=True, ptxas_notes=[said])
    fine = row(other, serialized=False, **busy, loop_overlaps=False)
    page = page_of(write_audit(tmp_path, [one, other], [serial, fine]))
    bad = [line for line in cells(page, "Kernels that fail the audit") if "9.0 Hopper" in line]
    assert [line[-1] for line in bad] == ["matrix products one at a time, due to the rest"]
    head, *lines = cells(page, "All 2 kernels for 9.0 (Hopper: H100, H200, GH200)")
    assert [line[head.index("busy")] for line in lines] == ["one by one", "64.8 %, turns"]
