"""JSON Schemas of the records that commands write, from their types: what each key holds is said in the docstrings."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields, is_dataclass
from typing import Any

from ropectl import records
from ropectl.records.json_form import key_of
from ropectl.records.reading import KINDS, adapter
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.geometry import RopeGeometry

#: What has a schema, by file name.
DOCUMENTS: dict[str, Any] = {kind.kind: kind for kind in KINDS} | {
    "patch": records.PatchRecord,
    "plan": records.PlanRecord,
    "metrics-line": records.MetricsLine,
}

_TYPES = {
    name: found
    for name, found in {**vars(records), "RopeGeometry": RopeGeometry, "DerivedValue": DerivedValue}.items()
    if isinstance(found, type) and is_dataclass(found)
}


def schema(name: str) -> dict[str, Any]:
    """Returns the JSON Schema of a record."""
    made = adapter(DOCUMENTS[name]).json_schema()
    for part in (made, *made.get("$defs", {}).values()):
        _describe(part, _TYPES[part["title"]])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def schema_text(name: str) -> str:
    """Returns the content of its file."""
    return json.dumps(schema(name), indent=1) + "\n"


def _describe(part: dict[str, Any], kind: type[Any]) -> None:
    """Puts what docstrings say to the object and to each of its keys, and takes out the titles made from names."""
    told = {name: text for base in reversed(kind.__mro__) for name, text in _attributes(base).items()}
    part["description"] = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
    properties = {}
    for one in fields(kind):
        entry = {key: value for key, value in part["properties"][one.name].items() if key not in ("title", "default")}
        properties[key_of(one)] = {"description": told[one.name], **entry}
    part["properties"] = properties


def _attributes(kind: type[Any]) -> dict[str, str]:
    """The part ``Attributes`` of a docstring, by name."""
    _, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    listed = listed.partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", listed, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in found}
