"""Calls and thoughts in the text: each format with its variants, what only looks like one, and what waits
while it streams.

Every case is read in every cut: whole, in pieces of each size, and in two pieces cut at every place.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import unittest

from mm.events import Text, Thought
from mm.model.text_calls import formats, openers
from mm.model.answer import Answer, Finish, Misread, ToolCall
from tests import support
from tests.model import streams

TOOLS = streams.TOOLS + [streams.tool("take", count="integer", share="number", on="boolean", items="array",
                                      more="object", name="string", any=None, maybe=["integer", "null"])]
LS, PWD = ("bash", {"command": "ls"}), ("bash", {"command": "pwd"})


def bash(command: str) -> tuple:
    return "bash", {"command": command}


def hermes(*calls, name="name", arguments="arguments") -> str:
    return "\n".join("<tool_call>\n%s\n</tool_call>" % json.dumps({name: tool, arguments: values})
                     for tool, values in calls)


def qwen(called: str, **values) -> str:
    inner = "".join("<parameter=%s>\n%s\n</parameter>\n" % pair for pair in values.items())
    return "<tool_call>\n<function=%s>\n%s</function>\n</tool_call>" % (called, inner)


def glm(called: str, **values) -> str:
    return "<tool_call>%s\n%s</tool_call>" % (
        called, "".join("<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n" % pair
                        for pair in values.items()))


def deepseek(*calls) -> str:
    return "<｜tool▁calls▁begin｜>%s<｜tool▁calls▁end｜>" % "\n".join(
        "<｜tool▁call▁begin｜>%s<｜tool▁call▁end｜>" % call for call in calls)


def dsml(bar: str, wrapper: str = "function_calls") -> str:
    text = ('<|DSML|%s>\n<|DSML|invoke name="write_file">\n<|DSML|parameter name="path" '
            'string="true">a</|DSML|parameter>\n'
            '<|DSML|parameter name="content" string="true">1 < '
            '2\n</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|%s>' % (wrapper, wrapper))
    return text.replace("|", bar)


def harmony(header: str, body: str, end: str = "<|call|>") -> str:
    return "<|channel|>%s<|message|>%s%s" % (header, body, end)


# Values that hold what closers, openers and quotes are made of.
NASTY = 'é漢🙂 "q" \'s\' \\n <b> </b> { } [ ] &amp; ` ``` </tool_call> </parameter> <parameter x> ]</arg_value>[TOOL_CALLS]'
LINES = "if a < b:\n\tprint(\"x\")\n\n# </parameter>\n</function\n"

# (what it is, the text, the text that is left, the calls)
CALLS = [
    ("hermes", hermes(LS), "", [LS]),
    ("hermes, two", hermes(LS, PWD), "", [LS, PWD]),
    ("hermes, two without anything between", hermes(LS) + hermes(PWD), "", [LS, PWD]),
    ("hermes, two in one", '<tool_call>{"name":"bash","arguments":{"command":"ls"}}\n{"name":"bash","arguments":{"command":"pwd"}}</tool_call>', "",
     [LS, PWD]),
    ("hermes, text before", "I look.\n\n" + hermes(LS), "I look.", [LS]),
    ("hermes, text between", "I look.\n" + hermes(LS) + "\nThen:\n" + hermes(PWD), "I look.\nThen:",
     [LS, PWD]),
    ("hermes, whitespace behind", hermes(LS) + " \n\n ", "", [LS]),
    ("hermes, \\r\\n", "I look.\r\n" + hermes(LS).replace("\n", "\r\n") + "\r\n", "I look.", [LS]),
    ("hermes, indented", "  " + hermes(LS), "", [LS]),
    ("hermes, behind inline code", "See `ls`\n" + hermes(LS), "See `ls`", [LS]),
    ("hermes, behind a fence", "```sh\nls\n```\n" + hermes(LS), "```sh\nls\n```", [LS]),
    ("hermes, without its closer", '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}', "", [LS]),
    ("hermes, without the first closer", '<tool_call>{"name":"bash","arguments":{"command":"ls"}}\n'
     + hermes(PWD), "", [LS, PWD]),
    ("hermes, the end of a message behind it", hermes(LS) + "<|im_end|>\n", "", [LS]),
    ("hermes, parameters", hermes(LS, arguments="parameters"), "", [LS]),
    ("hermes, arguments first", '<tool_call>{"arguments": {"command": "ls"}, "name": "bash"}</tool_call>', "",
     [LS]),
    ("hermes, arguments in a string", hermes(("bash", '{"command": "ls"}')), "", [LS]),
    ("hermes, a function", '<tool_call>{"type":"function","function":{"name":"bash","arguments":{"command":"ls"}}}</tool_call>', "", [LS]),
    ("hermes, no arguments", '<tool_call>{"name": "list_jobs"}</tool_call>', "", [("list_jobs", {})]),
    ("hermes, a nasty value", hermes(bash(NASTY)), "", [bash(NASTY)]),
    ("hermes, a value of several lines", '<tool_call>{"name":"bash","arguments":{"command":"a\nb"}}</tool_call>', "", [bash("a\nb")]),
    ("hermes, nested", hermes(("take", {"more": {"a": [{"b": "}]"}]}})), "",
     [("take", {"more": {"a": [{"b": "}]"}]}})]),
    ("hermes, functions.", hermes(("functions.bash", {"command": "ls"})), "", [LS]),
    ("hermes, another case", hermes(("Write-File", {"path": "a"})), "", [("Write-File", {"path": "a"})]),
    ("hermes, behind a call that is none", hermes(("nope", {})) + "\n" + hermes(LS), hermes(("nope", {})),
     [LS]),
    ("qwen", qwen("bash", command="ls"), "", [LS]),
    ("qwen, no opener", "Now.\n\n" + qwen("bash", command="ls")[len("<tool_call>\n"):], "Now.", [LS]),
    ("qwen, neither opener nor closer", "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
     "", [LS]),
    ("qwen, on one line", "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>", "", [LS]),
    ("qwen, \\r\\n", qwen("bash", command="ls").replace("\n", "\r\n"), "", [LS]),
    ("qwen, closers missing at the end", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n", "", [LS]),
    ("qwen, no parameters", qwen("list_jobs"), "", [("list_jobs", {})]),
    ("qwen, lines", qwen("write_file", path="a.py", content=LINES), "",
     [("write_file", {"path": "a.py", "content": LINES})]),
    ("qwen, a nasty value", qwen("bash", command=NASTY), "", [bash(NASTY)]),
    ("qwen, an empty value", qwen("bash", command=""), "", [bash("")]),
    ("qwen, two functions in one call", "<tool_call>"
     + 2 * "<function=bash><parameter=command>ls</parameter></function>" + "</tool_call>", "", [LS, LS]),
    ("qwen, two", qwen("bash", command="ls") + "\n" + qwen("bash", command="pwd"), "", [LS, PWD]),
    ("qwen, types", qwen("take", count="3", share="0.5", on="True", items='["a"]', more='{"a": 1}', name="7",
                         any="8", maybe="9"), "",
     [("take", {"count": 3, "share": 0.5, "on": True, "items": ["a"], "more": {"a": 1}, "name": "7",
                "any": "8", "maybe": 9})]),
    ("qwen, values of another type", qwen("take", count="three", on="yes"), "",
     [("take", {"count": "three", "on": "yes"})]),
    ("glm", glm("bash", command="ls"), "", [LS]),
    ("glm, no lines", glm("bash", command="ls").replace("\n", ""), "", [LS]),
    ("glm, two parameters", glm("write_file", path="a", content=LINES), "",
     [("write_file", {"path": "a", "content": LINES})]),
    ("glm, a nasty value", glm("bash", command=NASTY), "", [bash(NASTY)]),
    ("glm, types", glm("take", count="3", name="3"), "", [("take", {"count": 3, "name": "3"})]),
    ("glm, no parameters", "<tool_call>list_jobs\n</tool_call>", "", [("list_jobs", {})]),
    ("mistral, a list", '[TOOL_CALLS] [{"name": "bash", "arguments": {"command": "ls"}}]', "", [LS]),
    ("mistral, a list of two", '[TOOL_CALLS][{"name":"bash","arguments":{"command":"ls"}}, '
                               '{"name":"bash","arguments":{"command":"pwd"}}]</s>', "",
     [LS, PWD]),
    ("mistral, an object", '[TOOL_CALLS]{"name":"bash","arguments":{"command":"ls"}}', "", [LS]),
    ("mistral, arguments", '[TOOL_CALLS]bash[ARGS]{"command": "ls"}', "", [LS]),
    ("mistral, an id", '[TOOL_CALLS]bash[CALL_ID]a1b2[ARGS]{"command": "ls"}', "", [LS]),
    ("mistral, a name", '[TOOL_CALLS]bash{"command": "ls"}', "", [LS]),
    ("mistral, two", '[TOOL_CALLS]bash[ARGS]{"command": "ls"}[TOOL_CALLS]bash[ARGS]{"command": "pwd"}', "",
     [LS, PWD]),
    ("mistral, in a line", 'I look. [TOOL_CALLS]bash{"command": "ls"}', "I look. ", [LS]),
    ("mistral, an argument called name", '[TOOL_CALLS]take{"name": "nope"}', "",
     [("take", {"name": "nope"})]),
    ("llama", '{"name": "bash", "parameters": {"command": "ls"}}', "", [LS]),
    ("llama, with a type", '{"type": "function", "name": "bash", "parameters": {"command": "ls"}}\n', "",
     [LS]),
    ("llama, arguments", ' \n{ "name" : "bash" , "arguments": {"command": "ls"}}', "", [LS]),
    ("llama, two", '{"name": "bash", "parameters": {"command": "ls"}}; {"name": "bash", "parameters": '
                   '{"command": "pwd"}}', "", [LS, PWD]),
    ("llama, a list", '[{"name": "bash", "parameters": {"command": "ls"}}]', "", [LS]),
    ("llama, fenced", '```json\n{"name": "bash", "parameters": {"command": "ls"}}\n```\n', "", [LS]),
    ("llama, fenced without a word", '```\n{"name": "bash", "parameters": {"command": "ls"}}\n```', "", [LS]),
    ("llama, behind a thought", '<think>hm</think>\n{"name": "bash", "parameters": {"command": "ls"}}', "",
     [LS]),
    ("llama, the end of a message behind it", '{"name": "bash", "parameters": {"command": "ls"}}<|eot_id|>',
     "", [LS]),
    ("llama, a nasty value", json.dumps({"name": "bash", "parameters": {"command": NASTY}}), "",
     [bash(NASTY)]),
    ("python tag", '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', "", [LS]),
    ("python tag, two", '<|python_tag|>{"name":"bash","parameters":{"command":"ls"}}; '
                        '{"name":"bash","parameters":{"command":"pwd"}}<|eom_id|>', "",
     [LS, PWD]),
    ("python tag, in a line", 'So: <|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', "So: ",
     [LS]),
    ("python tag, python", '<|python_tag|>bash(command="ls")', "", [LS]),
    ("python tag, python by position", "<|python_tag|>write_file('a', \"b)\\n\")<|eom_id|>", "",
     [("write_file", {"path": "a", "content": "b)\n"})]),
    ("python tag, JSON's words", "<|python_tag|>take(on=true, maybe=null)", "",
     [("take", {"on": True, "maybe": None})]),
    ("deepseek", deepseek('function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```'), "", [LS]),
    ("deepseek, newer", deepseek('bash<｜tool▁sep｜>{"command": "ls"}'), "", [LS]),
    ("deepseek, two", deepseek('function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```',
                               'bash<｜tool▁sep｜>{"command": "pwd"}'), "", [LS, PWD]),
    ("deepseek, closers missing", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}',
     "", [LS]),
    ("deepseek, the first opener missing", '<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": '
                                           '"ls"}<｜tool▁call▁end｜>', "", [LS]),
    ("deepseek, other joints", deepseek('bash<｜tool▁sep｜>{"command": "ls"}').replace("▁", "_"), "", [LS]),
    ("deepseek, in a line, the end of the sentence behind it",
     "I look. " + deepseek('bash<｜tool▁sep｜>{"command": "ls"}') + "<｜end▁of▁sentence｜>", "I look. ", [LS]),
    *[("dsml, " + bar, dsml(bar), "", [("write_file", {"path": "a", "content": "1 < 2\n"})])
      for bar in ("｜", "｜｜", "‖", "|", "||")],
    ("dsml, tool_calls", dsml("｜", "tool_calls"), "", [("write_file", {"path": "a", "content": "1 < 2\n"})]),
    ("dsml, no wrapper, JSON, types", '<｜DSML｜invoke name="take">\n<｜DSML｜parameter name="items" '
                                      'string="false">[1]</｜DSML｜parameter>\n'
     '<｜DSML｜parameter name="name" string="true">1</｜DSML｜parameter>\n<｜DSML｜parameter '
     'name="count">2</｜DSML｜parameter>\n</｜DSML｜invoke>', "",
     [("take", {"items": [1], "name": "1", "count": 2})]),
    ("dsml, its closer in a value", '<｜DSML｜invoke name="bash"><｜DSML｜parameter name="command" '
                                    'string="true">a</｜DSML｜parameter> b'
     '</｜DSML｜parameter></｜DSML｜invoke>', "", [bash("a</｜DSML｜parameter> b")]),
    ("harmony", harmony("commentary to=functions.bash <|constrain|>json", '{"command":"ls"}'), "", [LS]),
    ("harmony, other headers", "<|start|>assistant to=functions.bash<|channel|>commentary "
                               "json<|message|>{\"command\":\"ls\"}<|call|>", "", [LS]),
    ("harmony, analysis with a recipient", harmony("analysis to=functions.bash code", '{"command":"ls"}'), "",
     [LS]),
    ("harmony, a preamble", harmony("commentary", "I look.", "<|end|>") + "<|start|>assistant"
     + harmony("commentary to=functions.bash", '{"command":"ls"}'), "I look.", [LS]),
    ("headless", 'commentary to=functions.bash json{"command": "ls"}', "", [LS]),
    ("headless, some tokens left", 'assistantcommentary to=functions.bash '
                                   '<|constrain|>json<|message|>{"command": "ls"}', "", [LS]),
    ("headless, all but the first", 'commentary to=functions.bash<|constrain|>json<|message|>{"command": '
                                    '"ls"}<|call|>', "", [LS]),
    ("headless, the recipient first", 'assistant to=functions.bashcommentary json{"command": "ls"}', "",
     [LS]),
    ("headless, code", 'analysis to=bash code{"command": "ls"}\n', "", [LS]),
    ("headless, no format", ' commentary to=functions.bash\n{"command": "ls"}', "", [LS]),
    ("headless, behind a line", 'I look.\nassistantcommentary to=functions.bash json{"command": "ls"}',
     "I look.", [LS]),
    ("headless, two", 2 * 'assistantcommentary to=functions.bash json{"command": "ls"}', "", [LS, LS]),
    ("headless, a nasty value", "commentary to=functions.bash json" + json.dumps({"command": NASTY}), "",
     [bash(NASTY)]),
    ("gemma", '<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>', "", [LS]),
    ("gemma, values", '<|tool_call>call:take{count:3,on:true,items:[<|"|>a}<|"|>,{k:<|"|>"v"<|"|>}],name:<|"|>x: <tool_call|> y<|"|>}<tool_call|>', "",
     [("take", {"count": 3, "on": True, "items": ["a}", {"k": '"v"'}], "name": "x: <tool_call|> y"})]),
    ("gemma, no parameters, no closer", "<|tool_call>call:list_jobs{}", "", [("list_jobs", {})]),
    ("gemma, two", 2 * '<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>', "", [LS, LS]),
    ("tool_code", '```tool_code\nbash(command="ls")\n```', "", [LS]),
    ("tool_code, text before, print, two", 'So:\n```tool_code\nprint(bash("ls"))\nx = '
                                           'bash(command=\'pwd\')\n```\n', "So:", [LS, PWD]),
    ("tool_code, a fence inside", '```tool_code\nwrite_file(path="a.md", content="""x\n```\ny\n```\n""")\n```', "",
     [("write_file", {"path": "a.md", "content": "x\n```\ny\n```\n"})]),
    ("tool_code, no end", '```tool_code\nbash(command="ls")', "", [LS]),
    ("lm studio", '[TOOL_REQUEST]{"name": "bash", "arguments": {"command": "ls"}}[END_TOOL_REQUEST]', "",
     [LS]),
    ("lm studio, two, text before", 'Yes.\n' + '[TOOL_REQUEST]\n{"name": "bash", "arguments": {"command": '
                                               '"ls"}}\n[END_TOOL_REQUEST]\n' * 2, "Yes.", [LS, LS]),
    ("two formats", hermes(LS) + "\n" + qwen("bash", command="pwd"), "", [LS, PWD]),
]

# Prose: it is said as it stands, and nothing is called.
PROSE = [
    "", " ", "\n\n", "Hello.", "Hello.\n", "a < b and b > c [1] `x` {y}",
    "x\n\n\n" + " " * 50 + "y" + "\n" * 50 + " " * 40 + "z",
    # Known calls where they are none.
    hermes(LS) + "\nas you asked.", qwen("bash", command="ls") + " done", '[TOOL_CALLS]bash{"command": "ls"} '
                                                                          'is how.',
    "Inline: " + hermes(LS), "Inline `[TOOL_CALLS]bash{\"command\": \"ls\"}`",
    "    " + hermes(LS).replace("\n", " "), "Like this:\n```\n" + hermes(LS) + "\n```",
    "```xml\n" + hermes(LS), "~~~~\n```\n" + hermes(LS) + "\n```\n~~~~", "```markdown\n```xml\n" + hermes(LS),
    "````\n```\n" + hermes(LS) + "\n````\n", "1. x\n   ```\n   " + hermes(LS) + "\n   ```",
    "```python\nx = '''\n" + qwen("bash", command="ls") + "\n'''\n```\nSo.", "> " + hermes(LS),
    deepseek('bash<｜tool▁sep｜>{"command": "ls"}') + " is DeepSeek's.", dsml("｜") + "\n\nEnd.",
    hermes(LS) + "\n<tool_response>\na.py\n</tool_response>\n" + hermes(PWD),
    # Unknown tools.
    hermes(("nope", {})), qwen("nope", a="1"), glm("nope", a="1"), '[TOOL_CALLS]nope{"command": "ls"}',
    "<|python_tag|>nope(1)", '[TOOL_CALLS] [{"name": "bash", "arguments": {}}, {"name": "nope", "arguments": '
                             '{}}]', '<|tool_call>call:nope{}<tool_call|>',
    harmony("commentary to=browser.search", "{}"), "```tool_code\nimport os\nos.remove('a')\n```",
    '```tool_code\nbash(command=x)\n```', '```tool_code\nbash(*a)\n```', "```tool_code\nbash(b'x')\n```",
    "```tool_code\n```", '{"name": "nope", "parameters": {}}',
    # Words that begin as gpt-oss's headers do.
    "analysis", "analysis of the files", "analysis: done", "analysis.py holds it", "analysisResult holds it.",
    "analysis\nThe files.", "analysts say", "commentary", "commentary on it", "commentary to=",
    "commentary to=me", "commentaryX", "assistant", "assistants help", "assistantX", "assistant to=bash",
    "commentary to=functions.nope json{}", 'commentary to=functions.bash json{"command": "l',
    "commentary to=functions.bash json[1]", 'commentary to=functions.bash {"command": "ls"} runs it.',
    'commentary to=functions.bash says: {"command": "ls"}', "The assistantfinal message.",
    'It writes commentary to=functions.bash json{"command": "ls"}', '`commentary to=functions.bash '
                                                                    'json{"command": "ls"}`',
                                                                    '```\ncommentary to=functions.bash '
                                                                    'json{"command": "ls"}\n```',
    # Arguments that are no object, that are cut, and JSON that is none.
    '<tool_call>{"name": "bash", "arguments": [1]}</tool_call>', '<tool_call>{"name": "bash", "arguments": '
                                                                 '"ls"}</tool_call>',
    '<tool_call>{"name": "bash", "arguments": {"command": "ls"</tool_call>',
    '<tool_call>{"name": "bash", "arguments": {"command": "l', "<tool_call>{'name': 'bash'}</tool_call>",
    '<tool_call>{"name": "bash", "arguments": {"command": ls}}</tool_call>', "<tool_call>",
    "<tool_call>\n<function=bash>\n<parameter=command>\nls", "<tool_call>\n<function=bash",
    "<tool_call>bash\n<arg_key>command</arg_key>", "<tool_call>bash", '[TOOL_CALLS]bash["ls"]',
    "[TOOL_CALLS][]", "[TOOL_CALLS]", '[TOOL_CALLS]bash[ARGS]{"command"',
    '<|tool_call>call:bash{command:ls}<tool_call|>', '<|tool_call>call:bash{command:<|"|>ls',
    deepseek('bash<｜tool▁sep｜>"ls"'), "<｜tool▁calls▁begin｜>", '<｜DSML｜invoke name="bash">',
    '<｜DSML｜invoke name="take"><｜DSML｜parameter name="items" '
    'string="false">[1</｜DSML｜parameter></｜DSML｜invoke>',
    # Answers that are just JSON.
    "{}", "[]", "[1, 2]", "{", "[", '{"a": {"name": "bash"}}', '{"name": "mm", "version": "1", "scripts": '
                                                               '{"test": "x"}}', '{"name"',
    '{"name": "bash", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}',
    '{"name": "bash"}', '[{"name": "bash"}]', 'The call:\n{"name": "bash", "arguments": {"command": "ls"}}',
    '{"name": "bash", "arguments": {"command": "ls"}}\nThat is it.', '```json\n{"name": "bash", "arguments": '
                                                                     '{"command": "ls"}}\n```\nThat is it.',
                                                                     '```json\n{"name": "bash", "arguments": '
                                                                     '{"command": "ls"}}',
    'So:\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```', '```js\n{"name": "bash", '
                                                                           '"arguments": {}}\n```',
    '{"type": "function", "name": "bash", "parameters": [1]}', "```json\n[1]\n```", "```", "``", "`",
    "```json", "```\n", "```tool", json.dumps({"type": "x" * 70, "name": "bash", "arguments": {}}),
    # Code and documents that begin like a call.
    "<tool>x</tool>", "<tools>\n<tool_calls/>\n</tools>", "<tool_call_id>1</tool_call_id>",
    "<function>f</function>", "<function=>", "<function=f>x", "<function\n",
    "<tool_call> is the tag that Hermes uses.", "<tool_call>\n<tool_call>\n", "<thinker>", "<th", "<t", "<|",
    "<|end", "<｜", "[TOOL", "[TOOL_CALLS] is Mistral's token, [TOOL_REQUEST] LM Studio's.\n[TOOL_REQUEST] "
                            "too\n[TOOLS](x)", "<|channel|>", "<|channel|>news<|message|>x",
                            "<|start|>user<|message|>x<|end|>", "<|end|> and <|call|> and <|return|>",
                            "<html>\n<table>\n<tr><td>[x]</td></tr>\n</table>",
    '{%- if "<|channel|>analysis<|message|>" in content or \'<|start|>assistant<|message|>\' in content '
    '%}\nEnd.', "(<|channel|>final<|message|>x)",
    '{{- "<|start|>assistant<|channel|>analysis<|message|>" + thought + "<|end|>" }}\n{{- '
    'x<|channel|>final<|message|> }}',
    "# Tool calls\n\nHermes writes `<tool_call>`, gpt-oss `<|channel|>` and `<|message|>`.\n\n| a | "
    "`</tool_call>` |\n\n* [TOOL_CALLS]\n",
    "The tag `</think>` ends it, \"</think>\" too, and </think> as well.",
    "```\n<think>\nx\n</think>\n```\nAs above.", "a <think> b", "a <think>b</think>\nc",
    hermes(LS) + "\n" + "So it goes on. " * 400, hermes(LS) + "\n" + "So it goes on. " * 400 + "\n"
    + hermes(PWD),
]

# (what it is, the text, the reasoning, the text that is left)
THOUGHTS = [
    ("a block", "<think>plan it</think>\n\nDone", "plan it", "Done"),
    ("lines around it", "<think>\n\nplan\n\nit\n</think>\n\nDone\n", "plan\n\nit", "Done\n"),
    ("whitespace before it", "\n <think>plan</think>Done", "plan", "Done"),
    ("nothing in it", "<think>\n\n</think>\n\nDone", "", "Done"),
    ("another tag", "<thinking>plan</thinking>Done", "plan", "Done"),
    ("Mistral's tokens", "[THINK]plan[/THINK]Done", "plan", "Done"),
    ("other tags in it", "<think>a < b </b> <think> [x] </thin </think>Done",
     "a < b </b> <think> [x] </thin ", "Done"),
    ("long", "<think>" + "plan it " * 100 + "</think>Done", "plan it " * 100, "Done"),
    ("no end", "<think>plan it", "plan it", ""),
    ("no end, half a tag", "<think>plan it</thi", "plan it</thi", ""),
    ("twice", "<think>a</think>\n<think>b</think>\nDone", "ab", "Done"),
    ("behind text", "Well.\n<think>a</think>\nDone", "a", "Well.\nDone"),
    ("the opener was the template's", "plan\nit\n</think>\n\nDone", "plan\nit", "Done"),
    ("the same in one line", "plan it.</think>Done", "plan it.", "Done"),
    ("the same, and nothing more", "plan it\n</think>", "plan it", ""),
    ("only an end", "</think>\n\nDone", "", "Done"),
    ("an end that is too much", "<think>a</think>\nb\n</think>\nc", "a", "b\n</think>\nc"),
    ("an opener's end behind a call", hermes(LS) + "\nno\n</think>\nDone", hermes(LS) + "\nno", "Done"),
    ("harmony", harmony("analysis", "hm", "<|end|>") + "<|start|>assistant"
     + harmony("final", "Done", "<|return|>"), "hm", "Done"),
    ("harmony, an end missing", harmony("analysis", "hm", "") + harmony("final", "Done\n", ""), "hm",
     "Done\n"),
    ("harmony, no end", harmony("analysis", "hm", ""), "hm", ""),
    ("headless", "analysisThey said hello.assistantfinalHello!\n", "They said hello.", "Hello!\n"),
    ("headless, twice", "analysisa b.assistantanalysis c.assistantfinal\n\nDone", "a b. c.", "Done"),
    ("headless, a preamble", "analysisHm.assistantcommentaryI look.assistantfinalDone", "Hm.", "I look.Done"),
    ("headless, only final", "assistantfinal# Title\n\nDone", "", "# Title\n\nDone"),
    ("headless, assistant in it", "analysisThe assistant to call, assistantship.assistantfinalDone",
     "The assistant to call, assistantship.", "Done"),
    ("harmony, only final", harmony("final", "a\n\nb", "<|end|>"), "", "a\n\nb"),
]


def pieces(text: str):
    """The cuts of a text: whole, in pieces of each size, in two."""
    for size in (max(1, len(text)),) + streams.SIZES:
        yield [text[at:at + size] for at in range(0, len(text), size)]
    if len(text) < 250:
        for at in range(1, len(text)):
            yield [text[:at], text[at:]]


def delta(**fields) -> dict:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def read(contents, finish="stop", tools=TOOLS, reasoning=None) -> dict:
    """What comes of an answer with these pieces of content."""
    answer, events = Answer(tools), []
    for chunk in [delta(reasoning=reasoning)] + [delta(content=content) for content in contents]:
        events += answer.take(chunk)
    answer.take({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return streams.digest(events + answer.end())


def called(calls) -> list:
    return [{"name": name, "arguments": arguments} for name, arguments in calls]


class Formats(unittest.TestCase):
    def test_formats_are_loaded_with_their_opener(self):
        others = {*openers.THINK, *openers.LONE_ENDS, *openers.HARMONY_ENDS}
        self.assertEqual({*openers.AT_LINE, *openers.HEADERS} - others | {""}, set(formats.FORMATS))
        code = ("import sys; from mm.model.answer import Answer; answer = Answer([{'function': {'name': "
                "'bash'}}])\n"
                "for text in ('Plain `x` <b> [1]', '<think>a</think>b'): answer.take({'choices': [{'delta': "
                "{'content': text}}]})\n"
                "answer.end(); print(*sorted(name for name in sys.modules if name.startswith('mm.model.')))")
        done = subprocess.run([sys.executable, "-c", code], cwd=support.PROJECT, stdout=subprocess.PIPE,
                              check=True)
        self.assertEqual(b"mm.model.answer mm.model.call_arguments mm.model.fields mm.model.refusal mm.model.text_calls "
                         b"mm.model.text_calls.held "
                         b"mm.model.text_calls.lines mm.model.text_calls.openers mm.model.text_calls.reader",
                         done.stdout.strip())

    def test_each_call_is_found_in_each_cut(self):
        for what, text, left, calls in CALLS:
            with self.subTest(what):
                for cut in pieces(text):
                    found = read(cut)
                    self.assertEqual((left, called(calls)), (found["text"], found["calls"]), cut)

    def test_prose_stays_as_it_is_in_each_cut(self):
        for text in PROSE:
            with self.subTest(text):
                for cut in pieces(text):
                    found = read(cut)
                    self.assertEqual((text, [], ""), (found["text"], found["calls"], found["reasoning"]), cut)

    def test_every_call_is_prose_before_a_last_word(self):
        for what, text, _, _ in CALLS:
            if "<think>" not in text and "<|channel|>" not in text:
                with self.subTest(what):
                    for cut in ([text, "\nas you see"], list(text + "\nas you see")):
                        found = read(cut)
                        self.assertEqual((text + "\nas you see", []), (found["text"], found["calls"]))

    def test_calls_of_unknown_tools_are_prose(self):
        for what, text, _, _ in CALLS:
            if "<think>" not in text and "<|channel|>" not in text:
                with self.subTest(what):
                    self.assertEqual((text, []), tuple(read(list(text), tools=[])[key]
                                                       for key in ("text", "calls")))
                    self.assertEqual((text, []), tuple(read([text], tools=[streams.tool("else")])[key]
                                                       for key in ("text", "calls")))
                    answer = Answer(TOOLS)
                    call = {"index": 0, "id": "1", "function": {"name": "list_jobs", "arguments": ""}}
                    found = streams.digest(answer.take(delta(content=text))
                                           + answer.take(delta(tool_calls=[call])) + answer.end())
                    self.assertEqual((text, called([("list_jobs", {})])), (found["text"], found["calls"]))

    def test_reasoning_is_told_from_text_in_each_cut(self):
        for what, text, reasoning, left in THOUGHTS:
            with self.subTest(what):
                for cut in pieces(text):
                    found = read(cut)
                    self.assertEqual((reasoning, left, []),
                                     (found["reasoning"], found["text"], found["calls"]), cut)


    def test_a_headless_call_after_its_reasoning(self):
        text = 'analysisList them.assistantcommentary to=functions.bash json{"command": "ls"}'
        last = text + "assistantfinalDone"
        for cut in pieces(text):
            found = read(cut)
            self.assertEqual(("List them.", "", called([LS])),
                             (found["reasoning"], found["text"], found["calls"]), cut)
        for cut in pieces(last):
            found = read(cut)
            self.assertEqual(("List them.", last[len("analysisList them."):], []),
                             (found["reasoning"], found["text"], found["calls"]), cut)


class Recovery(unittest.TestCase):
    def test_a_call_in_the_reasoning_counts_alone(self):
        call = "I list.\n" + hermes(LS)
        headless = 'I list.assistantcommentary to=functions.bash json{"command": "ls"}'
        cases = [("a field", dict(contents=[], reasoning=call), [LS]),
                 ("no tokens", dict(contents=[], reasoning=headless), [LS]),
                 ("no end", dict(contents=["<think>" + call]), [LS]),
                 ("a block", dict(contents=["<think>", call, "</think>\n"]), [LS]),
                 ("text too", dict(contents=["Hi"], reasoning=call), []),
                 ("cut", dict(contents=[], reasoning=call, finish="length"), []),
                 ("prose", dict(contents=[], reasoning=call + " or"), []),
                 ("another reason", dict(contents=[], reasoning=call, finish="tool_calls"), [LS])]
        for what, given, calls in cases:
            with self.subTest(what):
                self.assertEqual(called(calls), read(**given)["calls"])

    def test_reasoning_shown_as_text_is_its_beginning(self):
        for text, calls in (("So</think><think>" + hermes(LS), []),
                            ("So\n</think><think>\n" + hermes(LS), []),
                            ("So.\n" + hermes(LS) + "\n</think>\n", [LS])):
            for cut in pieces(text):
                self.assertEqual(called(calls), read(cut)["calls"], cut)

    def test_a_call_cut_for_length_is_not_text(self):
        cases = ['<tool_call>{"name": "bash", "arguments": {"command": "l',
                 "<tool_call>\n<function=bash>\n<parameter=command>\nl", '[TOOL_CALLS]bash[ARGS]{"command"',
                 '{"name": "bash", "arguments": {']
        for text in cases:
            with self.subTest(text):
                found = read(list(text), finish="length")
                self.assertEqual(("", [{"name": "bash", "arguments": None}]), (found["text"], found["calls"]))
        self.assertEqual("<tool_c", read(["<tool_c"], finish="length")["text"])
        self.assertEqual(called([LS]), read([hermes(LS)], finish="length")["calls"])

    def test_a_broken_answer_calls_nothing(self):
        for text, left in (("Hi\n\n", "Hi\n\n"), ("Hi\n<tool_c", "Hi\n<tool_c"), ("Hi\n" + hermes(LS), "Hi"),
                           ("Hi\n" + hermes(LS)[:-30], "Hi"), ("<think>a\n", ""), ('{"na', '{"na'),
                           ("\ud83d", "\ufffd")):
            with self.subTest(text):
                answer = Answer(TOOLS)
                events = answer.take(delta(content=text))
                found = streams.digest(events + answer.broken())
                self.assertEqual((left, []), (found["text"], found["calls"]))

    def test_text_before_a_lone_end_is_taken_back(self):
        answer = Answer(TOOLS)
        self.assertEqual([Text("plan")], answer.take(delta(content="plan")))
        self.assertEqual([Misread(), Thought(" it"), Text("Done")],
                         answer.take(delta(content=" it</think>\nDone")))
        self.assertEqual([Finish(None)], answer.end())
        answer = Answer(TOOLS)
        self.assertEqual([Thought("plan"), Text("Done")], answer.take(delta(content="plan</think>Done")))

    def test_an_end_with_separate_reasoning(self):
        self.assertEqual(("hm", "Done"), tuple(read(["</think>\n", "Done"], reasoning="hm")[key]
                                               for key in ("reasoning", "text")))
        self.assertEqual(("hm", "a</think>\nb"), tuple(read(["a</think>\nb"], reasoning="hm")[key]
                                                       for key in ("reasoning", "text")))


class HoldBack(unittest.TestCase):
    def test_plain_text_leaves_in_the_same_read(self):
        answer = Answer(TOOLS)
        for piece in ("Hello", " world ", "a<b", ".\nSo", "x\n```sh\nls", "\n```\nthen {", "[1]", " <b>",
                      "\n<table", ">\n{\"a\"", "`x`", "\n - [TO", "DO]",
                      "<t", "hat", "\n# <", "p>"):
            waits = {"<t": "", "\n - [TO": "\n - ", "DO]": "[TODO]", "\n# <": "\n# ", "p>": "<p>",
                     "hat": "<that"}.get(piece, piece)
            with self.subTest(piece):
                self.assertEqual(waits, "".join(event.text for event in answer.take(delta(content=piece))))

    def test_undecided_text_waits_for_64_characters_at_most(self):
        for text in PROSE + [case[1] for case in CALLS]:
            if not any(opener in text for opener in ("<tool_call>", "<function=", "[TOOL_CALLS]",
                                                     "[TOOL_REQUEST]", "<|", "<｜", "tool_code", '"name"',
                                                     "DSML", "<think>", " to=")):
                answer, said = Answer(TOOLS), 0
                for at, sign in enumerate(text):
                    said += sum(len(event.text) for event in answer.take(delta(content=sign)))
                    self.assertLessEqual(at + 1 - said, 64, text)

    def test_what_is_disproved_leaves_at_once(self):
        for text in ('<tool_call>{"name": "nope"', "<tool_call>is the", "<tool_call>{'", "[TOOL_CALLS] is ",
                     "[TOOL_REQUEST]x", '{"name": "x"', '{"files"', "{x", "[link", "```py", "<function=f>",
                     "<|channel|>" + "x" * 200, "<｜tool▁calls▁begin｜>x", "<|python_tag|>1+"):
            with self.subTest(text):
                answer = Answer(TOOLS)
                self.assertEqual(text, "".join(event.text for sign in text
                                               for event in answer.take(delta(content=sign))))

    def test_a_long_answer_after_a_call_leaves(self):
        answer = Answer(TOOLS)
        text = hermes(LS) + "\n" + "So it goes on. " * 400
        self.assertEqual(text, "".join(event.text for sign in text
                                       for event in answer.take(delta(content=sign))))

    def test_a_call_waits_as_a_whole(self):
        for what, text, left, _ in CALLS:
            with self.subTest(what):
                answer = Answer(TOOLS)
                said = "".join(event.text for sign in text for event in answer.take(delta(content=sign))
                               if isinstance(event, Text))
                self.assertTrue(left.startswith(said), said)


class LinearTime(unittest.TestCase):
    """Twice the text takes about twice the time, whatever it is made of."""

    SHAPES = [
        ("prose", "", "ab\n<", ""), ("whitespace", "", "    ", ""), ("lines", "", "\n\n  ", ""),
        ("backticks", "", "````", ""), ("tags", "", "<t> ", ""),
        ("a value", "<tool_call><function=bash><parameter=command>", "ab\n<",
         "</parameter></function></tool_call>"), ("closers in a value", "<function=bash><parameter=command>",
                                                  "</parameter> ", "</parameter></function>"),
        ("JSON", '<tool_call>{"name":"bash","arguments":{"command":"', "ab<{", '"}}</tool_call>'),
        ("openers", "", "<tool_call>\n", ""), ("openers in JSON", "", '[TOOL_CALLS]bash{"a":"', ""),
        ("nesting", '{"name":"bash","arguments":{"a":', "[[[[", ""),
        ("prose behind a call", hermes(LS), "ab\n<", ""), ("a thought", "<think>", "a \n<", "</think>"),
        ("a word", "<|tool_call>call:bash{", "abcd", "}"), ("python", "<|python_tag|>bash(", "abcd", ""),
        ("fences", "```tool_code\n", "\n```", ""), ("a header", "", "<|channel|>x", ""),
        ("quotes", '<|tool_call>call:bash{a:', '<|"|>', ""),
    ]

    def test_in_pieces_and_whole(self):
        for what, head, body, tail in self.SHAPES:
            for size in (4, None):
                with self.subTest(what, size=size):
                    def seconds(length):
                        return self.seconds(head + body * (length // len(body)) + tail, size)

                    # 4 times as much; quadratic would be 16 times. A machine that is busy gets a second
                    # chance.
                    self.assertTrue(any(seconds(32_000) < 9 * seconds(8_000) + 0.005 for _ in range(3)))

    def seconds(self, text, size) -> float:
        size, answer, start = size or len(text), Answer(TOOLS), time.process_time()
        for at in range(0, len(text), size):
            answer.take(delta(content=text[at:at + size]))
        answer.end()
        return time.process_time() - start

    def test_an_argument_of_100_kb(self):
        def seconds(length):
            answer, start = Answer(TOOLS), time.process_time()
            for at in range(length // 4):
                answer.take(delta(tool_calls=[{"index": 0,
                                               "function": {"name": "bash",
                                                            "arguments": '{"ab' if not at else "abcd"}}]))
            self.assertIsInstance(answer.end()[0], ToolCall)
            return time.process_time() - start

        self.assertTrue(any(seconds(100_000) < 6 * seconds(25_000) for _ in range(3)))


if __name__ == "__main__":
    unittest.main()
