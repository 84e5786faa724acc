"""Loads of neighbouring elements as one wide load, behind a proof of alignment at run time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import SourceReading
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
)
from rpl_transforms.evidence import KernelFacts, vector_load_evidence
from rpl_transforms.promises import UNREAD, KernelTransformation
from rpl_transforms.source_file import KernelNode, SourceFile
from rpl_transforms.syntax import line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

#: Element type -> how many of them a load of 16 bytes brings.
_VECTORS = {"float": 4, "int": 4, "double": 2}
_OFFSET = re.compile(r"(.*?)(?:\s*\+\s*(\d+))?", re.DOTALL)
#: Nothing in an index may do anything or be read twice with another result.
_PLAIN_INDEX = re.compile(r"[\w\s+*()]*")


@frozen(eq=False)
class Load:
    """``TYPE NAME = POINTER[INDEX + OFFSET];``"""

    node: Node
    element: str
    name: str
    pointer: str
    index: str
    offset: int
    value: Node


class VectorLoads(KernelTransformation):
    """The wide load runs only where the address is a multiple of 16 bytes; else the elements one by one.

    The elements were all loaded before, one statement after the other, so no byte is read that was not.
    """

    name = "vector-loads"
    summary = "Load neighbouring elements at once where their address is aligned."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        readonly = dict(_read_only(kernel))
        for block in walk(kernel.body):
            if block.type != "compound_statement":
                continue
            loads = [_load(node, readonly) for node in block.named_children]
            for begin in range(len(loads)):
                group = _group(loads[begin:])
                if group:
                    yield _candidate(file, kernel, group, source.reading)

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return vector_load_evidence(facts)


def _read_only(kernel: KernelNode) -> Iterator[tuple[str, str]]:
    """Pointer parameters to constant elements of a type with vectors: name and element type."""
    for parameter in kernel.parameter_declarations:
        qualifiers = {text_of(c) for c in parameter.children if c.type == "type_qualifier"}
        element = text_of(parameter.child_by_field_name("type"))
        declarator = parameter.child_by_field_name("declarator")
        is_pointer = declarator is not None and declarator.type == "pointer_declarator"
        if element in _VECTORS and qualifiers == {"const"} and declarator is not None and is_pointer:
            yield text_of(declarator.child_by_field_name("declarator")), element


def _load(node: Node, readonly: dict[str, str]) -> Load | None:
    declared = node.child_by_field_name("declarator") if node.type == "declaration" else None
    if declared is None or declared.type != "init_declarator":
        return None
    if sum(child.type == "init_declarator" for child in node.named_children) != 1:
        return None
    element, value = text_of(node.child_by_field_name("type")), declared.child_by_field_name("value")
    name = declared.child_by_field_name("declarator")
    if value is None or value.type != "subscript_expression" or name is None or name.type != "identifier":
        return None
    pointer = text_of(value.child_by_field_name("argument"))
    index = text_of(value.child_by_field_name("indices")).removeprefix("[").removesuffix("]").strip()
    match = _OFFSET.fullmatch(index)
    if readonly.get(pointer) != element or match is None or not _PLAIN_INDEX.fullmatch(index):
        return None
    return Load(node, element, text_of(name), pointer, match[1].strip(), int(match[2] or 0), value)


def _group(loads: list[Load | None]) -> tuple[Load, ...]:
    """As many loads as a vector has elements, at the beginning of ``loads``, one element apart."""
    first = loads[0]
    if first is None or first.offset:
        return ()
    width = _VECTORS[first.element]
    group = tuple(one for one in takewhile(lambda one: one is not None, loads[:width]) if one is not None)
    same = all(
        (one.pointer, one.index, one.element) == (first.pointer, first.index, first.element) for one in group
    )
    in_turn = [one.offset for one in group] == list(range(width))
    named = {one.name for one in group} & set(re.findall(r"\w+", first.index))
    return group if same and in_turn and not named else ()


def _candidate(
    file: SourceFile, kernel: KernelNode, group: tuple[Load, ...], reading: SourceReading | None
) -> EditCandidate:
    first = group[0]
    width, name = _VECTORS[first.element], f"rpl_{first.pointer}_{line_of(first.node)}"
    vector = f"{name}_vector"
    place = f"&{first.pointer}[{first.index}]"
    elements = ", ".join(f"{first.pointer}[{first.index} + {number}]" for number in range(width))
    # On one line: those behind it keep their numbers. A structure, as not every compiler has vector types.
    text = (
        f"struct __attribute__((aligned(16))) {vector} {{ {first.element} rpl_at[{width}]; }}; "
        f"const {vector} {name} = reinterpret_cast<unsigned long long>({place}) % 16 == 0 "
        f"? *reinterpret_cast<const {vector}*>({place}) : {vector}{{{{{elements}}}}}; "
    )
    begin = first.node.start_byte
    own = {first.pointer, *re.findall(r"\w+", first.index)}
    guards = (_proven(reading, group), names_free(reading, text, own, text_of(file.root)))
    edits = [Edit(begin, begin, text.encode())]
    for number, load in enumerate(group):
        edits.append(Edit(load.value.start_byte, load.value.end_byte, f"{name}.rpl_at[{number}]".encode()))
    return EditCandidate(
        id=f"{kernel.name}-{first.pointer}-L{line_of(first.node)}",
        kernel=kernel.name,
        line=line_of(first.node),
        summary=f"load {width} elements of {first.pointer} at once in line {line_of(first.node)}",
        edits=tuple(edits) if all(guard.passed for guard in guards) else (),
        guards=(
            GuardVerdict("aligned", True, "the wide load stands behind a test of its address"),
            *guards,
        ),
    )


def _proven(reading: SourceReading | None, group: tuple[Load, ...]) -> GuardVerdict:
    if reading is None:
        return GuardVerdict("neighbouring-loads", False, UNREAD)
    return reading.neighbouring_loads([(load.value.start_byte, load.value.end_byte) for load in group])


def names_free(reading: SourceReading | None, text: str, own: set[str], source: str) -> GuardVerdict:
    """Nothing of the new text may mean something else in this source; its ``own`` words are proven."""
    macros = None if reading is None else reading.macros()
    if macros is None:
        return GuardVerdict("names-free", False, "the macros of the source are not known")
    new = set(re.findall(r"[A-Za-z_]\w*", text)) - own
    in_source = set(re.findall(r"rpl_\w+", source))
    taken = sorted(new & (macros | in_source))
    if taken:
        return GuardVerdict("names-free", False, f"{taken[0]} means something else here")
    return GuardVerdict("names-free", True, "no macro has a name of the new text")
