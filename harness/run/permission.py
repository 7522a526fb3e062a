"""Code that the user has lying about is imported only where the user said so: `--backend
module:attribute`, and `--allow-import`.
"""

from collections.abc import Iterable

from ...impls.discovery.names import attribute_from_flag, attribute_from_name
from ..errors import BadInput


def names_of(flags: Iterable[str]) -> dict[str, str]:
    """The backends that `--backend` flags name, each with its flag. Raises BadInput."""
    found: dict[str, str] = {}
    for text in flags:
        attribute = attribute_from_flag(text)
        if attribute is None:
            raise BadInput(
                f"--backend {text!r}: wanted module:attribute, such as my_package.attention:attend;"
                " --backends takes other names"
            )
        found[attribute.name] = f"--backend {text}"
    return found


def refuse_imports(backends: Iterable[str], *, allowed: bool) -> None:
    """Raises BadInput where a backend would be imported from a module of the user's, and nobody has
    said that it may.
    """
    attributes = [attribute for name in backends if (attribute := attribute_from_name(name))]
    if attributes and not allowed:
        modules = ", ".join(dict.fromkeys(attribute.module for attribute in attributes))
        raise BadInput(
            f"{attributes[0].name}: to measure it, workers import and run {modules}; add"
            " --allow-import if you trust that code"
        )
