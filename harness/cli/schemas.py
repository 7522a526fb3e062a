"""JSON Schemas of what attnbench reads and writes, made from the types, by name."""

from typing import Any

from ..files.errors import BadInput, instead_of, shown
from ..run.packs import packs

OF_FILES = ("scenario", "suite", "rows")


def names() -> list[str]:
    """Files, then the commands whose --json is described."""
    from ..rows.documents import DOCUMENTS

    return [*OF_FILES, *DOCUMENTS, *(name for pack in packs() for name in pack.documents)]


def schema_named(name: str) -> dict[str, Any]:
    """Raises BadInput."""
    from ..rows.documents import DOCUMENTS
    from ..scenario import schema

    if name in ("scenario", "suite"):
        return schema(of_suites=name == "suite")
    if name == "rows":
        return of_rows()
    known = {**DOCUMENTS, **{name: of for pack in packs() for name, of in pack.documents.items()}}
    if name not in known:
        raise BadInput(f"no schema {shown(name)}; {instead_of(name, names())}")
    return of_document(name, known[name])


def of_rows() -> dict[str, Any]:
    """A line of rows.jsonl: a row of a kind, which may have fields of later versions."""
    from pydantic.json_schema import models_json_schema

    from ..rows.model import KINDS

    of, made = models_json_schema([(model, "validation") for model in KINDS.values()])
    for kind, model in KINDS.items():
        made["$defs"][model.__name__]["properties"]["kind"] = {"const": kind}
    return _whole("rows", {"anyOf": list(of.values()), **made})


def of_document(name: str, kind: Any) -> dict[str, Any]:
    """What a command prints, or each line of it."""
    from pydantic import TypeAdapter

    from ..rows.documents import OPEN

    made = TypeAdapter(kind).json_schema()
    for one in (made, *made.get("$defs", {}).values()):
        if "properties" in one and one["title"] not in OPEN:
            one["additionalProperties"] = False
    return _whole(name, made)


def _whole(name: str, made: dict[str, Any]) -> dict[str, Any]:
    from ..scenario.json_schema import DIALECT

    return {"$schema": DIALECT, **made, "title": f"attnbench {name}"}
