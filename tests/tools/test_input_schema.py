"""Input schemas from elsewhere, as the model gets them: a table."""

from __future__ import annotations

import json
import unittest

from mm.tools import input_schema
from mm.tools.input_schema import clean

EMPTY = {"type": "object", "properties": {}}


def of(schema, **more):
    """The schema of an object with the one property `a`."""
    return dict({"type": "object", "properties": {"a": schema}}, **more)


def nested(levels, innermost=0):
    """Lists in one another."""
    for _ in range(levels):
        innermost = [innermost]
    return innermost


ADDRESS = {"type": "object", "properties": {"street": {"type": "string", "title": "Street"}}}
LOOP = {"$ref": "#/$defs/Node"}
CASES = (
    ("none", None, EMPTY),
    ("no object", ["a"], EMPTY),
    ("another type", {"type": "string"}, EMPTY),
    ("no properties", {"type": "object"}, EMPTY),
    ("properties that are none", {"type": "object", "properties": None}, EMPTY),
    ("words that are dropped", of({"type": "string", "format": "uri", "pattern": "^a", "examples": ["a"], "title": "A"},
                                  **{"$schema": "http://json-schema.org/draft-07/schema#", "title": "T"}), of({"type": "string"})),
    ("properties that are called like words",
     {"type": "object", "properties": {name: {"type": "string", "title": "x"} for name in ("title", "format", "pattern", "$ref")}},
     {"type": "object", "properties": {name: {"type": "string"} for name in ("title", "format", "pattern", "$ref")}}),
    ("values are not schemas", of({"enum": [{"title": "kept"}], "default": {"format": "kept"}, "const": {"title": "kept"}}),
     of({"enum": [{"title": "kept"}], "default": {"format": "kept"}, "const": {"title": "kept"}})),
    ("lists and maps are looked into", of({"type": "array", "items": {"type": "object", "additionalProperties": {"title": "x"}}}),
     of({"type": "array", "items": {"type": "object", "additionalProperties": {}}})),
    ("false is a schema", of({"type": "string"}, additionalProperties=False), of({"type": "string"}, additionalProperties=False)),
    ("X or null", of({"anyOf": [{"type": "integer", "title": "x"}, {"type": "null"}], "default": None, "description": "d"}),
     of({"type": "integer", "description": "d"})),
    ("X or Y or null", of({"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "default": 3}),
     of({"oneOf": [{"type": "integer"}, {"type": "string"}], "default": 3})),
    ("null among the types", of({"type": ["string", "null"]}), of({"type": "string"})),
    ("several types", of({"type": ["string", "integer", "null"]}), of({"type": ["string", "integer"]})),
    ("only null", of({"type": "null"}), of({"type": "null"})),
    ("a reference", of({"$ref": "#/$defs/Address", "description": "where"}, **{"$defs": {"Address": ADDRESS}}),
     of({"type": "object", "properties": {"street": {"type": "string"}}, "description": "where"})),
    ("a reference with escapes", of({"$ref": "#/definitions/a~1b~0c"}, definitions={"a/b~c": {"type": "boolean"}}),
     of({"type": "boolean"})),
    ("a reference or null", of({"anyOf": [{"$ref": "#/$defs/E"}, {"type": "null"}]}, **{"$defs": {"E": {"enum": ["x"]}}}),
     of({"enum": ["x"]})),
    ("a reference to nowhere", of({"$ref": "#/$defs/None"}), of({})),
    ("a reference to another file", of({"$ref": "other.json"}), of({})),
    ("a reference that is none", of({"$ref": 7}), of({})),
    ("the whole is a reference", {"$ref": "#/$defs/A", "$defs": {"A": ADDRESS}}, {"type": "object", "properties": {"street": {"type": "string"}}}),
    ("a list as items", of({"type": "array", "items": [{"title": "x"}]}), of({"type": "array", "items": [{}]})),
    ("garbage", of("string", required="a"), of({})),
    ("words that mean nothing", of({"type": 5, "enum": "ab", "properties": [1], "anyOf": {}, "oneOf": [], "description": 7}), of({})),
    ("required names what there is to name", of({}, required=[1, "a", {}, None]), of({}, required=["a"])),
    ("what JSON cannot say", of({"minimum": float("-inf"), "default": float("inf"), "enum": [1, float("inf")]}), of({"enum": [1, None]})),
    ("a value without a bottom", of({"default": nested(900)}), of({"default": nested(input_schema.LEVELS, None)})),
    ("a long description", of({"description": "d" * 301}), of({"description": "d" * 300 + "…"})),
)


class Cleaning(unittest.TestCase):
    def test_table(self):
        for name, schema, expected in CASES:
            with self.subTest(name):
                before = json.dumps(schema)
                self.assertEqual(clean(schema), expected)
                self.assertEqual(json.dumps(schema), before, "the server's own must stay as it was")

    def test_a_schema_that_holds_itself_is_followed_five_times(self):
        node = {"type": "object", "properties": {"next": LOOP}}
        cleaned = clean(of(LOOP, **{"$defs": {"Node": node}}))
        self.assertEqual(json.dumps(cleaned).count('"next"'), input_schema.REFERENCES)

    def test_hostile_schemas_end(self):
        wide = {"type": "object", "properties": {"p%d" % number: LOOP for number in range(30)}}
        self.assertLess(len(json.dumps(clean(of(LOOP, **{"$defs": {"Node": wide}})))), 100_000)
        self.assertEqual(clean({"$ref": "#"}), EMPTY)
        deep = {}
        for _ in range(500):
            deep = {"type": "array", "items": deep}
        self.assertLess(len(json.dumps(clean(of(deep)))), 3000)


if __name__ == "__main__":
    unittest.main()
