"""Make plain C++ of preprocessed HIP: ``kernel<<<...>>>(...)`` becomes a call, LDS of dynamic size a pointer.

Works on the preprocessor's output, where comments and macros are gone. Newlines are kept, so that the
compiler's messages name the right lines.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["translate"]

_OPEN: Final = {")": "(", ">": "<", "]": "["}
_NAME: Final = re.compile(r"[\w:]+$")
_OPERATOR: Final = re.compile(r"\boperator\s*$")
#: `__shared__` is left as it is by the host's header; alignment may stand before or behind it.
_DYNAMIC_LDS: Final = re.compile(
    r"\bextern\s+((?:__attribute__\s*\(\([^)]*\)+\s*)*)__shared__\s+([^;\[\]]+?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
_LDS: Final = re.compile(r"\b(?:static\s+)?__shared__\b")
_ALIGNMENT: Final = re.compile(r"__attribute__\s*\(\(.*?\)\)+|alignas\s*\([^)]*\)")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'')


def translate(text: str) -> str:
    """The translation of a preprocessed file. ValueError for a launch whose end is missing."""
    text = _DYNAMIC_LDS.sub(_pointer_to_lds, text)
    return _launches(_LDS.sub("static", text))


def _pointer_to_lds(match: re.Match[str]) -> str:
    kind = " ".join(_ALIGNMENT.sub("", match[2]).split())
    return f"static {kind}* const {match[3]} = reinterpret_cast<{kind}*>(::rpl_hip::dynamic_lds);"


def _launches(text: str) -> str:
    done, at = [], 0
    while (found := text.find("<<<", at)) >= 0:
        line = text.rfind("\n", 0, found) + 1
        if text[line] == "#" or _OPERATOR.search(text, line, found) or _is_quoted(text, line, found):
            done.append(text[at : found + 3])
            at = found + 3
            continue
        begin = _name_begin(text, found)
        end = _configuration_end(text, found + 3)
        name, configuration = text[begin:found], text[found + 3 : end]
        call = f"::rpl_hip::bind([&](auto... rpl_hip_each) {{ {name}(rpl_hip_each...); }}, {configuration})"
        done.append(text[at:begin] + call)
        at = end + 3
    return "".join([*done, text[at:]])


def _is_quoted(text: str, line: int, at: int) -> bool:
    end = text.find("\n", at)
    found = _QUOTED.finditer(text, line, len(text) if end < 0 else end)
    return any(quoted.start() < at < quoted.end() for quoted in found)


def _name_begin(text: str, end: int) -> int:
    """Where the kernel's name begins: an identifier with scopes and template arguments, or ``( ... )``."""
    at = len(text[:end].rstrip())
    if text[at - 1] in ")>":
        at = _matching(text, at - 1)
        at = len(text[:at].rstrip())
    name = _NAME.search(text, max(0, at - 1000), at)
    return name.start() if name else at


def _matching(text: str, at: int) -> int:
    """The bracket that opens what the one at ``at`` closes; comparisons stand in brackets of their own."""
    open_brackets = [text[at]]
    while open_brackets:
        at -= 1
        if at < 0:
            raise ValueError("a launch without a kernel")
        if text[at] in ")]" or (text[at] == ">" == open_brackets[-1]):
            open_brackets.append(text[at])
        elif text[at] == _OPEN[open_brackets[-1]]:
            open_brackets.pop()
    return at


def _configuration_end(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if depth == 0 and text.startswith(">>>", at):
            return at
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    raise ValueError("a launch configuration does not end")
