"""What the driver refuses, and what PTX says of parameters."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

ITEM_BYTES = {6: 2, 7: 4, 9: 2}  # of CUtensorMapDataType: fp16, fp32, bf16
SWIZZLED_BYTES = {1: 32, 2: 64, 3: 128}  # of CUtensorMapSwizzle: the widest row of a box
MOST_THREADS = 1024  # of a block
SHARED_BYTES = {8: 163 << 10, 9: 227 << 10, 10: 227 << 10}  # of 8.0, 9.0, 10.0, if it asks
BYTES = {"b8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "f32": 4, "b64": 8, "u64": 8}
_PARAMETER = re.compile(r"\.param\s+(?:\.align \d+ )?\.(\w+)\s[^,\n]*?(?:\[(\d+)\])?,?$", re.M)


def parameter_bytes(ptx: str) -> list[int]:
    """Of each parameter of the entry that the PTX declares."""
    entry = ptx[ptx.index(".entry") :]
    found = _PARAMETER.findall(entry[: entry.index("\n)")])
    return [int(count) if count else BYTES[kind] for kind, count in found]


def illegal(one: Mapping[str, Any]) -> Iterator[str]:
    """What cuTensorMapEncodeTiled refuses in a map, by the CUDA Driver API."""
    item, inner = ITEM_BYTES[one["type"]], one["box"][0] * ITEM_BYTES[one["type"]]
    rules = {
        "the map is at a multiple of 64 bytes": one["aligned"],
        "the address is a multiple of 16": one["address"] % 16 == 0,
        "1 to 5 dimensions": 1 <= one["rank"] <= 5,
        "dimensions from 1 to 2**32": all(1 <= size <= 2**32 for size in one["dimensions"]),
        "strides in multiples of 16": all(stride % 16 == 0 for stride in one["strides"]),
        "strides above 0 and below 2**40": all(0 < stride < 2**40 for stride in one["strides"]),
        "boxes from 1 to 256": all(1 <= size <= 256 for size in one["box"]),
        "element strides from 1 to 8": all(1 <= step <= 8 for step in one["steps"]),
        "a row of the box in multiples of 16 bytes": inner % 16 == 0,
        "a row of the box within the swizzle": inner <= SWIZZLED_BYTES.get(one["swizzle"], inner),
        "not interleaved": one["interleave"] == 0,
        "rows that do not overlap": not one["strides"]
        or one["strides"][0] >= one["dimensions"][0] * item,
    }
    return (rule for rule, holds in rules.items() if not holds)


def unlaunchable(one: Mapping[str, Any], major: int = 9) -> Iterator[str]:
    """What cuLaunchKernelEx refuses on compute capability `major`.0."""
    x, y, z = one["block"]
    rules = {
        "1 to 2**31 - 1 blocks": 1 <= one["grid"][0] < 2**31 and one["grid"][1:] == [1, 1],
        "whole warps, up to 1024 threads": x % 32 == 0 and x * y * z <= MOST_THREADS,
        "shared memory as asked for": one["shared"] <= max(48 << 10, one["dynamic"]),
        "shared memory of the capability": one["shared"] <= SHARED_BYTES[major],
    }
    return (rule for rule, holds in rules.items() if not holds)
