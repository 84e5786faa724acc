"""The GPUs of this machine as the driver lists them, and whether an installed plugin knows each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.plugins.entry_points import missing_provider

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DevicePluginCheck", "architectures_here", "known_architectures"]

_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
_NEEDED_FOR = "ceilings, counter passes and the roofline"


class DevicePluginCheck(DoctorCheck):
    """An installed plugin knows every GPU of this machine.

    ``known`` gives the architectures that installed plugins know, when it is asked.
    """

    name = "device-plugin"
    summary = "a plugin knows the GPU of this machine"

    def __init__(self, known: Callable[[], frozenset[str]], topology: Path = _TOPOLOGY) -> None:
        self._known = known
        self._topology = topology

    def check(self) -> DoctorReport:
        here = architectures_here(self._topology)
        if not here:
            return DoctorReport(DoctorStatus.OK, "no AMD GPU in this machine", _NEEDED_FOR)
        unknown = [name for name in here if name not in self._known()]
        if not unknown:
            return DoctorReport(DoctorStatus.OK, f"installed plugins know {', '.join(here)}", _NEEDED_FOR)
        packages = {package for name in unknown if (package := missing_provider("devices", name))}
        remedy = (
            f"pip install {' '.join(sorted(packages))}"
            if packages
            else "write one: `rpl docs plugins/device`"
        )
        return DoctorReport(
            DoctorStatus.MISSING, f"no installed plugin knows {', '.join(unknown)}", _NEEDED_FOR, remedy
        )


def architectures_here(topology: Path = _TOPOLOGY) -> list[str]:
    """Architectures of the GPUs that the driver lists, each once, in the order of its nodes."""
    found: dict[str, None] = {}
    try:
        nodes = sorted(topology.iterdir(), key=lambda node: (len(node.name), node.name))
        for node in nodes:
            for line in (node / "properties").read_text(encoding="ascii").splitlines():
                key, _, value = line.partition(" ")
                if key == "gfx_target_version" and value.isdigit() and int(value):
                    found[_architecture(int(value))] = None
    except (OSError, UnicodeDecodeError):  # no driver, or no permission
        return list(found)
    return list(found)


def _architecture(version: int) -> str:
    """``gfx90a`` for 90010: decimal major, minor, stepping, the last two written in hex.

    See docs/reference/formats.md, 2.6.
    """
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def known_architectures() -> frozenset[str]:
    """What the installed plugins know by device, with the plugins that the environment allows."""
    from rpl_core.plugins.discovery import PluginSelection
    from rpl_core.plugins.host import create_host

    host = create_host(PluginSelection.from_environment(), config={})
    return frozenset(model.architecture for model in host.catalog.devices())
