"""A tool's input schema from elsewhere, as small models and the grammars of llama.cpp can take it. Pure.

Only words of JSON Schema are touched: a property may be called `title`, and a default may hold anything that JSON can say and
servers can read. One schema that they refuse would make them refuse every request.
"""

from __future__ import annotations

import math

DROPPED = frozenset(("$schema", "$id", "$comment", "$defs", "definitions", "format", "pattern", "examples", "title"))
DESCRIPTION_LIMIT = 300
# References within references that are followed; levels and subschemas that are looked at. Beyond them anything is allowed.
REFERENCES, LEVELS, SUBSCHEMAS = 5, 40, 2000

_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_NULL = {"type": "null"}
# What these words must hold to mean anything; they are left out where they hold something else, or nothing.
_SHAPES = dict({"type": (str, list), "required": list, "enum": list, "description": str},
               **dict.fromkeys(_BY_NAME, dict), **dict.fromkeys(_LISTS, list))


def clean(schema) -> dict:
    """The schema of an object: without DROPPED, with what `$ref` names in its place, with `X` for `X or null`, and with short
    descriptions."""
    cleaned = _Cleaner(schema).subschema(schema, 0, 0)
    if not isinstance(cleaned, dict) or cleaned.get("type", "object") != "object":
        cleaned = {}
    properties = cleaned.get("properties")
    return dict(cleaned, type="object", properties=properties if isinstance(properties, dict) else {})


class _Cleaner:
    def __init__(self, root):
        self._root = root
        self._left = SUBSCHEMAS

    def subschema(self, schema, level, references):
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}
        self._left -= 1
        if level > LEVELS or self._left < 0:
            return {}
        if "$ref" in schema:
            if references == REFERENCES:
                return {}
            named = self._named(schema["$ref"])
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self.subschema(dict(named, **beside), level + 1, references + 1)
        return _without_null({key: self._value(key, value, level + 1, references)
                              for key, value in schema.items() if key not in DROPPED and _means_something(key, value)})

    def _value(self, key, value, level, references):
        if key in _SINGLE and not isinstance(value, list):
            return self.subschema(value, level, references)
        if key in _LISTS + ("items",) and isinstance(value, list):
            return [self.subschema(each, level, references) for each in value]
        if key in _BY_NAME and isinstance(value, dict):
            return {name: self.subschema(each, level, references) for name, each in value.items()}
        if key == "description" and isinstance(value, str) and len(value) > DESCRIPTION_LIMIT:
            return value[:DESCRIPTION_LIMIT] + "…"
        if key == "required":
            return [name for name in value if isinstance(name, str)]
        return _plain(value, LEVELS)

    def _named(self, reference):
        """What a reference within the schema names; anything where it leads nowhere."""
        found = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        for part in filter(None, reference[1:].split("/")):
            part = part.replace("~1", "/").replace("~0", "~")
            found = found.get(part) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def _means_something(key, value) -> bool:
    if key not in _SHAPES:
        return not _is_infinite(value)
    return isinstance(value, _SHAPES[key]) and (bool(value) or key == "properties")


def _is_infinite(value) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _plain(value, levels):
    """A value at most so deep and without infinities, which JSON does not have: null stands for the rest."""
    if isinstance(value, (dict, list)):
        if not levels:
            return None
        if isinstance(value, list):
            return [_plain(each, levels - 1) for each in value]
        return {key: _plain(each, levels - 1) for key, each in value.items()}
    return None if _is_infinite(value) else value


def _without_null(schema):
    """An optional value is one that may be left out; a model need not know that it may also be null."""
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and _NULL in choices:
            others = [choice for choice in choices if choice != _NULL]
            rest = {name: value for name, value in schema.items() if name != key}
            one = len(others) == 1 and isinstance(others[0], dict)
            schema = dict(others[0], **rest) if one else dict(rest, **{key: others})
            break
    else:
        types = schema.get("type")
        if not isinstance(types, list) or "null" not in types:
            return schema
        types = [name for name in types if name != "null"]
        schema = dict(schema, type=types[0] if len(types) == 1 else types)
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema
