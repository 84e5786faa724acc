"""Occupancy of compiled kernels, as a fact that an analyzer gives: what is asked, and what comes back.

How many waves fit is arithmetic on limits of the GPU, which this distribution does not know. It states the
launches (``CODE_KERNELS``); whoever can, answers (``CODE_OCCUPANCY``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rpl_codeobject.values import Kernel
from rpl_core.interfaces.fact import Fact
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost

__all__ = [
    "CODE_KERNELS",
    "CODE_OCCUPANCY",
    "CodeOccupancy",
    "LaunchAssumption",
    "LaunchedKernel",
    "OccupancyOf",
    "installed_occupancy",
    "unknown_occupancy",
]

_NOBODY = "no installed plugin gives the occupancy of compiled kernels (rpl-analysis does)"


@frozen
class LaunchAssumption:
    """What the code object can't know. Without a workgroup size the largest permitted one is taken."""

    workgroup_size: int | None = None
    dynamic_lds_bytes: int = 0

    def of(self, kernel: Kernel, architecture: str) -> LaunchedKernel:
        return LaunchedKernel(
            kernel,
            architecture,
            self.workgroup_size or kernel.max_workgroup_size,
            kernel.lds_bytes + self.dynamic_lds_bytes,
        )


@frozen
class LaunchedKernel:
    """A compiled kernel in one launch: work-items per workgroup, LDS per workgroup with the dynamic part."""

    kernel: Kernel
    architecture: str
    workgroup_size: int
    lds_bytes: int


@frozen
class CodeOccupancy:
    """Waves per SIMD with what limits them, or ``None`` with the reason."""

    waves_per_simd: int | None
    limiter: str | None = None
    reason: str | None = None


#: The launches that somebody asks about.
CODE_KERNELS: Fact[tuple[LaunchedKernel, ...]] = Fact("code_kernels", tuple)
#: One answer for each of them; ``None`` where nobody asked.
CODE_OCCUPANCY: Fact[Mapping[LaunchedKernel, CodeOccupancy] | None] = Fact("code_occupancy", Mapping)

#: Answers for all of the given launches.
OccupancyOf = Callable[[Sequence[LaunchedKernel]], Mapping[LaunchedKernel, CodeOccupancy]]


def unknown_occupancy(kernels: Sequence[LaunchedKernel]) -> Mapping[LaunchedKernel, CodeOccupancy]:
    """Nobody answers."""
    return dict.fromkeys(kernels, CodeOccupancy(None, reason=_NOBODY))


def installed_occupancy(host: PluginHost) -> OccupancyOf:
    """Answers of the installed analyzer, asked when there is something to ask."""

    def ask(kernels: Sequence[LaunchedKernel]) -> Mapping[LaunchedKernel, CodeOccupancy]:
        return _answers(host, tuple(dict.fromkeys(kernels))) if kernels else {}

    return ask


def _answers(host: PluginHost, kernels: tuple[LaunchedKernel, ...]) -> Mapping[LaunchedKernel, CodeOccupancy]:
    from rpl_core.interfaces.analyzer import AnalysisContext
    from rpl_core.interfaces.fact import Facts
    from rpl_core.model.recording import Recording
    from rpl_core.pipeline import architectures
    from rpl_core.schedule import Step, analyze

    offered = host.catalog.analyzers().contributions
    steps = [Step(c.plugin, c.value) for c in offered if CODE_OCCUPANCY in c.value.provides]
    if not steps:
        return unknown_occupancy(kernels)
    context = AnalysisContext(
        recording=Recording(()),
        device=None,
        facts=Facts({CODE_KERNELS: kernels}),
        architecture=architectures(None, host),
    )
    result = analyze(context, steps)
    found = result.facts.get(CODE_OCCUPANCY) or {}
    problem = next((one.fact for one in result.diagnostics), "the analyzer gave no answer")
    return {one: found.get(one, CodeOccupancy(None, reason=problem)) for one in kernels}
