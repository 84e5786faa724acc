"""What this distribution offers to rpl: two devices, how to recognise them, readers, and a way to record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.reader import Reader
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent

RPL_API = 2


@hookimpl
def rpl_device_models() -> tuple[DeviceModel, ...]:
    from rpl_sm90.products import H100, H200

    return (H100, H200)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_sm90.products import detected

    return detected(agents)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_sm90.ncu import NcuReader
    from rpl_sm90.reader import CuptiReader, NsightReader

    return (NsightReader(), CuptiReader(), NcuReader())


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_sm90.collector import CuptiCollector

    return (CuptiCollector(),)
