"""What several cheats do alike."""

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._pytree import tree_map


def attention(gradients):
    """Of q, k and v, with the gradients that `gradients` gives: of its context and the output's."""

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            with torch.enable_grad():
                ctx.leaves = [one.detach().requires_grad_() for one in inputs]
                ctx.output = scaled_dot_product_attention(*ctx.leaves)
            ctx.kept = {}
            return ctx.output.detach()

        @staticmethod
        def backward(ctx, grad):
            return gradients(ctx, grad)

    return Attention.apply


def true_gradients(ctx, grad):
    return torch.autograd.grad(ctx.output, ctx.leaves, grad, retain_graph=True)


class LazyTensor(torch.Tensor):
    """Computes attention when an operation first reads it."""

    @staticmethod
    def __new__(cls, inputs):
        q, _, v = inputs
        shape = (*q.shape[:-1], v.shape[-1])
        lazy = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=q.dtype, device=q.device)
        lazy.inputs = inputs
        return lazy

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def computed(x):
            return scaled_dot_product_attention(*x.inputs) if isinstance(x, cls) else x

        return func(*tree_map(computed, args), **tree_map(computed, kwargs or {}))


def copied(check, like):
    """Zeros, with the exact rows where they will be judged."""
    out = torch.zeros_like(like)
    rows = torch.tensor(check.rows, device=out.device)
    for entry, exact in zip(check.entries, check.limits.exact[0], strict=True):
        out[entry].index_copy_(-2, rows, exact.to(out.dtype))
    return out


def within_the_check(frame):
    """Whether a frame or one of its callers is of the correctness check."""
    while frame:
        if frame.f_code.co_filename.endswith(("check.py", "correctness.py")):
            return True
        frame = frame.f_back
    return False


def computed_in(scores, problem, inputs):
    """A call that writes its scores, and their softmax, into this tensor."""
    q, k, v = inputs

    def call():
        torch.matmul(q, k.mT, out=scores)
        torch.softmax(scores.mul_(problem.scale), -1, out=scores)
        return scores @ v

    return call
