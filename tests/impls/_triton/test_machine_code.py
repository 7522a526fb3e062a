"""impls/_triton/machine_code.py on lines as nvdisasm prints them."""

import pytest

from attnbench.impls._triton.machine_code import is_serialized, loops, main_loop

HGMMA = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"


def program(*lines: str) -> str:
    """Labels begin with a dot."""
    return "\n".join(
        line if line.startswith(".") else f"        /*{16 * place:04x}*/                   {line}"
        for place, line in enumerate(lines)
    )


def kernel(*body: str) -> str:
    """A loop over `body`, and what comes behind the end of a program: a wait that tries again."""
    return program(
        ".L_x_1:", *body, "@!P0 BRA `(.L_x_1) ;", "STG.E [R2], R4 ;", "EXIT ;",
        ".L_x_2:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR17], R184 ;", "@!P0 BRA `(.L_x_2) ;",
        "BRA `(.L_x_1) ;",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("products", "waits", "serialized"), [(8, 8, True), (8, 2, False), (4, 4, True), (2, 2, False)]
)
def test_a_wait_for_each_product_serializes_them(
    products: int, waits: int, serialized: bool
) -> None:
    found = main_loop(loops(kernel(*[HGMMA] * products, *[WAIT] * waits)))
    assert found is not None
    assert is_serialized(found.names) is serialized
