"""Runs impls/_triton/hopper_forward.py on the CPU: Triton has no interpreter for Gluon.

The kernel's own source is executed, with stand-ins for the parts of Gluon that it uses; needs
neither a GPU nor triton. What differs from a plain loop over tiles is kept:

- partitions of warps run by turns that a seed chooses, and change at every barrier and every
  asynchronous instruction; TMA copies arrive some time after they were issued, in any order;
- an mbarrier has phases, arrivals and bytes, as in the PTX ISA (mbarrier); if nobody can go on, it
  is a `Deadlock`;
- matrix products read their operands when they are waited for, not when they are issued. A copy
  into a place that a product still reads, or a product on a place that is being filled, is a
  `Hazard`; so is a result that is used before its wait;
- shared memory is NaN until it is filled, and each element of the output is written once;
- 32-bit scalars overflow with an error, and have no division of negative numbers.

Layouts are not checked: compiling does that.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from attnbench.impls import _triton

SOURCE = Path(_triton.__file__).with_name("hopper_forward.py")


class Hazard(Exception):
    """Data is read or written while something else still writes or reads it."""


class Deadlock(Exception):
    """No partition can go on, and no copy is under way."""


# ---- scalars and pointers ------------------------------------------------------------------------


def _checked(name: str) -> Callable[..., Any]:
    operation = getattr(int, name)

    def apply(self: "I32", other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        wide = isinstance(other, I64) or isinstance(self, I64)
        if not isinstance(other, int):
            return operation(self, other)
        if "div" in name or "mod" in name:
            by = self if name[2] == "r" else other
            assert min(self, other) >= 0 < by, "GPUs round quotients of negative numbers to 0"
        return (I64 if wide else I32)(operation(self, other))

    return apply


class I32(int):
    """A 32-bit integer that complains of an overflow."""

    BITS = 32

    def __new__(cls, value: int) -> "I32":
        assert -(2 ** (cls.BITS - 1)) <= value < 2 ** (cls.BITS - 1), f"{value} overflows"
        return super().__new__(cls, value)

    def to(self, dtype: torch.dtype) -> "I32":
        return {torch.int32: I32, torch.int64: I64}[dtype](self)


class I64(I32):
    BITS = 64


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "xor"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(I32, _method, _checked(_method))


@dataclass
class Output:
    """Memory that is written once. `storage` is flat; `written` counts."""

    storage: Tensor
    first: int
    written: Tensor

    @classmethod
    def of(cls, tensor: Tensor) -> "Output":
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        storage = tensor.as_strided((size,), (1,), 0)
        return cls(storage, tensor.storage_offset(), torch.zeros(size, dtype=torch.int32))


@dataclass
class Pointer:
    to: Output
    offset: Any = 0

    def __add__(self, offset: Any) -> "Pointer":
        wide = offset.long() if isinstance(offset, Tensor) else int(offset)
        return Pointer(self.to, self.offset + wide)


# ---- partitions of warps, by turns ---------------------------------------------------------------


@dataclass
class Partition:
    """A thread that runs while it has the baton. `groups`: its matrix products under way."""

    name: str
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ready: Callable[[], bool] = lambda: True
    waits_for: str = ""
    ended: bool = False
    groups: deque["Pending"] = field(default_factory=deque)


class Ended(BaseException):
    """Ends the threads of a program that failed."""


class Scheduler:
    """Runs partitions one at a time, and copies between them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.partitions: list[Partition] = []
        self.copies: list[Callable[[], None]] = []
        self.free = threading.Semaphore(0)
        self.current: Partition | None = None
        self.error: BaseException | None = None

    def run(self, functions: Sequence[tuple[str, Callable[[], None]]]) -> None:
        threads = []
        for name, function in functions:
            partition = Partition(name)
            self.partitions.append(partition)
            thread = threading.Thread(target=self._body, args=(partition, function))
            thread.start()
            threads.append(thread)
        # Some are slow throughout, as on a GPU whose memory or other warps are.
        eager = [self.random.choice((1, 1, 5, 25)) for _ in range(len(functions) + 1)]
        try:
            while self.error is None and self._step(eager):
                pass
        finally:
            self.error = self.error or Ended()
            for partition in self.partitions:
                partition.baton.release()
            for thread in threads:
                thread.join()
        if not isinstance(self.error, Ended):
            raise self.error
        if self.copies:
            raise Hazard("the program ends while a copy is under way")

    def _step(self, eager: list[int]) -> bool:
        """Let one partition or copy go on; False when all have ended."""
        actors: list[tuple[int, Any]] = [
            (weight, one)
            for weight, one in zip(eager, self.partitions, strict=False)
            if not one.ended and one.ready()
        ]
        actors += [(eager[-1], copy) for copy in self.copies]
        if not actors:
            if all(one.ended for one in self.partitions):
                return False
            stuck = [f"{one.name}: {one.waits_for}" for one in self.partitions if not one.ended]
            raise Deadlock("; ".join(stuck))
        ((_, chosen),) = self.random.choices(actors, [weight for weight, _ in actors])
        if isinstance(chosen, Partition):
            self.current = chosen
            chosen.baton.release()
            self.free.acquire()
        else:
            self.copies.remove(chosen)
            chosen()
        return True

    def _body(self, partition: Partition, function: Callable[[], None]) -> None:
        partition.baton.acquire()
        try:
            if self.error is None:
                function()
                if partition.groups:
                    raise Hazard(f"{partition.name} ends while a product is under way")
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self.error = self.error or error
        finally:
            partition.ended = True
            self.free.release()

    def pause(self, ready: Callable[[], bool] = lambda: True, waits_for: str = "") -> None:
        """Let others run, until ready."""
        me = self.current
        me.ready, me.waits_for = ready, waits_for
        self.free.release()
        me.baton.acquire()
        if self.error is not None:
            raise Ended


# ---- shared memory, barriers, copies and products ------------------------------------------------


@dataclass
class Slot:
    """One tile of shared memory. `writers` and `readers`: copies and products under way."""

    data: Any
    name: str
    writers: int = 0
    readers: int = 0


@dataclass
class Barrier:
    """An mbarrier. `phase`: how many have been completed."""

    name: str
    count: int = 0
    missing: int = 0
    bytes_missing: int = 0
    phase: int = 0

    def arrive(self) -> None:
        assert self.count, f"{self.name} was not initialized"
        if not self.missing:
            raise Hazard(f"{self.name}: more arrivals than a phase takes")
        self.missing -= 1
        self.completed()

    def completed(self) -> None:
        if self.missing == 0 == self.bytes_missing:
            self.phase, self.missing = self.phase + 1, self.count

    def passed(self, parity: int) -> bool:
        return self.phase & 1 != parity


@dataclass
class View:
    """A tile as the kernel sees it."""

    slot: Slot
    see: Callable[[Tensor], Tensor] = lambda data: data

    def reshape(self, shape: Sequence[int]) -> "View":
        return View(self.slot, lambda data: self.see(data).reshape(*shape))

    def permute(self, order: Sequence[int]) -> "View":
        return View(self.slot, lambda data: self.see(data).permute(*order))

    @property
    def dtype(self) -> torch.dtype:
        return self.slot.data.dtype


@dataclass
class Shared:
    dtype: torch.dtype
    slots: list[Any]

    def index(self, place: int) -> Any:
        assert 0 <= place < len(self.slots), "outside of shared memory"
        one = self.slots[place]
        return one if isinstance(one, Barrier) else View(one)


@dataclass
class Descriptor:
    """Of a tensor, for tiles of `block_shape`."""

    base: Tensor
    block_shape: Sequence[int]
    layout: object = None

    @property
    def dtype(self) -> torch.dtype:
        return self.base.dtype

    def box(self, at: Sequence[int]) -> Tensor:
        """Zeros beyond the edges."""
        tile = torch.zeros(*self.block_shape, dtype=self.dtype)
        ends = [
            min(start + size, length)
            for start, size, length in zip(at, self.block_shape, self.base.shape, strict=True)
        ]
        assert all(start >= 0 for start in at)
        inside = tuple(slice(start, end) for start, end in zip(at, ends, strict=True))
        part = self.base[inside]
        tile[tuple(slice(0, size) for size in part.shape)] = part
        return tile


@dataclass
class Pending:
    """A matrix product under way: `a` [M, K] in registers or shared memory, `b` [K, N] shared."""

    a: Tensor | View
    b: View
    acc: Tensor
    use_acc: bool
    value: Tensor | None = None

    def operands(self) -> list[Slot]:
        return [one.slot for one in (self.a, self.b) if isinstance(one, View)]

    def finish(self) -> None:
        a, b = (
            one.see(one.slot.data) if isinstance(one, View) else one for one in (self.a, self.b)
        )
        assert a.dtype == b.dtype
        assert a.dtype in (torch.float16, torch.bfloat16)
        self.value = a.float() @ b.float()
        if self.use_acc:
            self.value = self.acc + self.value
        for slot in self.operands():
            slot.readers -= 1


class Program:
    """One program of a launch: its shared memory, and Gluon's functions in it."""

    def __init__(self, number: int, programs: int, seed: int) -> None:
        self.number, self.programs = number, programs
        self.scheduler = Scheduler(seed)
        self.tiles_read = 0

    def allocate(self, dtype: torch.dtype, shape: Sequence[int], layout: object) -> Shared:
        if dtype == torch.int64:
            return Shared(dtype, [Barrier(f"barrier {number}") for number in range(shape[0])])
        empty = [torch.full(tuple(shape[1:]), torch.nan, dtype=dtype) for _ in range(shape[0])]
        return Shared(dtype, [Slot(data, f"place {place}") for place, data in enumerate(empty)])

    def specialize(self, parts: Sequence[tuple[Any, tuple[Any, ...]]], *_sizes: object) -> None:
        self.scheduler.run(
            [
                (f"{function.__name__} {number}", lambda f=function, a=arguments: f(*a))
                for number, (function, arguments) in enumerate(parts)
            ]
        )

    def wait(self, barrier: Barrier, parity: int) -> None:
        assert parity in (0, 1)
        self.scheduler.pause(
            lambda: barrier.passed(parity), f"waits for {barrier} to leave parity {parity}"
        )

    def arrive(self, barrier: Barrier) -> None:
        self.scheduler.pause()
        barrier.arrive()

    def expect(self, barrier: Barrier, size: int) -> None:
        barrier.bytes_missing += size
        barrier.arrive()

    def load(self, tensor: Descriptor, at: Sequence[int], barrier: Barrier, to: View) -> None:
        slot, size = to.slot, prod(tensor.block_shape) * tensor.base.element_size()
        if slot.readers or slot.writers:
            raise Hazard(f"{slot.name} is overwritten while it is in use")
        slot.data.fill_(torch.nan)
        slot.writers += 1

        def land() -> None:
            slot.data.copy_(tensor.box(at))
            slot.writers -= 1
            barrier.bytes_missing -= size
            barrier.completed()

        self.scheduler.copies.append(land)
        self.tiles_read += 1
        self.scheduler.pause()

    def mma(
        self, a: Any, b: View, acc: Any, *, use_acc: bool = True, is_async: bool = False
    ) -> Pending:
        assert is_async
        if isinstance(acc, Pending):
            raise Hazard("an accumulator is used before its wait")
        product = Pending(a, b, acc, use_acc)
        for slot in product.operands():
            if slot.writers:
                raise Hazard(f"{slot.name} is read while it is being filled")
            slot.readers += 1
        self.scheduler.current.groups.append(product)
        self.scheduler.pause()
        return product

    def mma_wait(self, left: int, deps: Sequence[Any]) -> Any:
        self.scheduler.pause()
        groups = self.scheduler.current.groups
        while len(groups) > left:
            groups.popleft().finish()
        found = [one.value if isinstance(one, Pending) else one for one in deps]
        if any(one is None for one in found):
            raise Hazard("a wait does not cover the product that it names")
        return found[0] if len(found) == 1 else tuple(found)


def _store(pointer: Pointer, value: Tensor, mask: Tensor) -> None:
    offsets, value, mask = torch.broadcast_tensors(pointer.offset, value, mask)
    at = offsets[mask] + pointer.to.first
    if len(at) and not 0 <= int(at.min()) <= int(at.max()) < len(pointer.to.storage):
        raise Hazard("something is written outside of the output")
    pointer.to.written.index_add_(0, at, torch.ones_like(at, dtype=torch.int32))
    pointer.to.storage[at] = value[mask]


def _extreme(name: str) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return getattr(torch, name + "imum")(torch.as_tensor(a), torch.as_tensor(b))
        return I32({"min": min, "max": max}[name](a, b))

    return apply


def _jit(function: Any = None, **_options: object) -> Any:
    return function if function is not None else lambda one: one


class Emulator:
    """The kernel in `source`, to be launched: see `launch`."""

    def __init__(self, source: str | None = None) -> None:
        self.program: Program | None = None
        self.module = ModuleType("emulated_hopper_forward")
        text = SOURCE.read_text() if source is None else source
        with self._stand_ins():
            exec(compile(text, str(SOURCE), "exec"), self.module.__dict__)

    @contextmanager
    def _stand_ins(self) -> Iterator[None]:
        """Modules that the kernel imports from."""

        def here(name: str) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                return getattr(self.program, name)(*arguments, **named)

            return call

        def layout(*_arguments: object) -> None: ...

        language = SimpleNamespace(
            constexpr=lambda value: value,
            int32=torch.int32,
            int64=torch.int64,
            float32=torch.float32,
            program_id=lambda _axis: I32(self.program.number),
            num_programs=lambda _axis: I32(self.program.programs),
            allocate_shared_memory=here("allocate"),
            warp_specialize=here("specialize"),
            static_range=range,
            static_assert=lambda condition: None if condition else 1 / 0,
            cdiv=lambda a, b: (a + b - 1) // b,
            minimum=_extreme("min"),
            maximum=_extreme("max"),
            arange=lambda first, end, _layout: torch.arange(first, end, dtype=torch.int32),
            zeros=lambda shape, dtype, _layout: torch.zeros(*shape, dtype=dtype),
            full=lambda shape, value, dtype, _layout: torch.full(shape, value, dtype=dtype),
            where=torch.where,
            exp2=torch.exp2,
            log2=torch.log2,
            max=lambda x, axis: x.amax(axis),
            sum=lambda x, axis: x.sum(axis),
            convert_layout=lambda x, _layout: x,
            inline_asm_elementwise=lambda _asm, _constraints, values, **_options: values[0],
            store=_store,
            **dict.fromkeys(
                ("NVMMADistributedLayout", "DotOperandLayout", "SliceLayout", "BlockedLayout"),
                layout,
            ),
        )
        mbarrier = SimpleNamespace(
            MBarrierLayout=layout,
            init=self._initialize,
            wait=here("wait"),
            arrive=here("arrive"),
            expect=here("expect"),
        )
        hopper = SimpleNamespace(
            fence_async_shared=layout,
            mbarrier=mbarrier,
            tma=SimpleNamespace(async_load=here("load")),
            warpgroup_mma=here("mma"),
            warpgroup_mma_wait=here("mma_wait"),
        )
        gluon = SimpleNamespace(jit=_jit, language=language)
        modules: dict[str, Any] = {
            "triton": SimpleNamespace(),
            "triton.experimental": SimpleNamespace(gluon=gluon),
            "triton.experimental.gluon": gluon,
            "triton.experimental.gluon.language": language,
            "triton.experimental.gluon.language.nvidia": SimpleNamespace(hopper=hopper),
            "triton.experimental.gluon.language.nvidia.hopper": hopper,
        }
        with patch.dict("sys.modules", modules):
            yield

    @staticmethod
    def _initialize(barrier: Barrier, count: int) -> None:
        barrier.count = barrier.missing = count

    def launch(
        self, programs: int, arguments: Sequence[Any], constants: dict[str, Any], *, seed: int = 0
    ) -> list[Program]:
        """`arguments` as of the kernel: descriptors, then o, lse and numbers."""
        q, k, v, o, lse, *numbers = arguments
        described = [Descriptor(one.base, one.block_shape) for one in (q, k, v)]
        outputs = [Output.of(o), Output.of(lse)]
        pointers = [Pointer(one) for one in outputs]
        *whole, scale = numbers
        scalars = [I32(one) if -(2**31) <= one < 2**31 else I64(one) for one in whole]
        scale = float(torch.tensor(scale, dtype=torch.float32))
        ran = []
        for number in range(programs):
            self.program = Program(number, programs, seed * 1000 + number)
            self.module.__dict__["hopper_forward_kernel"](
                *described, *pointers, *scalars, scale, **constants
            )
            ran.append(self.program)
        for one, tensor in zip(outputs, (o, lse), strict=True):
            written = one.written.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            if not bool((written == 1).all()):
                raise Hazard("an element of the output was not written once")
        return ran
