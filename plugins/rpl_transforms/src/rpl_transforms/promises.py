"""Promises to the compiler about a kernel: launch bounds, and pointers that never overlap."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.text.table import counted
from rpl_optimize.interfaces.declared_change import LaunchBounds, RestrictedParameter
from rpl_optimize.interfaces.source_reading import SourceReading
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    Transformation,
)
from rpl_transforms.evidence import KernelFacts, launch_bounds_evidence, restrict_evidence
from rpl_transforms.source_file import KernelNode, Launch, SourceFile, read_source_file
from rpl_transforms.syntax import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


# What all transformations that work kernel by kernel share.


class KernelTransformation(Transformation):
    """Proposes kernel by kernel."""

    suffixes = (".cu", ".hip", ".cpp", ".cc", ".cxx")

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = read_source_file(source.text)
        return tuple(
            found
            for kernel in file.editable_kernels(source.kernel)
            for found in self.of_kernel(file, kernel, source.reading)
        )

    @abstractmethod
    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, reading: SourceReading | None
    ) -> Iterator[EditCandidate]:
        """Candidates of one kernel, refused ones included."""

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        _ = source
        named = [(c.id, KernelFacts.of(c.kernel, documents)) for c in candidates if c.kernel is not None]
        return {identity: self.evidence_of(facts) for identity, facts in named}

    @abstractmethod
    def evidence_of(self, facts: KernelFacts) -> Evidence:
        """What speaks for this change of a kernel with these facts."""


# Launch bounds: promise the compiler the largest workgroup that the program launches.

#: What HIP allows at most, and what the compiler assumes without a bound (HIP documentation, "Launch
#: bounds").
MOST_THREADS = 1024
_BOUNDS = ("__launch_bounds__", "launch_bounds", "amdgpu_flat_work_group_size")
_WRITES = frozenset(("assignment_expression", "pointer_expression", "update_expression"))
_DIM3 = re.compile(r"dim3\s*[({](.*)[)}]", re.DOTALL)


class ThreadsPerBlock(KernelTransformation):
    """The promise is refused unless the file is a whole program and every launch has a known size."""

    name = "threads-per-block"
    summary = "Promise the compiler the largest block that the program launches (__launch_bounds__)."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, reading: SourceReading | None
    ) -> Iterator[EditCandidate]:
        _ = reading
        head = text_of(kernel.function).partition("{")[0]
        if any(word in head for word in _BOUNDS):
            return
        launches = file.launches(kernel.name)
        sizes = [_threads(file, launch) for launch in launches or ()]
        known = [size for size in sizes if size is not None]
        guards = (_launched_here(file, launches), _sizes_known(launches or (), sizes))
        if not known:
            yield EditCandidate(
                f"{kernel.name}-unknown", kernel.name, kernel.line, "bound the block", (), guards
            )
            return
        most = max(known)
        if most >= MOST_THREADS:
            return
        assert kernel.plain_name is not None  # of every editable kernel
        place = kernel.plain_name.start_byte
        bound = f"__launch_bounds__({most}) "
        yield EditCandidate(
            id=f"{kernel.name}-{most}",
            kernel=kernel.name,
            line=kernel.line,
            summary=f"promise {most} threads per block of {kernel.name}",
            edits=(Edit(place, place, bound.encode()),),
            guards=guards,
            workgroup_limit=most,
            declares=(LaunchBounds(most),),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return launch_bounds_evidence(facts)


def _launched_here(file: SourceFile, launches: tuple[Launch, ...] | None) -> GuardVerdict:
    name = "launched-here-only"
    if launches is None:
        return GuardVerdict(name, False, "its name is used in other ways than a launch")
    if not launches:
        return GuardVerdict(name, False, "the file launches it nowhere")
    functions = (node for node in walk(file.root) if node.type == "function_declarator")
    if not any(text_of(node.child_by_field_name("declarator")) == "main" for node in functions):
        return GuardVerdict(name, False, "other files may launch it with more threads: there is no main here")
    return GuardVerdict(name, True, f"{counted(len(launches), 'launch', 'launches')} in a whole program")


def _sizes_known(launches: tuple[Launch, ...], sizes: list[int | None]) -> GuardVerdict:
    for launch, size in zip(launches, sizes, strict=True):
        if size is None:
            return GuardVerdict(
                "block-size-known", False, f"the block size {launch.block!r} is not settled", launch.line
            )
    return GuardVerdict("block-size-known", bool(sizes), "every launch has a constant block size")


def _threads(file: SourceFile, launch: Launch) -> int | None:
    """The product over the dimensions, where the file settles it."""
    block = _block(file, launch)
    return None if block is None else math.prod(block)


def _block(file: SourceFile, launch: Launch) -> tuple[int, ...] | None:
    if launch.block is None:
        return None
    written = _DIM3.fullmatch(launch.block) or _DIM3.fullmatch(_declared_dim3(file, launch.block))
    parts = (launch.block if written is None else written[1]).split(",")
    sizes = [file.integer(part.strip()) for part in parts]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def largest_block(file: SourceFile, kernel: str) -> tuple[int, ...] | None:
    """What every launch has at most in x, y and z, where the file is a whole program that settles it."""
    launches = file.launches(kernel)
    blocks = [_block(file, launch) for launch in launches or ()]
    known = [(*block, 1, 1)[:3] for block in blocks if block is not None]
    if not known or len(known) != len(blocks) or not _launched_here(file, launches).passed:
        return None
    return tuple(max(sizes) for sizes in zip(*known, strict=True))


def _declared_dim3(file: SourceFile, name: str) -> str:
    """``dim3(...)`` of a variable that is declared once and never assigned, else an empty text."""
    found: list[str] = []
    for node in walk(file.root):
        if node.type == "init_declarator" and text_of(node.child_by_field_name("declarator")) == name:
            is_dim3 = node.parent is not None and text_of(node.parent).startswith(("dim3", "const dim3"))
            value = text_of(node.child_by_field_name("value"))
            found.append(f"dim3{value}" if is_dim3 and value.startswith(("(", "{")) else value)
        elif node.type in _WRITES and re.search(rf"(?:^|[&*(\s]){re.escape(name)}\b", text_of(node)):
            return ""
    return found[0] if len(found) == 1 else ""


# ``__restrict__`` on pointer parameters, where the user has said that they point to different memory.
#
# No compiler tells whether two parameters of a kernel alias: that is the caller's secret. So the user's
# word is asked for, per kernel, and nothing is proposed without it.

SETTING = "plugins.transforms.distinct-pointers"


class Restrict(KernelTransformation):
    """``distinct``: kernels of which the user says that their pointers never overlap; ``*``: all."""

    name = "restrict"
    summary = "Add __restrict__ to all pointers of kernels whose pointers the user calls distinct."

    def __init__(self, distinct: frozenset[str] = frozenset()) -> None:
        self._distinct = distinct

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, reading: SourceReading | None
    ) -> Iterator[EditCandidate]:
        _ = (file, reading)
        pointers = [
            pointer for node in kernel.parameter_declarations if (pointer := _pointer(node)) is not None
        ]
        open_ones = [(name, place) for name, place, restricted in pointers if not restricted]
        if len(pointers) < 2 or not open_ones:
            return
        said = bool({kernel.name, "*"} & self._distinct)
        reason = "the user says so" if said else f"only the user knows; say it by the setting {SETTING}"
        names = ", ".join(name for name, _ in open_ones)
        yield EditCandidate(
            id=kernel.name,
            kernel=kernel.name,
            line=kernel.line,
            summary=f"restrict the pointers of {kernel.name}: {names}",
            edits=tuple(Edit(place, place, b"__restrict__ ") for _, place in open_ones) if said else (),
            guards=(GuardVerdict("distinct-pointers", said, reason),),
            declares=tuple(RestrictedParameter(name) for name, _ in open_ones),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return restrict_evidence(facts)


def _pointer(parameter: Node) -> tuple[str, int, bool] | None:
    """Name of a pointer parameter, the byte where its name begins, and whether it is restricted."""
    node = parameter.child_by_field_name("declarator")
    if node is None or node.type != "pointer_declarator":
        return None
    name = node.child_by_field_name("declarator")
    if name is None or name.type != "identifier":
        return None
    return text_of(name), name.start_byte, "restrict" in text_of(node)
