"""A backend whose package is not installed anywhere."""

NEEDS = ("no_such_package_for_attnbench",)


def prepare(problem, inputs, weights):
    raise AssertionError("must never be loaded")
