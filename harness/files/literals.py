"""What a Python file of ours declares, read without running it."""

import ast
from collections.abc import Collection
from pathlib import Path
from typing import Any


def literals(path: Path, names: Collection[str]) -> dict[str, Any]:
    """The values of these names at the top level of a file, as far as it has them; of `__doc__` its
    docstring. Raises SyntaxError, and ValueError for a value that is not written out.
    """
    module = ast.parse(path.read_bytes())
    found: dict[str, Any] = {"__doc__": ast.get_docstring(module)} if "__doc__" in names else {}
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in names:
                    found[target.id] = ast.literal_eval(node.value)
    return found
