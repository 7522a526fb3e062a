"""Accesses of shared memory that no barrier orders, whatever the order in which they ran here.

Vector clocks (Lamport 1978; Fidge 1988): each warp has one, and so has each mbarrier, for the tiles
that TMA copies. Of two accesses of a word, of which one writes, the later one's clock must know the
earlier one. Products of warpgroups read from their start to their wait, and cp.async writes so.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from .memory import Fault

WARP = 32
AGENTS = 64  # warps and mbarriers of a block, at most


class Races:
    """Words are numbered by their address / 4; `since` is the clock when an access began."""

    def __init__(self, warps: int, shared_bytes: int) -> None:
        self.warps = warps
        self.clocks = np.zeros((warps, AGENTS), np.int64)
        self.clocks[np.arange(warps), np.arange(warps)] = 1
        words = shared_bytes // 4 + 4
        self.read_at = np.zeros((words, AGENTS), np.int32)
        self.writer, self.written_at = np.zeros(words, np.int64), np.zeros(words, np.int64)
        self.agents: dict[int, int] = {}  # of mbarriers, by address
        self.gathered: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(AGENTS, np.int64))
        self.completed: dict[int, np.ndarray] = {}

    def clock(self, warp: int) -> np.ndarray:
        return self.clocks[warp].copy()

    def read(self, words: np.ndarray, warp: int, since: np.ndarray | None = None) -> None:
        clock = self.clocks[warp] if since is None else since
        self._after_writes(words, clock, f"warp {warp} reads")
        self.read_at[words, warp] = self.clocks[warp, warp]

    def write(self, words: np.ndarray, warp: int, since: np.ndarray | None = None) -> None:
        clock = self.clocks[warp] if since is None else since
        self._check_write(words, clock, f"warp {warp} writes")
        self.writer[words], self.written_at[words] = warp, self.clocks[warp, warp]

    def tile_written(self, words: np.ndarray, since: np.ndarray, barrier: int) -> None:
        """By TMA, for a warp that had this clock; the barrier counts its bytes."""
        self._check_write(words, since, "TMA writes")
        agent = self.agents.setdefault(barrier, self.warps + len(self.agents))
        clock = self.gathered[barrier]
        clock[agent] += 1
        self.writer[words], self.written_at[words] = agent, clock[agent]

    def _check_write(self, words: np.ndarray, clock: np.ndarray, who: str) -> None:
        self._after_writes(words, clock, who)
        late = np.argwhere(self.read_at[words] > clock)
        if len(late):
            place, reader = late[0]
            raise Fault(f"race: {who} byte {4 * words[place]}, which warp {reader} reads")

    def _after_writes(self, words: np.ndarray, clock: np.ndarray, who: str) -> None:
        late = self.written_at[words] > clock[self.writer[words]]
        if late.any():
            word = int(words[late][0])
            by = int(self.writer[word])
            writer = f"warp {by}" if by < self.warps else "TMA"
            raise Fault(f"race: {who} byte {4 * word}, which {writer} writes")

    def together(self, warps: np.ndarray) -> None:
        """bar.sync of these."""
        self.clocks[warps] = self.clocks[warps].max(axis=0)
        self.clocks[warps, warps] += 1

    def arrive(self, barrier: int, warp: int) -> None:
        np.maximum(self.gathered[barrier], self.clocks[warp], out=self.gathered[barrier])
        self.clocks[warp, warp] += 1

    def complete(self, barrier: int) -> None:
        self.completed[barrier] = self.gathered[barrier].copy()

    def waited(self, barrier: int, warps: np.ndarray) -> None:
        """What was before the completion is before what follows."""
        if barrier in self.completed:
            self.clocks[warps] = np.maximum(self.clocks[warps], self.completed[barrier])


def words_of(addresses: np.ndarray, size: int) -> np.ndarray:
    """Those that accesses of `size` bytes touch, each once."""
    return np.unique(addresses.astype(np.int64)[:, None] + np.arange(0, size, min(size, 4)) >> 2)


def by_warp(
    addresses: np.ndarray, lanes: np.ndarray, size: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Warps, and the words that the threads of each touch."""
    for warp in np.unique(lanes // WARP):
        yield int(warp), words_of(addresses[lanes // WARP == warp], size)
