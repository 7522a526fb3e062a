"""harness/audit/sass.py on lines as nvdisasm prints them, and on kernels compiled here."""

import json
import sys
from typing import Any

import pytest

from attnbench.harness.audit.sass import CLASSES, loop_fields, mix, spilled_bytes
from attnbench.harness.audit.tensor_bound import most_busy
from attnbench.impls._triton.machine_code import loops, main_loop, opcodes
from tests.conftest import ROOT, environment, ran

DISASSEMBLY = """
.text.forward_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0190*/                   MUFU.RCP R4, R4 ;
        /*01a0*/              @!P0 LDGSTS.E.BYPASS.128 [R12+0x4000], [R8.64] ;
        /*01b0*/             @!UPT UTMALDG.2D [UR8], [UR4] ;
        /*01c0*/             @!UPT UIADD3 URZ, URZ, URZ, URZ ;
.L_x_3:
        /*01d0*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], !UPT ;
        /*0e10*/              @PT  HMMA.16816.F32.BF16 R24, R4, R8, R24 ;
        /*0e20*/                   MUFU.EX2 R5, R5 ;
        /*0e30*/                   FFMA.FTZ R5, R5, R6, R7 ;
        /*0e40*/                   FFMA2 R4, R4.F32x2.HI_LO, R6.F32x2.HI_LO, R8.F32x2.HI_LO ;
        /*0e50*/                   STL [R1+0x4], R3 ;
        /*0e60*/                   STL.64 [R1+0x8], R2 ;
        /*0e70*/                   STL.S16 [R1+0x2], R2 ;
        /*0e80*/                   LDL.LU R3, [R1+0x4] ;
        /*0e90*/              @P0  LDL.LU.64 R2, [R1+0x8] ;
        /*0ea0*/                   LDL.U8 R2, [R1+0x8] ;
        /*0eb0*/                   LDSM.16.M88.4 R8, [R8] ;
        /*0ec0*/                   LDG.E.128 R8, [R2.64] ;
       /*10ed0*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR11], tmem[UR20], !UPT ;
       /*10ee0*/                   UTCATOMSWS.FIND_AND_SET.ALIGN UP0, UR4, UR7 ;
       /*10ef0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
       /*10f00*/                   NOP;
"""


def test_instructions_are_counted_by_class_without_padding() -> None:
    names = opcodes(DISASSEMBLY)
    assert len(names) == 21
    found = mix(names)
    assert sum(found.values()) == len(names)
    assert found == {
        **dict.fromkeys(CLASSES, 1),
        "FFMA": 2,
        "local": 6,
        "other": 4,  # LDC, MUFU.RCP, UIADD3 and UTCATOMSWS, which is not a matrix product
    }


def test_spilled_bytes_are_those_of_local_memory() -> None:
    assert spilled_bytes(opcodes(DISASSEMBLY)) == (4 + 8 + 2, 4 + 8 + 1)
    assert spilled_bytes([]) == (0, 0)


# ---- loops ---------------------------------------------------------------------------------------

HGMMA = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, {left} ;"


def program(*lines: str) -> str:
    """Labels begin with a dot."""
    return "\n".join(
        line if line.startswith(".") else f"        /*{16 * place:04x}*/                   {line}"
        for place, line in enumerate(lines)
    )


def kernel(*body: str, before: tuple[str, ...] = ()) -> str:
    """A loop over `body`, and what comes behind the end of a program: a wait that tries again."""
    return program(
        *before, ".L_x_1:", *body, "@!P0 BRA `(.L_x_1) ;", "STG.E [R2], R4 ;", "EXIT ;",
        ".L_x_2:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR17], R184 ;", "@!P0 BRA `(.L_x_2) ;",
        "BRA `(.L_x_1) ;",
    )  # fmt: skip


def test_a_branch_back_closes_a_loop_unless_it_comes_from_behind_the_end() -> None:
    code = kernel(HGMMA, WAIT.format(left="0x0"))
    first, second = loops(code)
    assert [name.partition(".")[0] for name in first.names] == ["HGMMA", "WARPGROUP", "BRA"]
    assert [name.partition(".")[0] for name in second.names] == ["SYNCS", "BRA"]
    assert main_loop(loops(code)) == first


def test_the_innermost_loop_with_the_fewest_instructions_per_product_is_described() -> None:
    code = program(
        ".L_x_0:", "MOV R1, R2 ;",
        ".L_x_1:", HGMMA, "FADD R1, R2, R3 ;", "BRA `(.L_x_1) ;",
        ".L_x_2:", HGMMA, *["FSEL R1, R2, R3, P0 ;"] * 5, "BRA `(.L_x_2) ;",
        "@P1 BRA `(.L_x_0) ;", "EXIT ;",
    )  # fmt: skip
    found = main_loop(loops(code))
    assert [name.partition(".")[0] for name in found.names] == ["HGMMA", "FADD", "BRA"]


@pytest.mark.parametrize(
    ("products", "waits", "serialized"), [(8, 8, True), (8, 2, False), (4, 4, True), (2, 2, False)]
)
def test_a_wait_for_each_product_serializes_them(
    products: int, waits: int, serialized: bool
) -> None:
    found = loop_fields(kernel(*[HGMMA] * products, *[WAIT.format(left="0x0")] * waits))
    assert found["serialized"] is serialized
    assert found["loop_wait_count"] == waits
    assert found["loop_instructions"]["HGMMA"] == products


def test_only_what_is_spilled_in_loops_is_counted_and_once() -> None:
    code = kernel("LDL.64 R2, [R1] ;", HGMMA, before=("STL.128 [R1], R4 ;", ".L_x_0:"))
    nested = code.replace("EXIT ;", "BRA `(.L_x_0) ;\n        /*9990*/                   EXIT ;", 1)
    for one in (code, nested):
        found = loop_fields(one)
        assert (found["loop_spill_store_bytes"], found["loop_spill_load_bytes"]) == (0, 8)


def test_a_loop_around_loops_over_tiles_is_none_of_them() -> None:
    """A persistent kernel over its units, and the warps of a partition until the kernel ends."""
    dispatch = (".L_x_7:", "LDL R3, [R1] ;", "@P0 BRA `(.L_x_7) ;")  # `continue` of the same loop
    code = program(
        *dispatch, ".L_x_0:", "STL [R1], R4 ;",
        ".L_x_1:", HGMMA, "@P1 BRA `(.L_x_1) ;", "LDL R2, [R1] ;", "@P2 BRA `(.L_x_0) ;",
        ".L_x_5:", "LDL R2, [R1] ;",
        ".L_x_6:", "UTMALDG.4D [UR8], [UR4] ;", "@P1 BRA `(.L_x_6) ;", "@P2 BRA `(.L_x_5) ;",
        "BRA `(.L_x_7) ;", "EXIT ;",
    )  # fmt: skip
    found = loop_fields(code)
    assert (found["loop_spill_store_bytes"], found["loop_spill_load_bytes"]) == (0, 0)
    inside = code.replace(HGMMA, f"LDL.64 R8, [R1] ;\n        /*9990*/                   {HGMMA}")
    assert loop_fields(inside)["loop_spill_load_bytes"] == 8


# ---- the bound -----------------------------------------------------------------------------------


def cycles(tensor: float, exponential: float, issue: float, overlaps: bool) -> dict[str, Any]:
    return {
        "loop_tensor_cycles": tensor,
        "loop_exponential_cycles": exponential,
        "loop_issue_cycles": issue,
        "loop_overlaps": overlaps,
    }


def test_cycles_follow_from_the_shapes_and_counts_in_the_loop() -> None:
    body = [HGMMA.replace("64x128", "64x256"), HGMMA, *["MUFU.EX2 R5, R5 ;"] * 3]
    found = loop_fields(kernel(*body, WAIT.format(left="0x1")))
    assert found["loop_tensor_cycles"] == 128 + 64
    assert found["loop_exponential_cycles"] == 24
    assert found["loop_issue_cycles"] == len(body) + 2
    assert found["loop_overlaps"] is True


@pytest.mark.parametrize(
    ("found", "blocks", "ratio", "limit"),
    [
        (cycles(1000, 500, 600, True), 1, 1.0, "tensor"),
        (cycles(500, 1000, 600, True), 1, 0.5, "exponentials"),
        (cycles(500, 600, 1000, True), 2, 0.5, "issue"),
        # One block: 1000 cycles of products, then 600 of softmax, and so on.
        (cycles(1000, 500, 600, False), 1, 1000 / 1600, "turns"),
        (cycles(1000, 500, 600, False), 2, 1.0, "tensor"),  # another block fills the gaps
    ],
)
def test_the_bound_is_that_of_the_slowest_part(
    found: dict[str, Any], blocks: int, ratio: float, limit: str
) -> None:
    assert most_busy(found, 8, blocks) == (pytest.approx(ratio), limit)


@pytest.mark.parametrize("warps", [9, 12])
def test_consumers_of_a_specialized_block_fill_each_others_gaps(warps: int) -> None:
    found = cycles(1000, 500, 600, False)
    assert most_busy(found, warps, 1, asked_warp_count=8) == (1.0, "tensor")
    slow = cycles(500, 500, 1100, False)
    assert most_busy(slow, warps, 1, asked_warp_count=8) == (pytest.approx(500 / 1100), "issue")
    assert most_busy(found, 8, 1, asked_warp_count=8) == (pytest.approx(1000 / 1600), "turns")
    # A single consumer has nobody to fill its gaps.
    assert most_busy(found, 8, 1, asked_warp_count=4) == (pytest.approx(1000 / 1600), "turns")


# ---- compiled kernels ----------------------------------------------------------------------------


@pytest.mark.long
def test_our_kernel_without_the_conditions_before_its_loops_is_serialized(tmp_path) -> None:
    pytest.importorskip("triton", reason="needs triton: pip install triton")

    def audited(which: str) -> dict[str, Any]:
        done = ran(
            [sys.executable, "-m", "tests.harness.audit.serialized", which],
            cwd=ROOT,
            env=environment({"TRITON_CACHE_DIR": str(tmp_path / which)}),
            check=True,
            timeout=600,
        )
        return json.loads(done.stdout)

    old, new = audited("old"), audited("new")
    assert old["serialized"] is True
    assert old["loop_wait_count"] == old["loop_instructions"]["HGMMA"]
    assert any("wgmma.mma_async instructions are serialized" in one for one in old["ptxas_notes"])
    assert new["serialized"] is False
    assert new["loop_wait_count"] == 1
    assert new["ptxas_notes"] == []
