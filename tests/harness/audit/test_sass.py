"""harness/audit/sass.py on lines as nvdisasm prints them."""

from attnbench.harness.audit.sass import CLASSES, mix, spilled_bytes
from attnbench.impls._triton.machine_code import opcodes

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
