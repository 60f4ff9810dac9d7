"""The formats in which models write calls as text if their server does not read them (pure).

    Hermes, Qwen   <tool_call>{"name": …, "arguments": {…}}</tool_call>
    Qwen3-Coder    <tool_call><function=NAME><parameter=K>\\nV\\n</parameter></function></tool_call>,
                   often without <tool_call>
    GLM            <tool_call>NAME\\n<arg_key>K</arg_key>\\n<arg_value>V</arg_value></tool_call>
    Mistral        [TOOL_CALLS] [{…}], [TOOL_CALLS]NAME[ARGS]{…}, [TOOL_CALLS]NAME{…}
    Llama          <|python_tag|>{…} or <|python_tag|>f(x=…); bare or fenced JSON that is the whole answer
    DeepSeek       <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME and fenced JSON,
                   or NAME<｜tool▁sep｜>{…};
                   <｜DSML｜invoke name="…"><｜DSML｜parameter name="…" string="true">…, with other bars too
    gpt-oss        <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>,
                   or without these tokens (headless.py)
    Gemma          <|tool_call>call:NAME{k:<|"|>v<|"|>}<tool_call|>, or Python in a fence named tool_code
    LM Studio      [TOOL_REQUEST]{…}[END_TOOL_REQUEST]

Each is a function that reads a Source after its opener and returns [(name, arguments)].
"""

from __future__ import annotations

import json
import re

from mm.events import Text, Thought
from mm.model.text_calls import headless
from mm.model.text_calls.openers import DEEPSEEK, DSML, HEADERS, RECIPIENTS, deepseek, dsml
from mm.model.text_calls.scanner import Disproved, Source, calls_in, decoded


def _any(*literals: str):
    return re.compile("|".join(map(re.escape, literals)))


_CALL_BEGIN, _CALL_END = deepseek("tool_call_begin"), deepseek("tool_call_end")
_SEPARATOR = _any(*deepseek("tool_sep"))
_INVOKE, _INVOKE_END = dsml('invoke name="'), dsml("invoke>", "/")
_PARAMETER, _PARAMETER_END = dsml('parameter name="'), _any(*dsml("parameter>", "/"))

# What may follow a call and means nothing more.
_CLOSERS = ("</tool_call>", "</function>", "[END_TOOL_REQUEST]", "<tool_call|>", "<|call|>", "<|end|>",
            "<|return|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>",
            "</s>", "<end_of_turn>", "<turn|>", "<｜end▁of▁sentence｜>", *_CALL_END,
            *deepseek("tool_calls_end"), *dsml("function_calls>", "/"), *dsml("tool_calls>", "/"))

_ANGLE, _QUOTE, _LINE_END = _any(">"), _any('"'), _any("\n")
_KEY_LENGTH = 64
_FUNCTION_MARKS = ("<parameter=", "</function>", "</tool_call>")
_FUNCTION_VALUE_END = _any("</parameter>")
_GLM_KEY_END, _GLM_VALUE_END = _any("</arg_key>"), _any("</arg_value>")
_MISTRAL_ARGUMENTS = _any("[ARGS]")

# Bare JSON is held if it begins like a call and has its "name" near the beginning.
_BARE_LIMIT = 64
_BARE_KEYS = ("name", "type", "function", "arguments", "parameters", "id")
_BARE_BEGINNING = re.compile(r'\s*(?:\[\s*)?(?:\{\s*(?:"(\w*)("?))?)?')
_BARE_INFO = ("json", "tool_call", "tool_calls", "")

_GEMMA_MARKS, _GEMMA_STRING = _any('<|"|>', "<tool_call|>"), '<|"|>'
_GEMMA_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|([A-Za-z_][\w\-]*)(\s*:)?')

_MESSAGE, _HEADER_LENGTH = _any("<|message|>"), 200
_CHANNEL = re.compile(r"<\|channel\|>\s*(analysis|commentary|final)\b")
_RECIPIENT = re.compile(r"\bto=([\w.\-]+)")

_PYTHON_END = _any("<|eom_id|>", "<|eot_id|>")
_FENCE_END = re.compile(r"\n[ \t]{0,3}```")
_MOST_FENCES = 16  # fences that are looked for inside the Python of a fence
_PYTHON_WORDS = {"true": True, "false": False, "null": None}


def read(source: Source, opener: str):
    """What follows an opener: a list of calls with all that closes them, the kind of text that a header
    announces (Text or Thought), or headless.Messages.

    `opener` is a key of FORMATS, taken already, or "" if the text itself may be a call in JSON.
    """
    found = FORMATS[opener](source, opener)
    closed = found if isinstance(found, list) else getattr(found, "calls", None)
    while closed:
        source.space()
        closed = source.take(*_CLOSERS)
    if not opener and source.at < len(source.text):
        raise Disproved  # only the whole answer counts
    return found


def _objects(source: Source, *separators: str, only: bool = False) -> list:
    """A JSON call or list of calls, or several, one after the other."""
    source.space()
    calls, more = [], source.comes("{[") or source.fail()
    while more:
        calls += calls_in(source, source.json(True), only)
        source.space()
        if separators and source.take(*separators):
            source.space()
        more = source.comes("{")
    return calls


def _arguments(source: Source) -> dict:
    """The JSON object that is a call's arguments, perhaps in a fence."""
    source.space()
    fenced = source.take("```json", "```")
    source.space()
    found = source.json(False) if source.comes("{") else source.fail()
    if fenced:
        source.space()
        source.take("```")
    return found


def _tool_call(source: Source, opener: str) -> list:
    source.space()
    if source.comes("{["):
        return _objects(source)
    return _functions(source, opener) if source.take("<function=") else _glm(source)


def _functions(source: Source, _) -> list:
    calls, more = [], True
    while more:
        tool = source.tool()
        source.need(">")
        source.space()
        arguments, mark = {}, source.need(*_FUNCTION_MARKS)
        while mark == _FUNCTION_MARKS[0]:
            key = source.before(_ANGLE, _KEY_LENGTH)
            value, mark = source.raw_value(_FUNCTION_VALUE_END, _FUNCTION_MARKS)
            arguments[key] = _without_line_ends(value)
        calls.append((tool, source.tools.fitted(tool, arguments)))
        source.space()
        more = source.take("<function=")
    return calls


def _without_line_ends(value: str) -> str:
    """Without the one line end on each side that belongs to the markup."""
    return re.sub(r"\A\r?\n|\r?\n\Z", "", value)


def _glm(source: Source) -> list:
    tool = source.tool()
    source.space()
    arguments, mark = {}, source.need("<arg_key>", "</tool_call>")
    while mark == "<arg_key>":
        key = source.before(_GLM_KEY_END, _KEY_LENGTH)
        source.space()
        source.need("<arg_value>")
        arguments[key.strip()], mark = source.raw_value(_GLM_VALUE_END, ("<arg_key>", "</tool_call>"))
    return [(tool, source.tools.fitted(tool, arguments))]


def _mistral(source: Source, _) -> list:
    source.space()
    if source.comes("{["):
        return _objects(source)
    tool = source.tool()
    if source.take("[CALL_ID]"):
        source.before(_MISTRAL_ARGUMENTS, _KEY_LENGTH)
    else:
        source.take("[ARGS]")
    return [(tool, _arguments(source))]


def _lmstudio(source: Source, _) -> list:
    return _objects(source)


def _python_tag(source: Source, _) -> list:
    source.space()
    if source.comes("{["):
        return _objects(source, ";")
    tool = source.tool()
    source.need("(")
    text, _ = source.until(_PYTHON_END, or_end=True)
    return _python_calls(source, tool + "(" + text)


def _tool_code(source: Source, _) -> list:
    """Python in a fence. A fence inside its strings ends it for Markdown, and not for Python."""
    text = ""
    for _ in range(_MOST_FENCES):
        piece, end = source.until(_FENCE_END, or_end=True)
        try:
            return _python_calls(source, text + piece)
        except Disproved:
            if not end:
                raise
        text += piece + end
    raise Disproved


def _python_calls(source: Source, text: str) -> list:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that Python does not know
            statements = ast.parse(text.strip()).body
        return [_python_call(source, ast, statement) for statement in statements] or source.fail()
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise Disproved from None


def _python_call(source: Source, ast, statement) -> tuple:
    """(name, arguments) of `f(…)`, `x = f(…)` or `print(f(…))` whose values are literals."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print" and len(call.args) == 1:
        call = call.args[0]
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise Disproved
    tool = source.known(call.func.id)
    names = source.tools.parameters(tool)
    if len(call.args) > len(names) or any(keyword.arg is None for keyword in call.keywords):
        raise Disproved
    values = list(zip(names, call.args)) + [(keyword.arg, keyword.value) for keyword in call.keywords]
    arguments = {key: _PYTHON_WORDS[value.id] if getattr(value, "id", None) in _PYTHON_WORDS
                 else ast.literal_eval(value) for key, value in values}
    return tool, json.loads(json.dumps(arguments))


def _deepseek_calls(source: Source, opener: str) -> list:
    source.space()
    calls, more = [], opener in _CALL_BEGIN or source.need(*_CALL_BEGIN)
    while more:
        tool = source.before(_SEPARATOR, _KEY_LENGTH).strip()
        if tool in ("", "function"):
            source.space()
            tool = source.tool()
        else:
            tool = source.known(tool)
        calls.append((tool, _arguments(source)))
        source.space()
        source.take(*_CALL_END)
        source.space()
        more = source.take(*_CALL_BEGIN)
    return calls


def _dsml_calls(source: Source, _) -> list:
    if not source.take('invoke name="'):
        source.need("function_calls>", "tool_calls>")
        source.space()
        source.need(*_INVOKE)
    calls, more = [], True
    while more:
        tool = source.tool()
        source.before(_ANGLE, _KEY_LENGTH)
        source.space()
        arguments, mark = {}, source.need(*_PARAMETER, *_INVOKE_END)
        while mark in _PARAMETER:
            key = source.before(_QUOTE, _KEY_LENGTH)
            kind = source.before(_ANGLE, _KEY_LENGTH)
            value, mark = source.raw_value(_PARAMETER_END, _PARAMETER + _INVOKE_END)
            if "true" not in kind:
                value = decoded(value) if "false" in kind else source.tools.fitted(tool, {key: value})[key]
            arguments[key] = value
        calls.append((tool, arguments))
        source.space()
        more = source.take(*_INVOKE)
    return calls


def _harmony(source: Source, opener: str):
    header = opener + source.before(_MESSAGE, _HEADER_LENGTH)
    channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
    if not channel and not header.startswith("<|start|>assistant"):
        raise Disproved
    if recipient:
        return [(source.known(recipient.group(1)), _arguments(source))]
    return Thought if channel and channel.group(1) == "analysis" else Text


def _gemma(source: Source, _) -> list:
    source.space()
    source.need("call:")
    tool = source.tool()
    if not source.comes("{"):
        raise Disproved
    pieces, piece, mark, quoted = [], "", True, False
    while mark:
        text, mark = source.until(_GEMMA_MARKS, or_end=True)
        piece += text
        if quoted and mark != _GEMMA_STRING:
            piece += mark  # the closer in a string is part of it
            continue
        pieces.append(json.dumps(piece) if quoted else _GEMMA_KEY.sub(_quoted_key, piece))
        piece = ""
        if mark != _GEMMA_STRING:
            break
        quoted = not quoted
    value = decoded("".join(pieces))
    return [(tool, value if isinstance(value, dict) else source.fail())]


def _quoted_key(found) -> str:
    return '"%s":' % found.group(1) if found.group(2) else found.group()


def _bare(source: Source, _) -> list:
    """JSON, perhaps in a fence, that is the whole answer."""
    head = source.text[:_BARE_LIMIT]
    if not _may_be_bare(head):
        raise Disproved
    if '"name"' not in head:
        source.before(_any('"name"'), _BARE_LIMIT)
    fenced = source.take("```")
    if fenced:
        source.before(_LINE_END, _BARE_LIMIT)
    calls = _objects(source, ";", ",", only=True)
    if fenced:
        source.need("```")
    return calls


def _may_be_bare(head: str) -> bool:
    """Whether an answer with this beginning may be a call in JSON."""
    if head.startswith("`"):
        ticks, head = head[:3], head[3:]
        info, line_end, head = head.partition("\n")
        info = info.strip().lower()
        if not "```".startswith(ticks) or not line_end:
            return "```".startswith(ticks) and any(known.startswith(info) for known in _BARE_INFO)
        if info not in _BARE_INFO:
            return False
    found = _BARE_BEGINNING.match(head)
    key, closed, rest = found.group(1), found.group(2), head[found.end():]
    if key is None or not closed:
        return not rest and any(known.startswith(key or "") for known in _BARE_KEYS)
    return key in _BARE_KEYS


FORMATS = {"": _bare, "<tool_call>": _tool_call, "<function=": _functions, "[TOOL_CALLS]": _mistral,
           "[TOOL_REQUEST]": _lmstudio, "<|python_tag|>": _python_tag, "<|tool_call>": _gemma,
           "```tool_code": _tool_code, "<|channel|>": _harmony, "<|start|>": _harmony}
FORMATS.update(dict.fromkeys(HEADERS, headless.messages))
FORMATS.update(dict.fromkeys(RECIPIENTS, headless.calls))
FORMATS.update(dict.fromkeys(DEEPSEEK, _deepseek_calls))
FORMATS.update(dict.fromkeys(DSML, _dsml_calls))
