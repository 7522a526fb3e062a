"""From how many bytes on memory that is counted by pages can be seen.

The exact counts of torch's allocators know nothing of memory elsewhere (numpy, malloc, a library's
own). Pages do, but they also hold what libraries take when they are first used: in 36 cases of
built-in backends on two busy cores up to 3.4 MiB. A GPU's memory holds the code of libraries.
"""

SEEN_FROM_BYTES = {"cpu": 4 << 20, "cuda": 512 << 20}
SEEN_FROM_RATIO = 0.01  # of what is counted exactly beside it
BELOW = "below what can be seen"


def seen_from_bytes(device: str, counted_bytes: int = 0) -> int:
    """`counted_bytes`: what is counted exactly of the same call."""
    least = SEEN_FROM_BYTES.get(device, SEEN_FROM_BYTES["cuda"])
    return least + int(SEEN_FROM_RATIO * counted_bytes)
