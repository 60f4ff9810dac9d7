"""From what a model wrote as a call's arguments to a dict that fits the tool's parameters. Pure.

Models name parameters as they were trained to, and send numbers as strings: both are accepted. What cannot be
accepted is answered with a sentence that says what to send instead.
"""

from __future__ import annotations

import json
import math

from mm.text import replace_surrogates
from mm.tools.tool import BadArguments

_NOT_JSON = "[{0}: the arguments are not valid JSON ({1}). Call {0} again with one JSON object.]"
_EXPECTED = {"string": "a string", "integer": "a number", "number": "a number", "boolean": "true or false",
             "array": "a list"}


def parse_arguments(tool, arguments) -> dict:
    """`arguments` (a call_arguments.Reading of what the model sent, or a dict) as {parameter name: value}.

    It has all required parameters and those of the others that were given. What the tool does not know is
    left out. Raises BadArguments.
    """
    given = arguments
    if not isinstance(arguments, dict):
        given = arguments.value
        if given is None:
            raise BadArguments(_NOT_JSON.format(tool.name, arguments.problem))
    return given if tool.schema is not None else _fitted(tool, tool.parameters, given)


def _fitted(tool, parameters, given, where="") -> dict:
    """The values in `given` that belong to `parameters`; `where` comes before their names in an error."""
    names = {plain_name(name): parameter.name
             for parameter in reversed(parameters) for name in parameter.aliases}
    names.update((plain_name(parameter.name), parameter.name) for parameter in parameters)
    found = {}
    for key, value in given.items():
        name = names.get(plain_name(str(key)))
        if name is not None and value is not None and (key == name or name not in found):
            found[name] = value
    arguments = {}
    for parameter in parameters:
        if parameter.name in found:
            arguments[parameter.name] = _fit(tool, parameter, found[parameter.name], where)
        elif parameter.required:
            raise BadArguments(f'[{tool.name}: {where}missing parameter "{parameter.name}"]')
    return arguments


def plain_name(name):
    """`filePath`, `file-path` and `file_path` are one name."""
    return name.replace("_", "").replace("-", "").lower()


def _fit(tool, parameter, value, where):
    """`value` in the parameter's type, converted if its meaning is plain."""
    try:
        if parameter.type == "array":
            return [_element(tool, parameter, element, number) for number,
                    element in enumerate(_list(value), 1)]
        return _COERCE[parameter.type](value)
    except (ValueError, OverflowError):
        expected = _EXPECTED[parameter.type]
        raise BadArguments(f'[{tool.name}: {where}"{parameter.name}" must be {expected}]') from None


def _element(tool, parameter, value, number):
    """One element of a list; a text instead of an object is the object's first parameter."""
    if not parameter.items:
        return _string(value)
    if not isinstance(value, dict):
        value = {parameter.items[0].name: value}
    return _fitted(tool, parameter.items, value, f"{parameter.name} {number}: ")


def _list(value):
    """A list; also one that was sent as JSON text, and one element that was sent without its list."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            pass
    if isinstance(value, (str, dict)):
        return [value]
    if not isinstance(value, list):
        raise ValueError
    return value


def _string(value):
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if not isinstance(value, str):
        raise ValueError
    return replace_surrogates(value)


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    if isinstance(value, str):
        value = float(value) if not value.strip().lstrip("+-").isdigit() else int(value)
    if not math.isfinite(value):
        raise ValueError
    return value


def _integer(value):
    number = _number(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _boolean(value):
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower())
    if value not in (True, False):  # 1 and 0 too
        raise ValueError
    return bool(value)


_COERCE = {"string": _string, "integer": _integer, "number": _number, "boolean": _boolean}
