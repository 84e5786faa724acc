"""Launch bounds: promise the compiler the largest workgroup that the program launches."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_core.text.table import counted
from rpl_optimize.interfaces.declared_change import LaunchBounds
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, GuardVerdict
from rpl_transforms.evidence import launch_bounds_evidence
from rpl_transforms.proposal import KernelTransformation
from rpl_transforms.syntax import text_of, walk

if TYPE_CHECKING:
    from rpl_optimize.interfaces.source_reading import SourceReading
    from rpl_optimize.interfaces.transformation import Evidence
    from rpl_transforms.evidence import KernelFacts
    from rpl_transforms.syntax import Kernel, Launch, Source

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
        self, file: Source, kernel: Kernel, reading: SourceReading | None
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
        place = kernel.name_node.start_byte
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


def _launched_here(file: Source, launches: tuple[Launch, ...] | None) -> GuardVerdict:
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


def _threads(file: Source, launch: Launch) -> int | None:
    """The product over the dimensions, where the file settles it."""
    block = _block(file, launch)
    return None if block is None else math.prod(block)


def _block(file: Source, launch: Launch) -> tuple[int, ...] | None:
    if launch.block is None:
        return None
    written = _DIM3.fullmatch(launch.block) or _DIM3.fullmatch(_declared_dim3(file, launch.block))
    parts = (launch.block if written is None else written[1]).split(",")
    sizes = [file.integer(part.strip()) for part in parts]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def largest_block(file: Source, kernel: str) -> tuple[int, ...] | None:
    """What every launch has at most in x, y and z, where the file is a whole program that settles it."""
    launches = file.launches(kernel)
    blocks = [_block(file, launch) for launch in launches or ()]
    known = [(*block, 1, 1)[:3] for block in blocks if block is not None]
    if not known or len(known) != len(blocks) or not _launched_here(file, launches).passed:
        return None
    return tuple(max(sizes) for sizes in zip(*known, strict=True))


def _declared_dim3(file: Source, name: str) -> str:
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
