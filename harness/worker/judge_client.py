"""What a worker asks its judge (judge.py), and how it hands over results: as raw memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from ..cases.case import Case, fields_of
from ..measure.correctness import write_rows
from ..measure.peak_memory import release
from ..measure.raw_memory import pieces
from .phases import WorkerConfig

Check = Literal["first", "wide", "process", "after"]


class Ask(Protocol):
    """Sends a request and `size` bytes in pieces; returns the answer and its bytes."""

    def __call__(
        self, request: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
    ) -> tuple[dict[str, Any], bytes | bytearray]: ...


class NotJudged(Exception):
    """The judge could not do what it was asked, in words."""


class JudgeClient:
    """Asks the judge about one problem at a time. Every method raises NotJudged."""

    def __init__(self, ask: Ask, config: WorkerConfig) -> None:
        self._ask, self._config = ask, config

    def exact_result(self, problem: Problem, order: str, check: Check) -> int:
        """Let it compute one ("first": two, the other with wide scores); the seed of its inputs."""
        release(self._config.device)  # it needs memory of the same device
        request = {"problem": fields_of(problem), "order": order, "seed": self._config.seed}
        asked = {"op": "exact", **request, "device": str(self._config.device), "check": check}
        return int(self._answer(asked)[0]["values_seed"])

    def write_gradient(self, problem: Problem, check: Check, whole: Tensor) -> None:
        """Write the output's gradient of a check: zero outside the rows that are judged."""
        answer, data = self._answer({"op": "gradient", "check": check})
        part = torch.frombuffer(bytearray(data), dtype=TORCH_DTYPE[problem.dtype])
        part = part.reshape(answer["shape"]).to(whole.device)
        write_rows(whole, answer["entries"], answer["rows"], part)

    def complaint(
        self,
        case: Case,
        exactness: str,
        check: Check,
        results: Sequence[Tensor],
    ) -> str:
        """What is wrong with an output and gradients; of wide scores with either. The device must
        have finished.
        """
        described = [{"shape": list(one.shape), "dtype": str(one.dtype)} for one in results]
        asked = {"op": "result", "case": case.fields(), "check": check, "exactness": exactness}
        size = sum(one.numel() * one.element_size() for one in results)
        data = (piece for one in results for piece in pieces(one))
        return str(self._answer({**asked, "tensors": described}, data, size)[0]["complaint"])

    def _answer(
        self, request: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
    ) -> tuple[dict[str, Any], bytes | bytearray]:
        answer = self._ask(request, data, size)
        if answer[0]["failed"]:
            raise NotJudged(answer[0]["failed"])
        return answer
