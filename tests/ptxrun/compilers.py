"""Which function compiles which instruction, by the first part of its name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from . import arithmetic, control, matrices, transfers
from .arithmetic import same
from .code import Code, Site
from .text import Program

COMPILERS: dict[str, Callable[[Site], Any]] = {
    "abs": same(np.abs, 1),
    "add": same(np.add, 2),
    "and": same(np.bitwise_and, 2),
    "bar": control.barrier,
    "barrier": control.barrier,
    "bfe": arithmetic.field,
    "bra": control.jump,
    "brx": control.indexed_jump,
    "cp": transfers.asynchronous,
    "cvt": arithmetic.converted,
    "cvta": arithmetic.parameter_address,
    "div": same(arithmetic.quotient, 2, of_floats=np.divide),
    "elect": control.elected,
    "ex2": same(np.exp2, 1),
    "fence": control.fence,
    "fma": arithmetic.fused,
    "griddepcontrol": control.nothing,
    "ld": transfers.loaded,
    "ldmatrix": transfers.matrix_loaded,
    "lg2": same(np.log2, 1),
    "mad": arithmetic.multiplied_added,
    "max": same(np.maximum, 2, of_floats=np.fmax),
    "mbarrier": control.mbarrier,
    "min": same(np.minimum, 2, of_floats=np.fmin),
    "mma": matrices.multiplied,
    "mov": arithmetic.moved,
    "mul": arithmetic.multiplied,
    "neg": same(np.negative, 1),
    "not": same(np.invert, 1, of_predicates=np.logical_not),
    "or": same(np.bitwise_or, 2),
    "pmevent": control.nothing,
    "rcp": same(np.reciprocal, 1),
    "rem": same(arithmetic.remainder, 2),
    "ret": control.ended,
    "selp": arithmetic.selected,
    "setmaxnreg": control.registers,
    "setp": arithmetic.compared,
    "shfl": control.shuffled,
    "shl": arithmetic.shifted,
    "shr": arithmetic.shifted,
    "st": transfers.stored,
    "stmatrix": transfers.matrix_stored,
    "sub": same(np.subtract, 2),
    "wgmma": matrices.warpgroup,
    "xor": same(np.bitwise_xor, 2),
}
# They see to a guard themselves: what they do is no register of a thread.
MASKED = {"bra", "brx", "cp", "ld", "mbarrier", "ret", "st"}


def bound(program: Program, parameters: dict[str, np.ndarray]) -> Code:
    """NotImplementedError if it has an instruction that nothing here executes."""
    return Code(program, parameters, COMPILERS, MASKED)
