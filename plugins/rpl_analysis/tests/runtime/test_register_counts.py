"""Vector register counts that no GPU of the architecture could allocate are unknown, and told once."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.runtime import with_believable_registers
from rpl_core.model.device import Architecture, RecordQuirks
from rpl_core.model.recording import Recording
from rpl_testkit.traces import TracedDispatch, make_trace

HALVED = RecordQuirks(vgprs_may_be_halved=True, vgpr_granule=8)


@pytest.fixture
def checked():
    """``checked(quirks, 12, 16)``: kernels with so many registers after the check, and what is told."""

    def run(quirks: RecordQuirks, *counts: int | None):
        trace = make_trace([TracedDispatch(f"k{i}", 100 * i, 100 * i + 50) for i in range(len(counts))])
        kernels = [
            attrs.evolve(kernel, arch_vgpr=count, accum_vgpr=0, sgpr=16)
            for kernel, count in zip(trace.kernels, counts, strict=True)
        ]
        recording = Recording((attrs.evolve(trace, kernels=tuple(kernels)),))
        (architecture,) = {agent.architecture for agent in trace.agents}
        known = {architecture: Architecture(name=architecture, record_quirks=quirks)}
        recording, told = with_believable_registers(recording, known.get)
        return recording.traces[0].kernels, told

    return run


def test_one_impossible_count_discredits_all_of_its_trace(checked):
    kernels, (told,) = checked(HALVED, 16, 12)
    assert {k.arch_vgpr for k in kernels} == {None}
    assert {k.sgpr for k in kernels} == {16}
    assert (told.code, told.count) == ("kernel.impossible_registers", 2)


@pytest.mark.parametrize(
    ("quirks", "counts"),
    [
        (HALVED, (16, None)),
        (RecordQuirks(vgpr_granule=8), (12,)),
        (RecordQuirks(vgprs_may_be_halved=True), (12,)),
    ],
)
def test_possible_counts_and_architectures_without_the_quirk_stay_as_recorded(checked, quirks, counts):
    kernels, told = checked(quirks, *counts)
    assert tuple(k.arch_vgpr for k in kernels) == counts
    assert told == ()
