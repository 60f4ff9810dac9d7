"""What may begin something in the text of an answer that is not meant for the user (pure): calls, reasoning,
messages.

These are all that a plain answer needs. How a call is read (mm.model.text_calls.formats) is loaded when the
first of them has come.
"""

from __future__ import annotations

_BARS = ("｜", "｜｜", "|", "||", "‖", "‖‖")
_JOINTS = ("▁", "_", " ", "\\_")


def deepseek(word: str) -> tuple:
    """A token of DeepSeek's as its models spell it."""
    return tuple("<｜%s｜>" % word.replace("_", joint) for joint in _JOINTS)


def dsml(what: str, slash: str = "") -> tuple:
    """The same for its newer markup."""
    return tuple("<%s%sDSML%s%s" % (slash, bar, bar, what) for bar in _BARS)


# What is left of gpt-oss's headers without their tokens (headless.py): at the beginning of an answer, and of
# a line.
HEADERS = ("analysis", "commentary", "assistant")
RECIPIENTS = ("commentary to=", "assistantcommentary to=", "assistant to=", "analysis to=",
              "assistantanalysis to=")
# Of these only the beginning of a line counts; the others are made of tokens that no text has.
LINE_OPENERS = ("<tool_call>", "<function=", "[TOOL_REQUEST]", "```tool_code", *RECIPIENTS)
# What begins a message of gpt-oss, and what ends one: nothing in itself, once a header was there.
HARMONY, HARMONY_ENDS = ("<|channel|>", "<|start|>"), ("<|end|>", "<|return|>", "<|call|>")
DEEPSEEK, DSML = deepseek("tool_calls_begin") + deepseek("tool_calls") + deepseek("tool_call_begin"), dsml("")

# All that begins a call and nothing else.
CALLS = ("<tool_call>", "<function=", "[TOOL_REQUEST]", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call>",
         *DEEPSEEK, *DSML)

# Tags around reasoning, and what closes each.
THINK = {"<think>": "</think>", "<thinking>": "</thinking>", "[THINK]": "[/THINK]"}
LONE_ENDS = ("</think>", "[/THINK]")

# All that means something, in the middle of a line and at its beginning.
IN_LINE = ("[TOOL_CALLS]", "<|python_tag|>", "<|tool_call>", *HARMONY, *DEEPSEEK, *DSML, *LONE_ENDS,
           *HARMONY_ENDS, *THINK)
AT_LINE = (*IN_LINE, *LINE_OPENERS)


def prefixes(openers) -> frozenset:
    """The beginnings of these."""
    return frozenset(opener[:end] for opener in openers for end in range(1, len(opener)))


IN_LINE_PREFIXES, AT_LINE_PREFIXES = prefixes(IN_LINE), prefixes(AT_LINE)
START_PREFIXES = AT_LINE_PREFIXES | prefixes(HEADERS)
LONGEST = max(map(len, AT_LINE_PREFIXES))
