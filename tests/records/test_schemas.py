"""The JSON Schemas in docs are those of the types, and hold for what commands write; read here by a small validator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ropectl.records import to_json
from ropectl.records.reading import read_record
from tests.records.test_reading import GIVEN, STORED
from tests.report.records import finetuning, perplexity
from tests.report.records_to_draw import metrics

SCHEMAS = {path.name.partition(".")[0]: json.loads(path.read_text()) for path in (STORED / "schemas").glob("*.json")}

TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "object": dict, "array": list,
}  # fmt: skip


def violations(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> list[str]:
    """What of a value contradicts a schema, as far as our schemas go."""
    if "$ref" in schema:
        return violations(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, place)
    if "anyOf" in schema:
        found = [violations(value, choice, root, place) for choice in schema["anyOf"]]
        return [] if [] in found else min(found, key=len)
    kind = schema.get("type")
    is_kind = kind is None or (isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)))
    if not is_kind:
        return [f"{place}: no {kind}"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        too_low = value < schema.get("minimum", value) or value <= schema.get("exclusiveMinimum", value - 1)
        return [f"{place}: out of bounds"] if too_low or value > schema.get("maximum", value) else []
    if isinstance(value, list):
        found = [f"{place}: too few"] if len(value) < schema.get("minItems", 0) else []
        items = enumerate(value)
        return found + [v for i, item in items for v in violations(item, schema.get("items", {}), root, f"{place}.{i}")]
    if isinstance(value, dict):
        found = [f"{place}.{name}: missing" for name in schema.get("required", ()) if name not in value]
        own, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key, item in value.items():
            rule = own.get(key, others if isinstance(others, dict) else {})
            found += violations(item, rule, root, f"{place}.{key}")
        return found
    return []


@pytest.mark.parametrize("name", GIVEN)
def test_what_commands_write_holds(name: str) -> None:
    record = read_record(GIVEN[name], name)
    written = json.loads(json.dumps(to_json(record)))
    schema = SCHEMAS[record.kind]
    assert violations(GIVEN[name], schema, schema) == [] == violations(written, schema, schema)
    assert set(written) <= set(schema["properties"]), "every key is in the schema"


def test_trainings_hold() -> None:
    for name, found in (("finetune", [finetuning()]), ("metrics-line", metrics())):
        for value in json.loads(json.dumps(found)):
            assert violations(value, SCHEMAS[name], SCHEMAS[name]) == []


def test_the_validator_finds_something() -> None:
    schema, record = SCHEMAS["perplexity"], perplexity()
    record["points"][0]["perplexity"] = -1.0
    del record["method"]
    assert violations(record, schema, schema) == [".method: missing", ".points.0.perplexity: out of bounds"]


def test_every_key_is_explained() -> None:
    for name, schema in SCHEMAS.items():
        for part in (schema, *schema.get("$defs", {}).values()):
            for key, entry in part["properties"].items():
                assert entry["description"].endswith((".", "]")), (name, key)
