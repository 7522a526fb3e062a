"""The JSON Schema of scenario files: the models, and the short forms replaced before they apply."""

from typing import Any

from pydantic import BaseModel

from ..axes import ALIASES
from .fields import PLANS

TITLE = "attnbench scenario"
"""By this the pytest plugin knows the schema that a file names."""


def schema_of(scenario: type[BaseModel]) -> dict[str, Any]:
    """For editors; the command line checks more, such as that backends exist."""
    made = scenario.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = TITLE
    for holder in ("Axes", "Grid", "ExtraCase"):
        fields = made["$defs"][holder]["properties"]
        for short, full in ALIASES.items():
            fields[short] = {**fields[full], "description": f"Short for {full}.", "title": short}
    made["properties"]["plan"] = {
        "description": made["properties"]["plan"]["description"],
        "default": "standard",
        "anyOf": [{"enum": list(PLANS)}, {"$ref": "#/$defs/Plan"}],
    }
    for option in made["properties"]["contrast"]["anyOf"]:
        if option.get("type") == "array":
            option["items"]["enum"] += list(ALIASES)
    for holder in (made, *made["$defs"].values()):
        holder["description"] = " ".join(holder["description"].split())
        for field in holder["properties"].values():
            # An empty list or a whole model as default only means "not given".
            if field.get("default") == [] or isinstance(field.get("default"), dict):
                del field["default"]
    return made
