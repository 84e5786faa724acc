"""The code of a launch: the kernel in the captured code object, or in one that takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_vmreplay.capture.files import CODE_OBJECT, KERNARG

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_codeobject.values import CodeObject, Kernel
    from rpl_vmreplay.capture.folder import Capture

#: Hidden arguments that lead to objects of the captured process
#: (https://llvm.org/docs/AMDGPUUsage.html, "Code Object V5 Metadata").
_STALE = frozenset({
    "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg", "hidden_heap_v1",
    "hidden_default_queue", "hidden_completion_action", "hidden_queue_ptr",
})  # fmt: skip


@frozen
class LaunchCode:
    """A plain code object and the kernel of it."""

    code: CodeObject
    kernel: Kernel


def kernel_name(capture: Capture) -> str:
    """As the compiler named it: capturing tools add how they found it."""
    return capture.dispatch.mangled_name.removesuffix(" [clone .kd]").removesuffix(".kd")


def captured_code(capture: Capture) -> LaunchCode:
    """Raises BadDataError when the captured code object is none, or has no such kernel."""
    return _code_in(capture.folder / CODE_OBJECT, kernel_name(capture))


def other_code(capture: Capture, path: Path) -> LaunchCode:
    """What takes the place of the captured code. Raises BadDataError when launches of the captured kernel
    don't fit it, as `rpl abi-diff` judges."""
    from rpl_codeobject.comparing.compare import compare_code_objects
    from rpl_codeobject.comparing.difference import Severity

    name = kernel_name(capture)
    before, after = captured_code(capture), _code_in(path, name)
    breaking = compare_code_objects([before.code], [after.code], kernel=name).of(Severity.BREAKING)
    same_target = before.code.architecture == after.code.architecture
    if same_target and breaking:
        first = breaking[0]
        raise BadDataError(
            f"{path} takes other arguments than the captured launch has: {first.what},"
            f" {first.before} -> {first.after}",
            cause=first.reason,
            next_step=f"rpl abi-diff {capture.folder / CODE_OBJECT} {path} names all differences",
        )
    return after


def _code_in(path: Path, name: str) -> LaunchCode:
    from rpl_codeobject.reading.read import read_code_objects

    for code in read_code_objects(path):
        kernel = code.kernel(name)
        if kernel is not None:
            return LaunchCode(code, kernel)
    raise BadDataError(f"{path} has no kernel {name}", next_step="the kernel must keep its name")


def target_of(capture: Capture, path: Path) -> str:
    """For what ``path``, which takes the place of the captured code, is compiled. Raises BadDataError."""
    return _code_in(path, kernel_name(capture)).code.target


def stale_arguments(capture: Capture, code: LaunchCode) -> dict[str, tuple[int, int]]:
    """Hidden arguments that hold an address in the captured process: name -> offset and size."""
    arguments = (capture.folder / KERNARG).read_bytes()
    return {
        one.value_kind: (one.offset, one.size)
        for one in code.kernel.arguments
        if one.value_kind in _STALE and any(arguments[one.offset : one.offset + one.size])
    }
