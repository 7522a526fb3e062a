"""Texts that users read say `20 %`; what users type is `20%`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for folder in ("harness", "impls", "reports") for path in (ROOT / folder).rglob("*.py")
)
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TYPED = re.compile(
    r"(latency|peak_bytes|energy_per_call): [0-9.]+%"  # --gate
    r"|--tolerance [0-9.]+%|such as [0-9.]+%|^[0-9.]+%$"  # attnbench wall
    r"|from 0%|write it as [0-9.]+%"
)
CLOSE = re.compile(r"[0-9]%(?!\d)")
CODE = re.compile(r"```.*?```|^(?: {4}|\t).*?$|``?[^`]+?``?", re.DOTALL | re.MULTILINE)


def close_percentages(source: str) -> Iterator[str]:
    """`20%` in texts of Python code, and formats that write it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = TYPED.sub("", node.value)
            if CLOSE.search(text) or re.search(r"\{[^{}]*:[^{}]*%\}", text):
                yield node.value
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, [*node.values[1:], None], strict=True):
                if not isinstance(value, ast.FormattedValue):
                    continue
                spec = "" if value.format_spec is None else ast.unparse(value.format_spec)
                joined = isinstance(after, ast.Constant) and str(after.value).startswith("%")
                if spec.rstrip("'\"").endswith("%") or joined:
                    yield ast.unparse(node)


def test_code_writes_percentages_with_a_space():
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in SOURCES
        for text in close_percentages(path.read_text())
    }
    assert not found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_write_percentages_with_a_space(path: Path):
    """Outside of code, which shows what is typed."""
    assert not CLOSE.findall(CODE.sub("", path.read_text()))


@pytest.mark.parametrize(
    "source",
    ["f'{x:.0%}'", "f'{x:.0f}% of it'", "'within 5% of it'", "'{:.0%} of it'.format(x)"],
)
def test_each_way_to_write_one_without_a_space_is_found(source):
    assert list(close_percentages(source))


@pytest.mark.parametrize("source", ["f'{x:.0f} %'", "'latency: 5%'", "'%Y%m%dT'", "x % 5"])
def test_other_percent_signs_are_not(source):
    assert not list(close_percentages(source))
