"""A tool's input schema from elsewhere, as small models and the grammars of llama.cpp can take it. Pure.

One schema that a model server cannot turn into a grammar makes it refuse every request. So only words that mean
something to models and grammars are kept, each only with a value that it can have; what `$ref` names stands in
its place, and `X or null` is `X`.
"""

from __future__ import annotations

import json

DESCRIPTION_LIMIT, DEFAULT_LIMIT = 300, 200
# References within references that are followed; levels and subschemas that are looked at. Beyond them
# anything is allowed.
REFERENCES, LEVELS, SUBSCHEMAS = 5, 40, 2000
# llama.cpp refuses a grammar in which something is repeated 2,000 times; within an array the numbers multiply.
REPETITIONS = 1000
# The largest number that every reader of JSON knows exactly.
LARGEST = 2 ** 53

TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
# What stands for "anything": llama.cpp refuses a schema that names no type.
ANY = ["string", "number", "boolean", "object", "array"]
_CHOICES = ("anyOf", "oneOf", "allOf")
_NULL = {"type": "null"}


def _is_list_of(value, kinds) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, kinds) for each in value)


def _is_whole(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_type(value) -> bool:
    types = [value] if isinstance(value, str) else value
    return _is_list_of(types, str) and TYPES.issuperset(types)


def _is_json(value, limit=None) -> bool:
    """Whether JSON has the value (it has no infinity), in at most `limit` characters."""
    try:
        written = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return limit is None or len(written) <= limit


# The words that hold no schemas, and the test that their values must pass; `most` limits repetitions.
_KEPT = {
    "type": lambda value, most: _is_type(value),
    "description": lambda value, most: isinstance(value, str) and bool(value),
    "required": lambda value, most: _is_list_of(value, str),
    "enum": lambda value, most: _is_list_of(value, (str, int, float, type(None))) and _is_json(value),
    "additionalProperties": lambda value, most: isinstance(value, bool),
    **dict.fromkeys(("const", "default"), lambda value, most: _is_json(value, DEFAULT_LIMIT)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"),
                    lambda value, most: _is_whole(value) and 0 <= value < most),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
                    lambda value, most: _is_whole(value) and abs(value) < LARGEST),
}


def clean(schema) -> dict:
    """The schema of an object, cleaned."""
    cleaned = _Cleaner(schema).subschema(schema, 0, 0, REPETITIONS)
    if cleaned.get("type", "object") != "object":
        cleaned = {}
    return dict(cleaned, type="object", properties=cleaned.get("properties", {}))


class _Cleaner:
    def __init__(self, root):
        self._root, self._left = root, SUBSCHEMAS

    def subschema(self, schema, level, references, most) -> dict:
        """`most`: how often something in here may be repeated."""
        self._left -= 1
        if not isinstance(schema, dict) or level > LEVELS or self._left < 0 or references > REFERENCES:
            return {"type": ANY}
        if "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            whole = dict(self._named(schema["$ref"]), **beside)
            return self.subschema(whole, level + 1, references + 1, most)
        kept = {key: value for key, value in schema.items() if key in _KEPT and _KEPT[key](value, most)}
        if len(kept.get("description", "")) > DESCRIPTION_LIMIT:
            kept["description"] = kept["description"][:DESCRIPTION_LIMIT] + "…"
        within = most // max(kept.get("maxItems", 1), kept.get("minItems", 1), 1)
        for key, value in schema.items():
            if key in _CHOICES and isinstance(value, list) and value:
                kept[key] = [self.subschema(each, level + 1, references, most) for each in value]
            elif key == "properties" and isinstance(value, dict):
                kept[key] = {name: self.subschema(each, level + 1, references, most)
                             for name, each in value.items()}
            elif key == "items" or key == "additionalProperties" and isinstance(value, dict):
                kept[key] = self.subschema(value, level + 1, references, within)
        kept = _without_null(kept)
        if not any(key in kept for key in ("type", "enum", "const", "properties", "items") + _CHOICES):
            kept["type"] = ANY
        return kept

    def _named(self, reference) -> dict:
        """What a reference within the schema names; anything if it leads nowhere."""
        found = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        for part in filter(None, reference[1:].split("/")):
            part = part.replace("~1", "/").replace("~0", "~")
            found = found.get(part) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def _without_null(schema) -> dict:
    """An optional value is one that may be left out; a model need not know that it may also be null."""
    for key in ("anyOf", "oneOf"):
        others = [choice for choice in schema.get(key, ()) if choice != _NULL]
        if others and len(others) < len(schema[key]):
            rest = {name: value for name, value in schema.items() if name != key}
            schema = dict(others[0], **rest) if len(others) == 1 else dict(rest, **{key: others})
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"] or ["null"]
        schema = dict(schema, type=types[0] if len(types) == 1 else types)
    if schema.get("default", "") is None:
        del schema["default"]
    return schema
