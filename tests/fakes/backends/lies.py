"""A wrong backend: it leaves out the last 64 keys."""


def prepare(problem, inputs, weights):
    q, k, v = (x.detach() for x in inputs)
    short = max(1, problem.kv_seq_len - 64)
    return lambda: (q @ k[..., :short, :].mT * problem.scale).softmax(-1) @ v[..., :short, :]
