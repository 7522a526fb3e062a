"""Run analysis.ipynb from its first cell to its last, and keep what the cells print and draw."""

import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

NOTEBOOK = Path(__file__).parent / "analysis.ipynb"


def executed(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with new outputs; the names that they define are theirs alone."""
    names: dict[str, Any] = {"__name__": "__main__"}
    made, count = [], 0
    with plt.rc_context({"backend": "agg"}):
        for cell in cells:
            if cell["cell_type"] == "code":
                count += 1
                outputs = outputs_of("".join(cell["source"]), names, count)
                made.append({**cell, "execution_count": count, "outputs": outputs})
            else:
                made.append(cell)
    return made


def outputs_of(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    printed, tree = io.StringIO(), ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)  # noqa: S102 - it is our own notebook
        value = None
        if last is not None:
            shown = compile(ast.Expression(last.value), str(NOTEBOOK), "eval")
            value = eval(shown, names)  # noqa: S307 - likewise
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        result = {"data": data, "execution_count": count, "metadata": {}}
        found.append({**result, "output_type": "execute_result"})
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", bbox_inches="tight")
        data = {"image/png": base64.b64encode(picture.getvalue()).decode() + "\n"}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return found


if __name__ == "__main__":
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    notebook["cells"] = executed(notebook["cells"])
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
