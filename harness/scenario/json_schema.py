"""The JSON Schema of scenario files: what the models give, with the short forms that are taken
before they see a value.
"""

from typing import Any

from pydantic import BaseModel

from .fields import ALIASES, PLANS


def schema_of(scenario: type[BaseModel]) -> dict[str, Any]:
    """Editors check and complete with it; the command line checks more, such as that backends
    exist.
    """
    made = scenario.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for holder in ("Axes", "Grid", "ExtraCase"):
        fields = made["$defs"][holder]["properties"]
        for short, full in ALIASES.items():
            fields[short] = {**fields[full], "description": f"Short for {full}.", "title": short}
    plan = made["properties"]["plan"]
    made["properties"]["plan"] = {
        "description": plan["description"],
        "default": "standard",
        "anyOf": [{"enum": list(PLANS)}, {"$ref": "#/$defs/Plan"}],
    }
    contrast = next(
        option
        for option in made["properties"]["contrast"]["anyOf"]
        if option.get("type") == "array"
    )
    contrast["items"]["enum"] += list(ALIASES)
    for field in made["properties"].values():
        _drop_computed_default(field)
    for holder in made["$defs"].values():
        for field in holder["properties"].values():
            _drop_computed_default(field)
    return made


def _drop_computed_default(field: dict[str, Any]) -> None:
    """An empty list and a whole model as default only say "not given"."""
    if field.get("default") == [] or isinstance(field.get("default"), dict):
        del field["default"]
