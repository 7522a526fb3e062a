"""Code that Triton made of our kernels, cut to the lines that matter."""

import pytest

from attnbench.impls._triton.safe_code import arrivals_alone, copies_amiss, why_unsafe

COPY = (
    "ttng.async_tma_copy_global_to_local %q[%51, %52, %rows, %c0_i32] %56, %55, %true : "
    "!tt.tensordesc<{box}, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> "
    "!ttg.memdesc<{tile}, #shared2, #smem, mutable>"
)
ARRIVAL = "\t@%p148 mbarrier.arrive.shared::cta.b64 _, [%r2134];"
EXPECTED = "\t@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r174], 16384;"
PRODUCT = "\twgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%r1}, %rd1, %rd2;"
MEET, MEET_BY_NAME = "\tbar.sync \t0, 128;", "\tbarrier.sync \t1;"
FINISH, READ = "\twgmma.wait_group.sync.aligned 0;", "\tld.shared.b32 \t%r1, [%r2];"


@pytest.mark.parametrize(
    ("box", "tile", "hangs"),
    [
        # Triton 3.6 for 9.0, specialized: it halved the tile and not the box
        ("tensor<1x1x128x64xbf16", "64x64xbf16", True),
        ("tensor<1x1x128x128xbf16", "64x128xbf16", True),
        ("tensor<1x1x128x64xbf16", "128x64xbf16", False),
        ("1x1x64x64xbf16", "1x1x64x64xbf16", False),  # as 3.9 writes it
        ("1x1x64x64xf16", "2x64x64xf16", True),
    ],
)
def test_a_copy_of_another_size_than_its_tile_hangs(box: str, tile: str, hangs: bool) -> None:
    right = COPY.format(box="tensor<1x1x32x64xbf16", tile="32x64xbf16")
    code = "\n".join([right, COPY.format(box=box, tile=tile), right])
    assert len(list(copies_amiss(code))) == hangs
    reason = why_unsafe({"ttgir": code, "ptx": "", "cubin": b""})
    assert (reason is not None and reason.startswith("it would hang")) == hangs


@pytest.mark.parametrize(
    ("lines", "race"),
    [
        ([PRODUCT, FINISH, MEET, ARRIVAL], False),
        ([PRODUCT, FINISH, ARRIVAL], True),
        ([MEET, PRODUCT, ARRIVAL], True),
        ([READ, MEET_BY_NAME, ARRIVAL, ARRIVAL], False),
        ([MEET, READ, ARRIVAL], True),
        ([PRODUCT, EXPECTED], False),  # the producer's, which reads nothing
    ],
)
def test_an_arrival_before_the_warps_have_met_is_a_race(lines: list[str], race: bool) -> None:
    ptx = "\n".join(lines)
    assert len(list(arrivals_alone(ptx))) == race
    assert (why_unsafe({"ptx": ptx}) is not None) == race


def test_code_without_copies_and_arrivals_is_safe() -> None:
    assert why_unsafe({"ttgir": "tt.func public @forward_kernel() {}", "ptx": PRODUCT}) is None
