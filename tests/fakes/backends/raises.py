"""A backend with a bug."""


def prepare(problem, inputs, weights):
    def call():
        raise KeyError("a bug of the backend")

    return call
