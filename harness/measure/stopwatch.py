"""How long parts of some work take."""

from time import perf_counter


class Stopwatch:
    """Measures the time inside it, also if that ends with an error."""

    def __init__(self) -> None:
        self.total_s = 0.0

    def __enter__(self) -> None:
        self._since = perf_counter()

    def __exit__(self, *_: object) -> None:
        self.total_s += perf_counter() - self._since
