"""The JSON Schemas that editors get: the models of scenarios, and the short forms they accept."""

from typing import Any

from attnbench.harness.cases.case import ALIASES
from attnbench.harness.rows.plans import PLANS
from attnbench.harness.scenario import Scenario
from attnbench.harness.scenario.fields import Plan
from attnbench.harness.scenario.model_cases import ModelCase
from attnbench.harness.scenario.suite_file import MOST_ENTRIES, SuiteEntry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "attnbench scenario"
"""By this the pytest plugin knows the schema that a file names."""


def scenario_schema() -> dict[str, Any]:
    """For editors; the command line checks more, such as that backends exist."""
    made = Scenario.model_json_schema()
    made["$schema"] = DIALECT
    made["title"] = TITLE
    for holder in ("Axes", "Grid", "ExtraCase"):
        fields = made["$defs"][holder]["properties"]
        for short, full in ALIASES.items():
            fields[short] = {**fields[full], "description": f"Short for {full}.", "title": short}
    of_models = ModelCase.model_json_schema()["properties"]
    made["$defs"]["ExtraCase"]["properties"] |= {
        name: of_models[name] for name in ("model", "phase", "queries", "tp")
    }
    made["properties"]["plan"] = {
        "description": made["properties"]["plan"]["description"],
        "default": "standard",
        "anyOf": [{"enum": list(PLANS)}, {"$ref": "#/$defs/Plan"}],
    }
    for option in made["properties"]["contrast"]["anyOf"]:
        if option.get("type") == "array":
            option["items"]["enum"] += list(ALIASES)
    _tidy(made, *made["$defs"].values())
    return made


def suite_schema() -> dict[str, Any]:
    """For editors: a list of scenarios, each a name or a mapping with changes of its own."""
    entry, plan = SuiteEntry.model_json_schema(), Plan.model_json_schema()
    entry["properties"]["plan"] = {
        "description": entry["properties"]["plan"]["description"],
        "anyOf": [{"enum": list(PLANS)}, {"$ref": "#/$defs/Plan"}],
    }
    _tidy(entry, plan)
    name = {key: entry["properties"]["scenario"][key] for key in ("type", "minLength")}
    return {
        "$schema": DIALECT,
        "title": "Suite",
        "description": "Scenarios that are measured into one folder, with one report.",
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_ENTRIES,
        "items": {"anyOf": [name, {"$ref": "#/$defs/SuiteEntry"}]},
        "$defs": {**plan.pop("$defs", {}), "Plan": plan, "SuiteEntry": entry},
    }


def _tidy(*holders: dict[str, Any]) -> None:
    for holder in holders:
        holder["description"] = " ".join(holder["description"].split())
        for field in holder["properties"].values():
            field["description"] = " ".join(field["description"].split())
            # An empty list or a whole model as default only means "not given".
            if field.get("default") == [] or isinstance(field.get("default"), dict):
                del field["default"]
