"""A program bound to its parameters: each instruction as a function of (block, cohort)."""

import re
import struct
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from .block import Block, Cohort
from .memory import RAW
from .races import WARP
from .text import Address, Instruction, Operand, Program

U32 = np.uint32
TYPES = {
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16,
    "s16": np.int16, "b32": U32, "u32": U32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64,
    "s64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "pred": np.bool_,
}  # fmt: skip
Operation = Callable[[Block, Cohort], None]
Masked = Callable[[Block, Cohort, np.ndarray], None]
"""With the threads that take part, as booleans."""
# A segment ends behind these: others may run then, or the cohort has moved.
ENDS = ("bra", "brx", "ret", "bar.", "barrier", "setmaxnreg", "mbarrier.", "cp.async.wait",
        "wgmma.wait", "wgmma.commit")  # fmt: skip


class Code:
    """Registers and constants have slots, numbers from 0 on, in the list `r` of a cohort."""

    def __init__(
        self, program: Program, parameters: dict[str, np.ndarray],
        compilers: Mapping[str, Callable[["Site"], Any]], masked: Set[str],
    ) -> None:  # fmt: skip
        self.program, self.parameters = program, parameters
        self.threads, self.registers = program.threads, program.maxnreg
        self.slots: dict[Any, int] = {}
        self.constants: dict[int, np.ndarray] = {}
        self.offsets: dict[str, int] = {}
        at = 0
        for name, _, size in program.parameters:
            self.offsets[name] = at
            at += -(-size // 64) * 64
        self.leaders = {0, *program.labels.values()}
        self.operations: list[Operation] = []
        for place, one in enumerate(program.code):
            base = one.parts[0]
            if base not in compilers:
                raise NotImplementedError(f"{one.name} in PTX line {one.line}")
            if one.name.startswith(ENDS):
                self.leaders.add(place + 1)
            site = Site(self, one)
            made = compilers[base](site)
            self.operations.append(site.masked(made) if base in masked else site.guarded(made))
        self.segments: dict[int, tuple[list[Operation], int]] = {}

    def slot(self, text: str, scope: int, size: int) -> int:
        """Of a register, or of a constant of `size` bytes."""
        if re.match(r"%[a-z]+($|\.)", text):  # such as %tid.x
            return self.slots.setdefault(text, len(self.slots))
        key: Any = self.program.register(scope, text)
        if not text.startswith("%") and key not in self.program.registers:
            value = self._constant(text, size)
            key = (value.tobytes(), value.dtype.str)
            self.constants[self.slots.setdefault(key, len(self.slots))] = value
        return self.slots.setdefault(key, len(self.slots))

    def _constant(self, text: str, size: int) -> np.ndarray:
        if text[:2] in ("0f", "0F", "0d", "0D"):
            return np.array([int(text[2:], 16)], RAW[4 if text[1] in "fF" else 8])
        if re.fullmatch(r"-?\d+\.\d*", text):
            return np.frombuffer(struct.pack("<f", float(text)), U32)
        if text in self.offsets:
            value = self.offsets[text]
        else:
            value = 0 if text == "global_smem" else int(text.rstrip("U"), 0)
        return (
            np.array([value & (1 << 8 * size) - 1], RAW[size]) if size else np.array([value != 0])
        )

    def initial(self, lanes: np.ndarray, index: int, count: int) -> list[Any]:
        """Registers at the start, of threads of block `index` of `count`."""
        known = {
            "%tid.x": lanes, "%laneid": lanes % WARP, "%warpid": lanes // WARP, "%ctaid.x": index,
            "%nctaid.x": count, "%ntid.x": self.threads,
        }  # fmt: skip
        r: list[Any] = [None] * len(self.slots)
        for key, slot in self.slots.items():
            if isinstance(key, str):
                r[slot] = np.atleast_1d(known.get(key, 0)).astype(U32)
        for slot, value in self.constants.items():
            r[slot] = value
        return r

    def segment(self, start: int) -> tuple[list[Operation], int]:
        """The operations from `start` to the next jump, wait or label, and the place behind."""
        if start not in self.segments:
            end = start + 1
            while end < len(self.operations) and end not in self.leaders:
                end += 1
            self.segments[start] = self.operations[start:end], end
        return self.segments[start]

    def lines(self, segments: set[int]) -> set[int]:
        """Those of the PTX that these segments execute."""
        return {one.line for x in segments for one in self.program.code[x : self.segment(x)[1]]}


class Site:
    """One instruction, as the functions that compile it see it."""

    def __init__(self, code: Code, one: Instruction) -> None:
        self.code, self.one = code, one
        self.name, self.parts, self.operands = one.name, one.parts, one.operands
        self.written: list[int] = []
        known = (*TYPES, "bf16", "bf16x2", "f16x2", "tf32")
        self.types = [part for part in one.parts if part in known]

    @property
    def kind(self) -> str:
        return self.types[-1]

    def unknown(self) -> NotImplementedError:
        return NotImplementedError(f"{self.name} {self.operands}")

    def to(self, operand: Operand) -> int:
        """Slot of a register that is written, -1 for `_`."""
        if operand == "_":
            return -1
        slot = self.code.slot(operand, self.one.scope, 4)
        self.written.append(slot)
        return slot

    def of(self, operand: Operand, size: int) -> int:
        """Slot of a value of `size` bytes, 0 for a predicate."""
        return self.code.slot(operand, self.one.scope, size)

    def all_to(self, operand: Operand) -> list[int]:
        return [self.to(x) for x in (operand if isinstance(operand, tuple) else (operand,))]

    def all_of(self, operand: Operand, size: int) -> list[int]:
        return [self.of(x, size) for x in (operand if isinstance(operand, tuple) else (operand,))]

    def bytes_of(self, operand: str) -> int:
        return self.code.program.bytes_of(self.code.program.register(self.one.scope, operand))

    def address(self, operand: Address, size: int) -> Callable[[Cohort], np.ndarray]:
        """Of `size` bytes; one number if all threads agree."""
        slot = self.of(operand.base, size)
        if not operand.offset:
            return lambda c: c.read(slot)
        offset = np.array([operand.offset & (1 << 8 * size) - 1], RAW[size])
        return lambda c: c.read(slot) + offset

    def guarded(self, made: Operation) -> Operation:
        """All threads compute; those whose guard forbids it keep what they had."""
        if self.one.guard is None:
            return made
        guard, negated, written = self.of(self.one.guard, 0), self.one.negated, self.written

        def run(block: Block, c: Cohort) -> None:
            mask = c.read(guard) ^ negated
            before = [c.r[slot] for slot in written]
            made(block, c)
            for slot, old in zip(written, before, strict=True):
                if old is not None:
                    c.r[slot] = np.where(mask, c.r[slot], old)

        return run

    def masked(self, made: Masked) -> Operation:
        """Only threads whose guard allows it take part; a load gives the others some number."""
        if self.one.guard is None:
            return lambda block, c: made(block, c, np.ones(c.n, bool))
        guard, negated = self.of(self.one.guard, 0), self.one.negated

        def run(block: Block, c: Cohort) -> None:
            mask = c.per_lane(guard) ^ negated
            if mask.any() or self.parts[0] == "ld":
                made(block, c, mask)

        return run
