"""What longer sequences need by formula: bytes as polynomials of N, checked against rows."""

from collections.abc import Iterator

from ..data.polynomial import Polynomial, bytes_over_n, coefficient_text
from ..data.row_groups import Group, backends
from ..elements import Block, Table, note
from ..formatting import bytes_text, count_text, list_text

LONG = (10_000, 32 << 10, 128 << 10)
NOT_PREDICTED = "not predicted"


def needs(over_n: list[Group]) -> Iterator[Block]:
    """The bytes that each backend would need at lengths that were not tried."""
    lines, left_out = [], []
    for group in over_n:
        for backend in backends(group.rows):
            columns = ("peak_bytes", "predicted_peak_bytes")
            measured, formula = (bytes_over_n(group.rows, backend, column) for column in columns)
            solved = measured if measured and measured.exact else formula
            if solved is None or not solved.exact:
                if measured is not None and measured.off:
                    left_out.append(backend)
                continue
            by_n = {row["seq_len"]: row for row in group.of_backend(backend)}
            lines.append(
                (
                    group.label or "all",
                    backend,
                    _polynomial_text(solved),
                    "measured" if solved is measured else "formula",
                    _checked(solved),
                    *(_size(solved, by_n, n) for n in LONG),
                )
            )
    if lines:
        yield note(
            "Peak bytes are exact, so the polynomial is solved, not fitted, from the three longest"
            " lengths; all others must agree to the byte. At a short length the peak may be at"
            " another point of the call."
        )
        first = ("problem", "backend", "peak bytes", "solved from", "agree to the byte")
        yield Table(
            title="Peak bytes of a call at lengths that were not tried, in addition to its inputs",
            columns=(*first, *(f"at {length_text(n)}" for n in LONG)),
            rows=tuple(lines),
        )
    if left_out:
        names = list_text(list(dict.fromkeys(left_out)))
        yield note(f"Peak bytes that are not such a polynomial: {names}.")


def _polynomial_text(of: Polynomial) -> str:
    terms = [(of.quadratic, " N²"), (of.linear, " N"), (of.constant, "")]
    texts = [
        f"{'−' if value < 0 else '+' if place else ''} {coefficient_text(abs(value))}{power}"
        for place, (value, power) in enumerate(terms)
        if value
    ]
    return (" ".join(texts).removeprefix("+ ").strip() or "0") + " B"


def _checked(of: Polynomial) -> str:
    if not of.off:
        return f"all {len(of.agrees) + len(of.solved)} lengths"
    return (
        f"from N = {count_text(of.holds_from)} on; not"
        f" {list_text([count_text(n) for n, _ in of.off])}"
    )


def _size(of: Polynomial, by_n: dict[int, dict[str, object]], n: int) -> str:
    row = by_n.get(n, {})
    for column, how in (("peak_bytes", ", measured"), ("predicted_peak_bytes", ", predicted")):
        if isinstance(size := row.get(column), int):
            return bytes_text(size) + how
    return bytes_text(float(of.at(n)))


def length_text(n: int) -> str:
    return "N = 10 000" if n == 10_000 else f"N = {count_text(n)}"
