"""What rpl-emu contributes beside its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.errors import RplError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.document import DocumentSection
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import ReportSection
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent
    from rpl_vmreplay.interfaces import Replayer

RPL_API = 2


class EmulatorCheck(DoctorCheck):
    """Whether kernels can run without a GPU here."""

    name = "emulator"
    summary = "the program that runs gfx942 kernels on the CPU, and LLVM to decode them"

    def check(self) -> DoctorReport:
        from rpl_emu.software_gpu import call

        try:
            document = call(["doctor"], seconds=30).document
        except RplError as error:
            return DoctorReport(DoctorStatus.MISSING, error.fact, "`rpl emu`, `rpl isa-mix`", error.next_step)
        return DoctorReport(
            DoctorStatus.OK, f"{document['opcodes']} opcodes, {document['cpu']}, {document['disassembler']}"
        )


class RuntimeCheck(DoctorCheck):
    """Whether there is a runtime of ROCm that whole programs can take."""

    name = "emulated-runtime"
    summary = "ROCm's runtime, with which HIP programs run on the emulated device"

    def check(self) -> DoctorReport:
        from rpl_emu.runtime_packages import fetched, hip_version
        from rpl_emu.software_gpu import system_runtime

        found = [f"{hip_version(folder)} in {folder}" for folder in reversed(fetched())]
        if (system := system_runtime()) is not None:
            found.insert(0, f"the system's in {system}")
        if not found:
            return DoctorReport(
                DoctorStatus.MISSING,
                "ROCm's runtime is not here",
                "`rpl emu run`, `rpl demo`, `rpl profile --device gfx942-emu`",
                "rpl emu get-runtime (into your cache, without root)",
            )
        return DoctorReport(DoctorStatus.OK, "; ".join(found))


@hookimpl
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...]:
    del config
    return EmulatorCheck(), RuntimeCheck()


@hookimpl
def rpl_replayers() -> tuple[Replayer, ...]:
    from rpl_emu.replay import EmulatedReplayer

    return (EmulatedReplayer(),)


@hookimpl
def rpl_collectors(config: Mapping[str, Any]) -> tuple[Collector, ...]:
    from rpl_emu.collector import EmulatedCollector

    del config
    return (EmulatedCollector(),)


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_emu.software_gpu import RUNTIME

    return (RUNTIME,)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_emu.heat import HeatReader

    return (HeatReader(),)


@hookimpl
def rpl_documents() -> tuple[DocumentSection, ...]:
    from rpl_emu.heat import HeatInProfile

    return (HeatInProfile(),)


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_emu.heat import HeatSection

    return (HeatSection(),)


@hookimpl
def rpl_device_models() -> tuple[DeviceModel, ...]:
    model = _emulated_device()
    return (model,) if model else ()


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """By the name that the recordings of the emulator give to their agents."""
    from rpl_emu.software_gpu import PRODUCT

    return _emulated_device() if agents and all(agent.product == PRODUCT for agent in agents) else None


def _emulated_device() -> DeviceModel | None:
    from rpl_emu.software_gpu import emulated_device

    try:
        return emulated_device()
    except ModuleNotFoundError:  # without the plugin of the MI300X its ceilings are unknown here, too
        return None
