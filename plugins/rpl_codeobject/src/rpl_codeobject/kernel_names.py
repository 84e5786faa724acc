"""Kernel names as sources, profilers, symbol tables and people write them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from rpl_core.values import frozen

_LONGEST_NAME = 4096
_LENGTH = re.compile(r"[KL]?(\d{1,6})")


def source_name(recorded: str) -> str:
    """The function's own name: without return type, scope, template arguments and parameters.

    Understands names as they are, demangled and Itanium-mangled ones without substitutions in the name.
    """
    name = recorded[:_LONGEST_NAME].strip().removesuffix(".kd").removesuffix(" [clone .kd]")
    if name.startswith("_Z"):
        return _last_mangled_identifier(name) or name
    name = name.replace("(anonymous namespace)::", "")
    head = re.split(r"[<(\[]", name, maxsplit=1)[0].strip()
    return re.split(r"[\s:]+", head)[-1] or name


def is_instance(recorded: str, kernel: str) -> bool:
    """Whether a recorded name or a symbol is the source kernel ``kernel`` or an instance of it."""
    return source_name(recorded) == kernel


def _last_mangled_identifier(name: str) -> str | None:
    position = 3 if name.startswith("_ZN") else 2
    identifier = None
    while match := _LENGTH.match(name, position):
        position = match.end() + int(match.group(1))
        identifier = name[match.end() : position]
        if not name.startswith("_ZN"):
            break
        position = _behind_template(name, position)
    return identifier or None


def _behind_template(name: str, position: int) -> int:
    """Where the next scope begins behind template arguments of this one; the same place without them."""
    if not name.startswith("I", position):
        return position
    depth = 0
    for index in range(position, len(name)):
        depth += {"I": 1, "E": -1}.get(name[index], 0)
        if depth == 0:
            return index + 1
    return position


# Kernel names as people say them: the function, and the template arguments that tell kernels apart.

#: Longer names are shown as they are (chosen; parsing takes one look at each character).
_LONGEST_TEXT = 65_536
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
_OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?|[^\w\s(<>]+)")
_SCOPE = re.compile(r"(?:[A-Za-z_]\w*|\(anonymous namespace\))::")
_BEHIND = re.compile(r"(?: ?(?:const|volatile|&&?|noexcept|\[abi:\w+\]))*")
_SUFFIX = re.compile(r"(?: \[clone [^\]]*\]| \(\.kd\)|\.kd)+$")
_ANONYMOUS = "(anonymous namespace)"


@frozen
class _Parts:
    """``scope::function<arguments>(parameters)``; ``parameters`` with their brackets."""

    scope: str
    function: str
    arguments: tuple[str, ...] = ()
    parameters: str = ""


#: Tensile's contractions: the indices of both operands in their order in memory (``l`` is summed, ``k`` the
#: batch), data types, macro tile, then everything else.
_TENSILE = re.compile(
    r"Cijk_(?P<a>Ailk|Alik)_(?P<b>Bljk|Bjlk)_(?P<types>[A-Z0-9]+)_(?P<rest>.*?)(?P<tile>MT\d+x\d+x\d+)(?P<more>.*)"
)
#: What people compare of two kernels with the same tile, in this order; then whatever differs first.
_COMPARED = ("MI", "MIWT", "GSU", "SK", "WG", "DTLA", "DTLB", "PGR", "WGM")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Demangled name -> short form, different for different names.

    Kernels of Tensile are called by what people compare: ``Cijk TN F8HS MT256x224x128``, transposes (of A and
    B, column-major), data types and macro tile, followed by the parameters in which they differ.

    A function that occurs once is its name alone. Instances of one template show the arguments in which they
    differ, an ellipsis for the others; what that does not tell apart shows full arguments, its scope or its
    parameters, at last a number. The answer depends on the set of names alone.
    """
    every = list(dict.fromkeys(names))
    of_tensile = {name: match for name in every if (match := _TENSILE.fullmatch(name))}
    parts = {name: _parsed(name) for name in every if name not in of_tensile}
    groups: dict[str, list[str]] = defaultdict(list)
    for name, parsed in parts.items():
        groups[parsed.function].append(name)
    shown: dict[str, str] = _tensile_names(of_tensile)
    for same in groups.values():
        shown.update(_told_apart({name: parts[name] for name in same}))
    return _numbered(shown)


def _tensile_names(matches: dict[str, re.Match[str]]) -> dict[str, str]:
    """Operand A is transposed where its summed index ``l`` comes first, B where it comes last."""
    groups: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for name, fields in matches.items():
        transposes = ("T" if fields["a"] == "Alik" else "N") + ("T" if fields["b"] == "Bjlk" else "N")
        base = f"Cijk {transposes} {fields['types']} {fields['tile']}"
        groups[base][name] = _tensile_parameters(f"{fields['rest']}{fields['more']}")
    return {
        name: " ".join((base, *told))
        for base, group in groups.items()
        for name, told in _differing_parameters(group).items()
    }


def _tensile_parameters(text: str) -> dict[str, str]:
    """Parameter -> value: "MIWT4_14" is ``MIWT`` with the value 4_14; flags have none."""
    parameters: dict[str, str] = {}
    last = ""
    for word in filter(None, text.split("_")):
        parts = re.match(r"\d?([A-Za-z]*[A-Z])(n?\d.*)?$", word)
        if parts is None and last:  # a further number of the parameter before
            parameters[last] += f"_{word}"
            continue
        last = parts[1] if parts else word
        parameters[last] = (parts[2] or "") if parts else ""
    return parameters


def _differing_parameters(group: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """As few parameters as tell the kernels of a group apart, the same ones for all of them."""
    order = dict.fromkeys((*_COMPARED, *(key for parameters in group.values() for key in parameters)))
    told: dict[str, list[str]] = {name: [] for name in group}
    for key in order:
        distinct = {tuple(words) for words in told.values()}
        if len(distinct) == len(group):
            break
        values = {name: parameters.get(key) for name, parameters in group.items()}
        candidate = {(*told[name], value) for name, value in values.items()}
        if len(candidate) > len(distinct):
            for name, value in values.items():
                told[name].append(f"no {key}" if value is None else f"{key}{value}")
    return told


def _told_apart(group: dict[str, _Parts]) -> dict[str, str]:
    waiting, shown = dict(group), {}
    forms: tuple[Callable[[_Parts, list[int]], str], ...] = (_function_name, _scoped_name, _with_parameters)
    for form in forms:
        # Places at which the template arguments are not all the same.
        arguments = [kernel.arguments for kernel in waiting.values()]
        longest = max(map(len, arguments), default=0)
        differing = [i for i in range(longest) if len({a[i] if i < len(a) else None for a in arguments}) > 1]
        told = {name: form(kernel, differing) for name, kernel in waiting.items()}
        often = Counter(told.values())
        shown.update({name: text for name, text in told.items() if often[text] == 1})
        waiting = {name: kernel for name, kernel in waiting.items() if often[told[name]] > 1}
    return {**shown, **{name: told[name] for name in waiting}}


def _function_name(parts: _Parts, differing: list[int]) -> str:
    return parts.function + _argument_list(parts, differing, lambda text: _SCOPE.sub("", text))


def _scoped_name(parts: _Parts, differing: list[int]) -> str:
    return parts.scope + parts.function + _argument_list(parts, differing, str)


def _with_parameters(parts: _Parts, differing: list[int]) -> str:
    return _scoped_name(parts, differing) + parts.parameters


def _argument_list(parts: _Parts, differing: list[int], shown: Callable[[str], str]) -> str:
    arguments: list[str] = []
    for place, argument in enumerate(parts.arguments):
        if place in differing:
            arguments.append(shown(argument))
        elif arguments[-1:] != ["…"]:
            arguments.append("…")
    return f"<{', '.join(arguments)}>" if arguments not in ([], ["…"]) else ""


def _numbered(shown: dict[str, str]) -> dict[str, str]:
    """What reads alike all the same gets numbers, in the order of the full names."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(shown):
        alike[shown[name]].append(name)
    taken = set(alike)
    for text, same in alike.items():
        number = 0
        for name in same if len(same) > 1 else ():
            number += 1
            while f"{text}#{number}" in taken:
                number += 1
            shown[name] = f"{text}#{number}"
            taken.add(shown[name])
    return shown


def _parsed(name: str) -> _Parts:
    """The parts of a C++ name; anything else is a function of that name."""
    text = _SUFFIX.sub("", " ".join(name.split()))
    tops = _top_level(text) if len(text) <= _LONGEST_TEXT else None
    if not text or tops is None:
        return _Parts("", text or name)
    begin, end = _declarator(text, tops)
    scope_end = max((i + 2 for i, c in tops if c == ":" and begin <= i < end - 2), default=begin)
    function, parameters = text[scope_end:end], text[end:]
    opening = next((i for i, c in tops if c == "<" and scope_end <= i < end), None)
    if not function:
        return _Parts("", text)
    if opening is None or not function.endswith(">"):
        return _Parts(text[begin:scope_end], function, (), parameters)
    arguments = tuple(_split(text[opening + 1 : end - 1]))
    return _Parts(text[begin:scope_end], text[scope_end:opening], arguments, parameters)


def _declarator(text: str, tops: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """From behind the return type to the parameter list."""
    lists = [i for i, c in tops if c == "("]
    end = len(text)
    if lists and text.rfind(")") > lists[-1] and _BEHIND.fullmatch(text, text.rfind(")") + 1):
        end = lists[-1]
    operator = text.find("operator ")
    spaces = (i + 1 for i, c in tops if c == " " and i < end and (operator < 0 or i < operator))
    return max(spaces, default=0), end


def _top_level(text: str) -> list[tuple[int, str]] | None:
    """Opening brackets, spaces, commas and scopes outside of brackets; ``None`` where those don't match."""
    parts: list[tuple[int, str]] = []
    stack: list[str] = []
    place = 0
    while place < len(text):
        if skipped := _word(text, place):
            place += skipped
            continue
        sign = text[place]
        if not stack and (sign in "(< ," or text.startswith("::", place)):
            parts.append((place, sign))
        if sign in "([{" or (sign == "<" and not _is_comparison(text, place, stack)):
            stack.append(sign)
        elif (sign in ")]}" or (sign == ">" and stack[-1:] == ["<"])) and (
            not stack or stack.pop() != _CLOSING[sign]
        ):
            return None
        place += 2 if sign == ":" and text.startswith("::", place) else 1
    return None if stack else parts


def _word(text: str, place: int) -> int:
    """Characters of what has brackets in it and is none: operators, arrows, the unnamed namespace."""
    if text.startswith(_ANONYMOUS, place):
        return len(_ANONYMOUS)
    if text.startswith("->", place):
        return 2
    operator = _OPERATOR.match(text, place) if text[place] == "o" else None
    return len(operator.group()) if operator else 0


def _is_comparison(text: str, place: int, stack: list[str]) -> bool:
    return stack[-1:] == ["("] and text[place - 1 : place] == " "


def _split(arguments: str) -> Iterator[str]:
    """Template arguments at their commas."""
    begin = 0
    for place, sign in _top_level(arguments) or ():
        if sign == ",":
            yield arguments[begin:place].strip()
            begin = place + 1
    yield arguments[begin:].strip()
