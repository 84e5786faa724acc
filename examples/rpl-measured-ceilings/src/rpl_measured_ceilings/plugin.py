"""What this distribution offers to rpl: ceilings for the device that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling

RPL_API = 2
_SETTINGS = "plugins.measured-ceilings"
RPL_SETTINGS = (
    PluginSetting(f"{_SETTINGS}.file", SettingKind.VALUE, "results of a benchmark, which are only read"),
    PluginSetting(f"{_SETTINGS}.device", SettingKind.VALUE, "the device that was measured"),
    PluginSetting(f"{_SETTINGS}.row", SettingKind.VALUE, "which row of the file"),
)


@hookimpl
def rpl_ceilings(
    device: DeviceModel, config: Mapping[str, Any]
) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    from rpl_measured_ceilings.roofline_file import read_ceilings

    file = config.get(f"{_SETTINGS}.file")
    wanted = str(config.get(f"{_SETTINGS}.device", "")).lower()
    if file is None or wanted not in (device.name.lower(), device.architecture.lower()):
        return ()
    return read_ceilings(str(file), row=int(config.get(f"{_SETTINGS}.row", 0)))
