"""The metric ``modelled-issue-cycles``: what a kernel's instructions cost their SIMDs, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpl_core.errors import BadDataError
from rpl_core.interfaces.collector import CollectRequest
from rpl_core.interfaces.options import Options
from rpl_emu.collector import LAUNCHES, EmulatedCollector
from rpl_emu.software_gpu import DEVICE
from rpl_optimize.interfaces.metric import Metric, MetricRequest, MetricValue

#: A pass keeps a unit of a SIMD busy for so long (LLVM, SISchedule.td).
CYCLES_PER_PASS = 4


class IssueCycles(Metric):
    """Programs run in the emulator once; the counts are exact, what they cost is LLVM's table."""

    name = "modelled-issue-cycles"
    summary = "cycles that the executed instructions keep a SIMD's units busy, by LLVM's scheduling table"
    unit = "cycles per SIMD"
    formula = (
        "sum over executed instructions of 4 cycles * LLVM's passes (SISchedule.td), over the SIMDs that the "
        "launch's waves can use, over all launches of the kernel"
    )
    devices = (DEVICE,)
    architecture = "gfx942"

    def command(self, command: tuple[str, ...], options: Options) -> tuple[str, ...]:
        from rpl_emu.software_gpu import find_runtime, launcher_words
        from rpl_vmreplay.compare.optimizer_options import SANITIZE

        runtime = find_runtime(command, None)
        return (*launcher_words(runtime, sanitize=bool(options[SANITIZE])), *command)

    def value(self, request: MetricRequest) -> MetricValue:
        from rpl_emu.rocpd_file import read_work

        collector = EmulatedCollector()
        plan = collector.plan(CollectRequest(request.command, runs=1, time_limit_s=request.time_limit_s))
        (planned,) = plan.passes
        collector.run(planned, request.directory, request.log)
        log = request.directory / planned.directory / LAUNCHES
        launches = [
            launch.facts
            for work in read_work(log).values()
            for launch in work.launches
            if launch.facts["kernel"] == request.kernel
        ]
        if not launches:
            raise BadDataError(f"the program does not launch {request.kernel}")
        return MetricValue(sum(map(issue_cycles, launches)), len(launches))


def issue_cycles(facts: Mapping[str, Any]) -> float:
    """Of one launch, over all units: they add up, where the bound of a launch takes the busiest."""
    modelled = facts["modelled"]
    passes: int = sum(modelled["issue_passes"].values())
    return CYCLES_PER_PASS * passes / int(modelled["simds"])
