"""Our Triton kernels with a text changed."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import attnbench.impls._triton as package

SOURCE = Path(str(package.__file__)).parent / "kernels"


def changed_kernels(folder: Path, name: str, change: Callable[[str], str]) -> ModuleType:
    """Their package, copied into a new folder file by file and imported by this name.

    Files, because Triton reads the source of its kernels.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.glob("*.py")}
    changed = {file: change(text) for file, text in texts.items()}
    assert changed != texts, f"nothing in the kernels is changed by {name}"
    folder.mkdir()
    for file, text in changed.items():
        (folder / file).write_text(text, encoding="utf-8")
    spec = spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader  # noqa: PT018 - for the type checker
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
