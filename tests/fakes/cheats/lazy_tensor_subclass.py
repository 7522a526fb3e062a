"""Returns a tensor subclass that computes attention when an operation first reads it."""

from attnbench.cheats._shared import LazyTensor

INCORRECT = "LazyTensor|torch.Tensor"


def prepare(problem, inputs, weights):
    return lambda: LazyTensor(inputs)
