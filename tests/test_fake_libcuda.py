"""The rules of the driver, by which launches over the fake one are judged."""

from typing import Any

import pytest

from tests.fakes.libcuda.rules import illegal, parameter_bytes, unlaunchable

# K of 2 sequences with 4 heads of 257 keys, 64 wide in bf16, in tiles of 128 keys
MAP: dict[str, Any] = {
    "aligned": True,
    "type": 9,
    "rank": 4,
    "address": 0x7F00,
    "interleave": 0,
    "swizzle": 3,
    "dimensions": [64, 257, 4, 2],
    "strides": [128, 257 * 128, 4 * 257 * 128],
    "box": [64, 128, 1, 1],
    "steps": [1, 1, 1, 1],
}
LAUNCH: dict[str, Any] = {
    "grid": [132, 1, 1],
    "block": [384, 1, 1],
    "shared": 180344,
    "dynamic": 180344,
}


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, 0),
        ({"aligned": False}, 1),
        ({"address": 0x7F08}, 1),
        ({"box": [128, 128, 1, 1]}, 1),  # 256 bytes in a swizzle of 128
        ({"box": [64, 512, 1, 1]}, 1),
        ({"box": [4, 128, 1, 1]}, 1),
        ({"box": [0, 128, 1, 1]}, 1),
        ({"dimensions": [64, 0, 4, 2]}, 1),
        ({"strides": [136, 257 * 136, 4 * 257 * 136]}, 1),  # heads of 68: not multiples of 16
        ({"strides": [128, 0, 128]}, 1),  # one head for all
        ({"strides": [64, 257 * 64, 4 * 257 * 64]}, 1),
        ({"strides": [128, 2**40, 2**40]}, 1),
        ({"steps": [1, 9, 1, 1]}, 1),
        ({"interleave": 1}, 1),
        ({"rank": 6}, 1),
    ],
)
def test_a_tensor_map_that_the_driver_would_refuse_is_named(
    changes: dict[str, Any], broken: int
) -> None:
    assert len(list(illegal(MAP | changes))) == broken


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, 0),
        ({"shared": 49152, "dynamic": 0}, 0),
        ({"dynamic": 0}, 1),
        ({"shared": 232449, "dynamic": 232449}, 1),
        ({"block": [1056, 1, 1]}, 1),
        ({"block": [100, 1, 1]}, 1),
        ({"grid": [0, 1, 1]}, 1),
        ({"grid": [132, 2, 1]}, 1),
    ],
)
def test_a_launch_that_the_driver_would_refuse_is_named(
    changes: dict[str, Any], broken: int
) -> None:
    assert len(list(unlaunchable(LAUNCH | changes))) == broken


def test_parameters_have_the_bytes_that_the_ptx_declares() -> None:
    ptx = """
.visible .entry kernel(
	.param .align 64 .b8 kernel_param_0[128],
	.param .u32 kernel_param_1,
	.param .u64 .ptr .global .align 1 kernel_param_2,
	.param .f32 kernel_param_3,
	.param .u64 kernel_param_4
)
.reqntid 384
"""
    assert parameter_bytes(ptx) == [128, 4, 8, 4, 8]
