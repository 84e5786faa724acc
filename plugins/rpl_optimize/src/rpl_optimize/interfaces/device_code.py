"""What a build holds for the GPU, where its compiler makes no AMD code objects, and how two builds compare.

A builder of such a compiler gives every ``Build`` a ``DeviceCode``. Without one the optimizer reads AMD code
objects out of the binary itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture
    from rpl_optimize.interfaces.transformation import GuardVerdict

__all__ = ["CodeComparison", "DeviceCode"]


@frozen
class CodeComparison:
    """What a candidate may change, and what the comparison needs to know beside both builds.

    ``kernel`` is the source name of the one kernel that may change. ``launch_size`` is the number of
    work-items per workgroup in the baseline's launches, ``None`` where it is not known. ``changes_loop``,
    ``workgroup_limit`` and ``lds_growth`` are what the candidate declares (``EditCandidate``). With
    ``measured``, resources that got worse pass and ask for the measurement.
    """

    kernel: str
    architecture_of: Callable[[str], Architecture | None]
    launch_size: int | None = None
    changes_loop: bool = False
    measured: bool = True
    allow_occupancy_loss: bool = False
    workgroup_limit: int | None = None
    lds_growth: int | None = None


class DeviceCode(ABC):
    """The device code of one build. ``digest`` is equal exactly where what the GPU executes is equal."""

    digest: str

    @abstractmethod
    def guards(self, after: DeviceCode, asked: CodeComparison) -> tuple[GuardVerdict, ...]:
        """Whether ``after`` differs from this by the kernel's code alone, and is launched in the same way.

        At least ``binary-kernels``, ``binary-abi``, ``binary-isa``, ``binary-cooperation`` and ``other-code``
        as docs/transformations.md has them; a comparison that can't be made does not pass.
        """

    @abstractmethod
    def why_not_moved(self, shifted: DeviceCode, kernel: str) -> str | None:
        """Why ``shifted`` does not hold the kernel's same code at another place, or ``None``."""
