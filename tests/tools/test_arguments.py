"""Arguments as models send them, and the registry that finds and describes the tools."""

from __future__ import annotations

import json
import unittest

from mm.model.call_arguments import read
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import BadArguments, Parameter, Tool, ToolError
from tests.tools.calls import ToolTest

PROBE = Tool("probe", "", "other", (
    Parameter("path", "string", "", True, ("file_path", "filename")),
    Parameter("limit", "integer", "", False),
    Parameter("timeout", "number", "", False),
    Parameter("all", "boolean", "", False, ("replace_all",)),
), "path", None)

LISTS = Tool("lists", "", "other", (
    Parameter("names", "array", "", False),
    Parameter("questions", "array", "", False, (), (), (
        Parameter("text", "string", ""), Parameter("options", "array", "", False),
        Parameter("count", "integer", "", False))),
), "names", None)

LISTS_ACCEPTED = [
    ({"names": ["a", 7]}, {"names": ["a", "7"]}),
    ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),  # a list as JSON text
    ({"names": "a, b"}, {"names": ["a, b"]}),  # one element without its list
    ({"names": []}, {"names": []}),
    ({"questions": [{"Text": "x", "options": ["y"], "other": 1}]},
     {"questions": [{"text": "x", "options": ["y"]}]}),
    ({"questions": {"text": "x", "count": "3"}}, {"questions": [{"text": "x", "count": 3}]}),
    ({"questions": ["x"]}, {"questions": [{"text": "x"}]}),
]

LISTS_REFUSED = [
    ({"names": 7}, '[lists: "names" must be a list]'),
    ({"names": [["a"]]}, '[lists: "names" must be a list]'),
    ({"questions": [{"text": "x"}, {"count": 1}]}, '[lists: questions 2: missing parameter "text"]'),
    ({"questions": [{"text": "x", "count": "many"}]}, '[lists: questions 1: "count" must be a number]'),
]

ACCEPTED = [
    ('{"path": "a"}', {"path": "a"}),
    ({"path": "a"}, {"path": "a"}),
    ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),  # encoded twice
    ('{"file_path": "a"}', {"path": "a"}),
    ('{"filePath": "a"}', {"path": "a"}),
    ('{"Path": "a", "unknown": 1}', {"path": "a"}),
    ('{"file_path": "b", "path": "a"}', {"path": "a"}),
    ('{"path": "a", "file_path": "b"}', {"path": "a"}),
    ('{"path": "a", "limit": "12"}', {"path": "a", "limit": 12}),
    ('{"path": "a", "limit": 12.0}', {"path": "a", "limit": 12}),
    ('{"path": "a", "limit": " -3 "}', {"path": "a", "limit": -3}),
    ('{"path": "a", "limit": null}', {"path": "a"}),
    ('{"path": "a", "timeout": "1.5"}', {"path": "a", "timeout": 1.5}),
    ('{"path": "a", "all": "true"}', {"path": "a", "all": True}),
    ('{"path": "a", "all": "False"}', {"path": "a", "all": False}),
    ('{"path": "a", "replaceAll": 1}', {"path": "a", "all": True}),
    ('{"path": 42}', {"path": "42"}),
    ('{"path": true}', {"path": "true"}),
    ('{"path": "line\nend\tbare"}', {"path": "line\nend\tbare"}),
    ('{"path": "\\ud83d\\ude00 \\ud83d"}', {"path": "\U0001f600 \ufffd"}),
]

NOT_JSON = "[probe: the arguments are not valid JSON ({}). Call probe again with one JSON object.]"
REFUSED = [
    ('{"path": "a"', NOT_JSON.format("Expecting ',' delimiter at column 13")),
    ('{"path":\n "a" "b"}', NOT_JSON.format("Expecting ',' delimiter at line 2, column 6")),
    ("path=a", NOT_JSON.format("Expecting value at column 1")),
    ("[1]", NOT_JSON.format("an object is expected at column 1")),
    ('"text"', NOT_JSON.format("Expecting value at column 1")),
    ("7", NOT_JSON.format("an object is expected at column 1")),
    ("[" * 100000, NOT_JSON.format("nested too deeply at column 1")),
    ("", '[probe: missing parameter "path"]'),
    (None, '[probe: missing parameter "path"]'),
    ('{"path": null}', '[probe: missing parameter "path"]'),
    ('{"path": ["a"]}', '[probe: "path" must be a string]'),
    ('{"path": "a", "limit": "many"}', '[probe: "limit" must be a number]'),
    ('{"path": "a", "limit": 1.5}', '[probe: "limit" must be a number]'),
    ('{"path": "a", "limit": true}', '[probe: "limit" must be a number]'),
    ('{"path": "a", "timeout": "120s"}', '[probe: "timeout" must be a number]'),
    ('{"path": "a", "timeout": NaN}', NOT_JSON.format("NaN is not JSON at column 1")),
    ('{"path": "a", "timeout": 1e999}', NOT_JSON.format("a number is too large at column 1")),
    ('{"path": "a", "all": "maybe"}', '[probe: "all" must be true or false]'),
    ('{"path": "a", "all": []}', '[probe: "all" must be true or false]'),
]


class Arguments(unittest.TestCase):
    def test_what_is_plain_is_accepted(self):
        for tool, table in ((PROBE, ACCEPTED), (LISTS, LISTS_ACCEPTED)):
            for raw, expected in table:
                with self.subTest(raw=raw):
                    self.assertEqual(parse_arguments(tool, read(raw)), expected)

    def test_the_rest_is_refused_with_a_sentence(self):
        for tool, table in ((PROBE, REFUSED), (LISTS, LISTS_REFUSED)):
            for raw, expected in table:
                with self.subTest(raw=str(raw)[:80]):
                    with self.assertRaises(BadArguments) as caught:
                        parse_arguments(tool, read(raw))
                    self.assertEqual(str(caught.exception), expected)

    def test_tool_with_own_schema_gets_object_unchanged(self):
        tool = Tool("theirs", "", "other", (), "", None, {"type": "object"})
        self.assertEqual(parse_arguments(tool, read('{"a_b": [1, null]}')), {"a_b": [1, None]})
        self.assertEqual(registry.to_wire([tool])[0]["function"]["parameters"], {"type": "object"})

    def test_lists_are_told_with_what_they_hold(self):
        parameters = registry.to_wire([LISTS])[0]["function"]["parameters"]["properties"]
        self.assertEqual(parameters["names"], {"type": "array", "items": {"type": "string"}})
        self.assertEqual(parameters["questions"]["items"]["required"], ["text"])

    def test_a_number_beyond_all_limits_is_refused(self):
        with self.assertRaises(BadArguments):
            parse_arguments(PROBE, read('{"path": "a", "limit": 1' + "0" * 5000 + "." + "0}"))


class Registry(ToolTest):
    def test_order_is_fixed_without_disabled_tools(self):
        names = [tool.name for tool in registry.built_in(self.context.config)]
        self.assertEqual(names, ["bash", "edit_file", "read_file", "write_file", "fetch_content", "plan",
                                 "ask_user"])
        context = self.new_context(tools_disabled=["bash", "write_file"])
        self.assertEqual([tool.name for tool in registry.built_in(context.config)],
                         ["edit_file", "read_file", "fetch_content", "plan", "ask_user"])

    def test_unoffered_tool_is_found_but_not_named(self):
        tools = registry.built_in(self.context.config, can_ask=False)
        self.assertEqual(registry.find(tools, "ask_user").name, "ask_user")
        self.assertNotIn("ask_user", str(registry.to_wire(tools)))
        with self.assertRaises(ToolError) as caught:
            registry.find(tools, "grep")
        self.assertNotIn("ask_user", str(caught.exception))

    def test_the_schemas_are_small_and_flat(self):
        wire = registry.to_wire(registry.built_in(self.context.config))
        self.assertLess(len(json.dumps(wire, separators=(",", ":"))), 4000)
        for tool in wire:
            schema = tool["function"]["parameters"]
            self.assertEqual(set(schema), {"type", "properties", "required"})
            self.assertLessEqual(set(schema["required"]), set(schema["properties"]))
            for parameter in schema["properties"].values():
                self.assertLessEqual(set(parameter), {"type", "description", "enum", "items"})
                self.assertLessEqual(len(parameter.get("description", "").split()), 12)

    def test_the_description_names_the_configured_limits(self):
        context = self.new_context(bash_timeout=30, bash_maxTimeout=90)
        wire = registry.to_wire(registry.built_in(context.config))
        timeout = wire[0]["function"]["parameters"]["properties"]["timeout"]
        self.assertEqual(timeout["description"], "Seconds, default 30, at most 90")

    def test_tool_is_found_by_similar_name(self):
        tools = registry.built_in(self.context.config)
        for name in ("read_file", "readFile", "ReadFile", "read-file", "READ_FILE"):
            self.assertEqual(registry.find(tools, name).name, "read_file")
        with self.assertRaises(ToolError) as caught:
            registry.find(tools, "grep")
        self.assertEqual(str(caught.exception),
                         "[there is no tool named grep. Tools: bash, edit_file, read_file, write_file, "
                         "fetch_content, plan, ask_user]")

    def test_titles(self):
        bash, _, read = registry.built_in(self.context.config)[:3]
        for tool, arguments, expected in [
            (bash, {"command": "ls -la"}, "bash: ls -la"),
            (bash, {"command": "ls\npwd"}, "bash: ls…"),
            (bash, {"command": "x" * 200}, "bash: " + "x" * 120 + "…"),
            (bash, {}, "bash"),
            (read, {"path": "src/a.py"}, "read_file: src/a.py"),
            (read, {"path": 7}, "read_file"),
        ]:
            self.assertEqual(registry.call_title(tool, arguments), expected)
