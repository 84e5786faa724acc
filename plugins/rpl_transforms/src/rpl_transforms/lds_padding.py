"""Padding of static shared memory: rows that all begin in the same bank begin in different ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import SourceReading
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    ResizedArray,
)
from rpl_transforms.evidence import KernelFacts, padding_evidence
from rpl_transforms.promises import UNREAD, KernelTransformation, largest_block
from rpl_transforms.source_file import KernelNode, SourceFile
from rpl_transforms.syntax import line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

#: Banks of shared memory, 4 bytes wide (docs/reference/counters.md, 3.5). On a GPU with twice as many, such
#: rows begin in one or two of them.
_BANKS, _BANK_BYTES = 32, 4
#: The least shared memory of a compute unit (docs/reference/devices.md, 4.1).
_MOST_BYTES = 64 << 10
_SIZES = {"float": 4, "int": 4, "unsigned": 4, "unsigned int": 4, "double": 8}


@frozen(eq=False)
class Tile:
    """A two-dimensional array: ``rows`` of ``columns``; ``extent`` is the node of the latter."""

    name: str
    begin: int  # of its name, in bytes
    rows: int
    columns: int
    element_bytes: int
    extent: Node


class LdsPadding(KernelTransformation):
    """One column more, where a row fills all banks and the compiler proves that no use knows its length."""

    name = "lds-padding"
    summary = "Pad rows of static shared arrays so that a column does not lie in one bank."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        for node in walk(kernel.body):
            tile = _tile(file, node) if node.type == "declaration" else None
            if tile is None or tile.columns * tile.element_bytes % (_BANKS * _BANK_BYTES):
                continue
            grown = tile.rows * tile.element_bytes
            block = largest_block(file, kernel.name, source.reading)
            guards = (_used_by_element(source.reading, tile, block), _fits(tile, grown))
            allowed = all(guard.passed for guard in guards)
            end = tile.extent.end_byte
            yield EditCandidate(
                id=f"{kernel.name}-{tile.name}",
                kernel=kernel.name,
                line=line_of(node),
                summary=f"pad each row of {tile.name} in {kernel.name} by one element",
                edits=(Edit(end, end, b" + 1"),) if allowed else (),
                guards=guards,
                lds_growth=grown,
                declares=(ResizedArray(tile.name, block),),
            )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return padding_evidence(facts)


def _tile(file: SourceFile, declaration: Node) -> Tile | None:
    qualifiers = {text_of(child) for child in declaration.children if child.type == "type_qualifier"}
    array = declaration.child_by_field_name("declarator")
    element = _SIZES.get(text_of(declaration.child_by_field_name("type")))
    if "__shared__" not in qualifiers or array is None or array.type != "array_declarator" or element is None:
        return None
    inner, extent = array.child_by_field_name("declarator"), array.child_by_field_name("size")
    if inner is None or inner.type != "array_declarator" or extent is None:
        return None
    name, outer = inner.child_by_field_name("declarator"), inner.child_by_field_name("size")
    rows, columns = file.integer(text_of(outer)), file.integer(text_of(extent))
    if name is None or name.type != "identifier" or rows is None or columns is None:
        return None
    return Tile(text_of(name), name.start_byte, rows, columns, element, extent)


def _used_by_element(
    reading: SourceReading | None, tile: Tile, block: tuple[int, ...] | None
) -> GuardVerdict:
    if reading is None:
        return GuardVerdict("used-by-element", False, UNREAD)
    return reading.used_by_element(tile.begin, block)


def _fits(tile: Tile, grown: int) -> GuardVerdict:
    size = tile.rows * tile.columns * tile.element_bytes + grown
    reason = f"{size} bytes with the padding, {_MOST_BYTES} are there"
    return GuardVerdict("fits-shared-memory", size <= _MOST_BYTES, reason)
