"""Choose how candidates are built: the one entry point of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import MissingError, PluginError, UsageError
from rpl_core.plugins.boundary import plugin_boundary
from rpl_optimize.build.model import ProgramBuilder
from rpl_optimize.interfaces.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rpl_core.plugins.relay import Contribution
    from rpl_optimize.interfaces.builder import BuildRequest, BuildSystem


def choose_builder(
    request: BuildRequest, systems: Iterable[Contribution[BuildSystem]], note: Callable[[str], None]
) -> ProgramBuilder:
    """The builder of the first build system that has one, by priority; a broken one costs only itself.

    Raises what the system raises that applies and can't work: ``UsageError`` where what the user said
    contradicts itself or the files, ``MissingError`` without a compiler or build program, ``BadDataError``
    for a broken compile database. ``MissingError`` too where no system applies.
    """
    request = attrs.evolve(request, source=(request.place / request.source).resolve())
    if not request.source.is_file():
        raise UsageError(f"no source file at {request.source}", next_step="check --source")
    if request.kernels_in_memory:
        systems = [offered for offered in systems if _overrides(offered)]
        if not systems:
            raise _in_memory(request.kernels_in_memory)
    for offered in sorted(systems, key=lambda system: (-system.value.priority, system.plugin)):
        try:
            builder = _asked(offered, request)
        except PluginError as error:
            note(f"warning: {error.fact}; another way to build is looked for")
            continue
        if builder is not None:
            return ProgramBuilder(offered.plugin, offered.value.name, builder)
    raise MissingError(
        f"no installed plugin can build {request.source.name}",
        next_step="give your own build with --build, see `rpl plugins list`",
    )


def _overrides(offered: Contribution[BuildSystem]) -> bool:
    return offered.value.overrides_code is True


def _in_memory(kernels: Sequence[str]) -> MissingError:
    return MissingError(
        f"no file holds {', '.join(kernels)}: it is compiled while the program runs (hipRTC, Triton), "
        "or loaded from memory",
        cause="no installed plugin gives a running program other code objects (a build system with "
        "overrides_code)",
        next_step="have the program load a file with hipModuleLoad, and name that with --binary FILE",
    )


def _asked(offered: Contribution[BuildSystem], request: BuildRequest) -> Builder | None:
    where = f"build system {offered.value.name}"
    with plugin_boundary(offered.plugin, where):
        answer: object = offered.value.builder(request)
    if answer is not None and not isinstance(answer, Builder):
        raise PluginError(offered.plugin, where, f"returned {type(answer).__name__}")
    if answer is not None and not isinstance(getattr(answer, "summary", None), str):
        raise PluginError(offered.plugin, where, "its builder has no text in 'summary'")
    return answer
