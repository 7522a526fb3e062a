"""What decides on right and wrong: it has the exact result, and gets raw results from the worker.

It runs in a process of its own (judge_process.py), which imports no backend. It makes the inputs
again from the run's seed, computes the exact result there, and tells its verdict to the run itself;
the worker hears it too, to end a wrong case early. Verdicts, JSON-ready:

    verdict {case, check, exactness, rows_seed, values_seed, complaint, error_l2_ratio,
             output_cosine, error_ratio, error_limit_ratio, output_digest}
        check: one of CHECKS; rows_seed: what the judged rows were drawn from, unknown to the worker
        before; values_seed: of the inputs; output_digest: of "process", whose inputs are equal in
        every process, all bits of the output

What the worker asks, each answered by an object with `failed`, a reason or "", and by bytes:

    exact {problem, order, device, seed, check}
        compute the exact result; answered by the seed of the inputs' numbers
    gradient {check}
        the output's gradient, for a backward pass: entries, rows, shape, and its bytes
    result {case, check, exactness, tensors}, and the bytes of an output, gradients, or both
        answered by the complaint
"""

import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import isfinite, prod
from typing import Any

import torch
from torch import Tensor

from ..cases.case import case_of, problem_of
from ..files.errors import first_line
from ..measure.correctness import WIDE_SCORE, CheckResult, CorrectnessCheck
from ..measure.input_values import InputValues
from ..measure.near_problems import explained
from ..measure.output_check import FROM_MEMORY, POSITIONS, SAME_RATIO
from ..measure.peak_memory import release
from ..rows.status import ERRORS

CHECKS = ("first", "wide", "process", "after")
"""The first call of a case; one with wide scores; the first one of a process, with other signs of
the inputs; one after the last block, with random numbers that are new."""
DIGEST_BYTES = 16
SEED_BITS = 62  # of a seed of torch, which JSON and a row can hold
DTYPES = {str(one): one for one in (torch.float32, torch.bfloat16, torch.float16, torch.float64)}

Answer = tuple[dict[str, Any], bytes]


class Judge:
    """Knows one problem at a time. `say`: tells the run."""

    def __init__(self, say: Callable[[dict[str, Any]], object]) -> None:
        self.say = say
        self._device = torch.device("cpu")
        self._exact: dict[str, CorrectnessCheck] = {}  # by check
        self._values_seed = 0
        self._order = "heads"
        self._first: dict[str, Tensor] = {}  # elements of first results, by case

    def answer(self, request: Mapping[str, Any], data: bytearray) -> Answer:
        """Raises ValueError, KeyError for what is no request."""
        try:
            if request["op"] == "exact":
                return self._prepare(request), b""
            if request["op"] == "gradient":
                return self._gradient(request["check"])
            return self._judged(request, data), b""
        except (RuntimeError, MemoryError) as error:
            return {"failed": first_line(error)}, b""
        finally:
            if self._device.type == "cuda":
                release(self._device)  # the device's memory is for the cases

    def _prepare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The exact results of a check."""
        self._exact.clear()
        self._device, check = torch.device(request["device"]), request["check"]
        if check == "first":
            self._first.clear()
        seed = self._values_seed = request["seed"]
        problem = problem_of(request["problem"])
        self._order = request["order"]
        values = InputValues(problem, self._device, seed, request["order"])
        if check == "process":
            values.flip_inputs()
        elif check == "after":
            self._values_seed = secrets.randbits(SEED_BITS)
            values.draw(self._values_seed)
        self._exact[check] = _exact(values, few_rows=check != "first")
        if check == "first":
            values.widen()
            self._exact["wide"] = _exact(values, few_rows=True, wide=True)
        return {"failed": "", "values_seed": self._values_seed}

    def _gradient(self, check: str) -> Answer:
        exact = self._exact[check]
        assert exact.gradient is not None
        part = exact.gradient.cpu().contiguous()
        found = {"entries": exact.entries, "rows": exact.rows, "shape": list(part.shape)}
        return {"failed": "", **found}, bytes(part.view(torch.uint8).numpy())

    def _judged(self, request: Mapping[str, Any], data: bytearray) -> dict[str, Any]:
        case, check, exactness = case_of(request["case"]), request["check"], request["exactness"]
        exact = self._exact[check]
        if case.problem != exact.problem:
            raise ValueError(f"{case.id} is not of the problem that is judged")
        results = self._tensors(request["tensors"], data)
        digest = None
        if check == "process":
            bits = memoryview(data)[: results[0].nbytes]
            digest = blake2b(bits, digest_size=DIGEST_BYTES).hexdigest()
        backward = case.problem.backward
        output = None if backward and check == "wide" else results[0]
        gradients = results if output is None else results[1:]
        wanted = len(exact.exact) - 1
        found = CheckResult(complaint=f"{len(gradients)} gradients; wanted {wanted}")
        if len(gradients) == wanted or exactness == "other":
            found = exact.check(output, gradients, exactness)
        complaint = found.complaint
        elements = _some_of(gradients if backward else results)
        if check == "first":
            self._first[case.id] = elements
            if complaint and exactness == "exact":
                values = InputValues(case.problem, self._device, self._values_seed, self._order)
                complaint += explained(case.problem, values.tensors, results[0], exact.seed)
        elif check == "wide" and complaint:
            complaint = f"with scores up to {WIDE_SCORE:g}: {complaint}"
            if _near(elements, self._first.get(case.id), SAME_RATIO[case.problem.dtype]):
                complaint = FROM_MEMORY
        errors = {name: getattr(found, name) for name in ERRORS}
        known = {name: one for name, one in errors.items() if one is not None and isfinite(one)}
        seeds = {"rows_seed": exact.seed, "values_seed": self._values_seed}
        verdict = {"event": "verdict", "case": case.id, "check": check, "exactness": exactness}
        errors = {**dict.fromkeys(ERRORS), **known}
        told = {**verdict, **seeds, **errors, "output_digest": digest, "complaint": complaint}
        self.say(told)
        return {"failed": "", "complaint": complaint}

    def _tensors(self, described: list[Mapping[str, Any]], data: bytearray) -> list[Tensor]:
        """Raises ValueError if the bytes are not those of the tensors described."""
        found, begin = [], 0
        for one in described:
            shape, dtype = one["shape"], DTYPES[one["dtype"]]
            size = prod(shape) * dtype.itemsize
            if size > len(data) - begin:
                raise ValueError("fewer bytes than the tensors described have")
            tensor = torch.empty(shape, dtype=dtype)
            if size:
                tensor = torch.frombuffer(data, dtype=dtype, count=prod(shape), offset=begin)
            found.append(tensor.reshape(shape).to(self._device))
            begin += size
        return found


def _exact(values: InputValues, *, few_rows: bool, wide: bool = False) -> CorrectnessCheck:
    """The exact result of the present values, on rows that nobody knows yet."""
    seed = secrets.randbits(SEED_BITS)
    return CorrectnessCheck(values.problem, *values.tensors, seed, few_rows=few_rows, wide=wide)


def _some_of(results: list[Tensor]) -> Tensor:
    """Elements at the same places of each tensor of a shape."""
    flat = [tensor.flatten() for tensor in results]
    return torch.cat([one[:: max(1, one.numel() // POSITIONS)].double().cpu() for one in flat])


def _near(found: Tensor, earlier: Tensor | None, most_ratio: float) -> bool:
    if earlier is None or earlier.shape != found.shape:
        return False
    return bool((found - earlier).norm() <= most_ratio * earlier.norm())
