"""Input schemas from elsewhere, as the model gets them: a table."""

from __future__ import annotations

import json
import unittest

from mm.tools import input_schema
from mm.tools.input_schema import ANY, LARGEST, REPETITIONS, clean

EMPTY = {"type": "object", "properties": {}}
ANYTHING = {"type": ANY}


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
    ("words that are dropped", of({"type": "string", "format": "uri", "pattern": "^a", "examples": ["a"],
                                   "title": "A"},
                                  **{"$schema": "http://json-schema.org/draft-07/schema#", "title": "T"}),
     of({"type": "string"})),
    ("properties that are called like words",
     {"type": "object", "properties": {name: {"type": "string", "title": "x"}
                                       for name in ("title", "format", "pattern", "$ref")}},
     {"type": "object", "properties": {name: {"type": "string"}
                                       for name in ("title", "format", "pattern", "$ref")}}),
    ("values are not schemas", of({"enum": ["title", None, 1], "default": {"format": "kept"},
                                   "const": {"title": "kept"}}),
     of({"enum": ["title", None, 1], "default": {"format": "kept"}, "const": {"title": "kept"}})),
    ("lists and maps are looked into", of({"type": "array",
                                           "items": {"type": "object",
                                                     "additionalProperties": {"title": "x"}}}),
     of({"type": "array", "items": {"type": "object", "additionalProperties": ANYTHING}})),
    ("false is a schema", of({"type": "string"}, additionalProperties=False),
     of({"type": "string"}, additionalProperties=False)),
    ("X or null", of({"anyOf": [{"type": "integer", "title": "x"}, {"type": "null"}], "default": None,
                      "description": "d"}),
     of({"type": "integer", "description": "d"})),
    ("X or Y or null", of({"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}],
                           "default": 3}),
     of({"oneOf": [{"type": "integer"}, {"type": "string"}], "default": 3})),
    ("null among the types", of({"type": ["string", "null"]}), of({"type": "string"})),
    ("several types", of({"type": ["string", "integer", "null"]}), of({"type": ["string", "integer"]})),
    ("only null", of({"type": "null"}), of({"type": "null"})),
    ("a reference", of({"$ref": "#/$defs/Address", "description": "where"},
                       **{"$defs": {"Address": ADDRESS}}),
     of({"type": "object", "properties": {"street": {"type": "string"}}, "description": "where"})),
    ("a reference with escapes", of({"$ref": "#/definitions/a~1b~0c"},
                                    definitions={"a/b~c": {"type": "boolean"}}),
     of({"type": "boolean"})),
    ("a reference or null", of({"anyOf": [{"$ref": "#/$defs/E"}, {"type": "null"}]},
                               **{"$defs": {"E": {"enum": ["x"]}}}),
     of({"enum": ["x"]})),
    ("a reference to nowhere", of({"$ref": "#/$defs/None"}), of(ANYTHING)),
    ("a reference to another file", of({"$ref": "other.json"}), of(ANYTHING)),
    ("a reference that is none", of({"$ref": 7}), of(ANYTHING)),
    ("the whole is a reference", {"$ref": "#/$defs/A", "$defs": {"A": ADDRESS}},
     {"type": "object", "properties": {"street": {"type": "string"}}}),
    ("a list as items", of({"type": "array", "items": [{"title": "x"}]}),
     of({"type": "array", "items": ANYTHING})),
    ("garbage", of("string", required="a"), of(ANYTHING)),
    ("words that mean nothing", of({"type": 5, "enum": "ab", "properties": [1], "anyOf": {}, "oneOf": [],
                                    "description": 7}), of(ANYTHING)),
    ("required with something that is not a name", of({"type": "null"}, required=[1, "a"]),
     of({"type": "null"})),
    ("what JSON cannot say", of({"minimum": float("-inf"), "default": float("inf"),
                                 "enum": [1, float("inf")]}), of(ANYTHING)),
    ("a value without a bottom", of({"type": "array", "default": nested(900)}), of({"type": "array"})),
    ("only a description", of({"description": "d"}), of({"description": "d", "type": ANY})),
    ("true as a schema", of(True), of(ANYTHING)),
    ("bounds that a grammar takes", of({"type": "string", "minLength": 1, "maxLength": 100}),
     of({"type": "string", "minLength": 1, "maxLength": 100})),
    ("bounds that no grammar takes", of({"type": "string", "minLength": -1, "maxLength": 10000,
                                         "maxItems": True, "minItems": 1.5}),
     of({"type": "string"})),
    ("bounds that multiply", of({"type": "array", "maxItems": 100,
                                 "items": {"type": "array", "maxItems": 20, "items": {
        "type": "string", "maxLength": 5}}}),
     of({"type": "array", "maxItems": 100, "items": {"type": "array",
                                                     "items": {"type": "string", "maxLength": 5}}})),
    ("limits of numbers", of({"type": "integer", "minimum": -5, "maximum": LARGEST,
                              "exclusiveMinimum": True}),
     of({"type": "integer", "minimum": -5})),
    ("words that no grammar knows", of({"type": "string", "not": {}, "if": {}, "x-order": 1,
                                        "dependentSchemas": {}}),
     of({"type": "string"})),
    ("a long description", of({"type": "null", "description": "d" * 301}),
     of({"type": "null", "description": "d" * 300 + "…"})),
)


class Cleaning(unittest.TestCase):
    def test_table(self):
        for name, schema, expected in CASES:
            with self.subTest(name):
                before = json.dumps(schema)
                self.assertEqual(clean(schema), expected)
                self.assertEqual(json.dumps(schema), before, "the server's own must stay as it was")

    def test_no_bound_reaches_the_grammars_limit(self):
        for word in ("minLength", "maxLength", "minItems", "maxItems"):
            bounds = [clean(of({"type": "string", word: bound}))["properties"]["a"].get(word)
                      for bound in (REPETITIONS - 1, REPETITIONS)]
            self.assertEqual(bounds, [REPETITIONS - 1, None])

    def test_a_recursive_schema_ends(self):
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
