"""Every property of the ABI and of the resources decides by itself; each guard refuses something alone."""

from __future__ import annotations

import attrs
import pytest

from rpl_codeobject.comparing import Severity
from rpl_codeobject.comparing import compare_code_objects as compare
from rpl_codeobject.disassembly import IsaDiff, IsaVerdict
from rpl_codeobject.kernel_code import KernelArgument, KernelDescriptor
from rpl_codeobject.occupancy import LaunchAssumption
from rpl_gfx942.products import FACTS
from rpl_optimize.loop.binary_stage import binary_guards

_POINTER = KernelArgument(offset=0, size=8, value_kind="global_buffer", address_space="global", name="out")
_COUNT = KernelArgument(offset=8, size=4, value_kind="by_value", name="n")
_HIDDEN = KernelArgument(offset=16, size=4, value_kind="hidden_block_count_x")
_DESCRIPTOR = KernelDescriptor(
    group_segment_bytes=0,
    private_segment_bytes=0,
    kernarg_bytes=16,
    entry_offset=256,
    vgpr_granules=4,
    sgpr_granules=1,
    accum_offset=4,
    wavefront_size32=False,
    dynamic_stack=False,
    kernarg_preload=0,
)


def compare_code_objects(before, after, launch=None):
    """The comparison with the occupancies of the one GPU that is known here."""
    return compare(before, after, launch=launch, architecture_of={FACTS.name: FACTS}.get)


@pytest.fixture
def diff(make_kernel, make_code_object):
    """``diff(vgprs=200)``: the comparison of the usual kernel with one that differs in the given facts."""

    def run(launch=None, **facts):
        usual = make_kernel(arguments=(_POINTER, _COUNT, _HIDDEN), descriptor=_DESCRIPTOR)
        changed = attrs.evolve(usual, **facts)
        before, after = make_code_object(usual), make_code_object(changed)
        return compare_code_objects([before], [after], launch=launch)

    return run


def test_the_same_kernel_has_no_differences(diff):
    assert diff().differences == ()
    assert diff().compatible


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("kernarg_bytes", {"kernarg_bytes": 24}),
        ("kernarg_align", {"kernarg_align": 16}),
        ("wavefront_size", {"wavefront_size": 32}),
        ("required_workgroup", {"required_workgroup": (64, 1, 1)}),
        ("uniform_workgroups", {"uniform_workgroups": 0}),
        ("workgroup_processor_mode", {"workgroup_processor_mode": 1}),
        ("max_workgroup_size", {"max_workgroup_size": 64}),
        ("dynamic_stack", {"dynamic_stack": True}),
        ("dynamic_stack", {"descriptor": attrs.evolve(_DESCRIPTOR, dynamic_stack=True)}),
        ("descriptor", {"descriptor": None}),
        ("descriptor.kernarg_bytes", {"descriptor": attrs.evolve(_DESCRIPTOR, kernarg_bytes=8)}),
        ("descriptor.wavefront_size32", {"descriptor": attrs.evolve(_DESCRIPTOR, wavefront_size32=True)}),
        ("arguments[1]", {"arguments": (_POINTER, attrs.evolve(_COUNT, size=8), _HIDDEN)}),
        ("arguments[1]", {"arguments": (_POINTER, attrs.evolve(_COUNT, offset=12), _HIDDEN)}),
        ("arguments[0]", {"arguments": (attrs.evolve(_POINTER, address_space="local"), _COUNT, _HIDDEN)}),
        ("hidden_arguments[0]", {"arguments": (_POINTER, _COUNT)}),
    ],
)
def test_a_change_of_the_abi_is_breaking(diff, what, facts):
    found = diff(**facts)
    assert [d.what for d in found.of(Severity.BREAKING)] == [what]
    assert not found.compatible


def test_a_renamed_parameter_breaks_nothing(diff):
    assert diff(arguments=(attrs.evolve(_POINTER, name="result"), _COUNT, _HIDDEN)).differences == ()


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("lds_bytes", {"lds_bytes": 512}),
        ("scratch_bytes", {"scratch_bytes": 4}),
        ("vgpr_spills", {"vgpr_spills": 1}),
        ("sgpr_spills", {"sgpr_spills": 1}),
        ("occupancy_waves_per_simd", {"vgprs": 65}),
    ],
)
def test_a_higher_cost_is_a_regression_and_stays_compatible(diff, what, facts):
    found = diff(**facts)
    assert [d.what for d in found.of(Severity.REGRESSION)] == [what]
    assert found.compatible


def test_lower_costs_are_information(diff, make_kernel, make_code_object):
    before = make_code_object(make_kernel(scratch_bytes=64, vgpr_spills=3, vgprs=200))
    found = compare_code_objects([before], [make_code_object(make_kernel())])
    assert {d.severity for d in found.differences} == {Severity.INFORMATION}


@pytest.mark.parametrize("what", ["lds_bytes", "scratch_bytes", "vgpr_spills", "sgpr_spills"])
@pytest.mark.parametrize(
    ("old", "new", "severities"),
    [(4, 8, [Severity.REGRESSION]), (8, 4, [Severity.INFORMATION]), (4, 4, [])],
)
def test_each_cost_is_judged_by_its_direction(make_kernel, make_code_object, what, old, new, severities):
    before, after = (make_code_object(make_kernel(**{what: value})) for value in (old, new))
    found = compare_code_objects([before], [after])
    judged = [(d.before, d.after, d.severity) for d in found.differences if d.what == what]
    assert judged == [(str(old), str(new), severity) for severity in severities]


def test_occupancy_is_taken_at_the_launch_that_is_assumed(diff):
    # 8 KiB of LDS per workgroup leave 8 groups: 8 waves per SIMD with 4 waves each, 2 with 1 wave each.
    (fell,) = diff(LaunchAssumption(64, 8192), lds_bytes=8192).of(Severity.REGRESSION)[1:]
    assert (fell.before, fell.after) == ("2", "1")
    assert "64 work-items" in fell.reason


def test_a_kernel_of_another_target_is_a_missing_kernel(make_kernel, make_code_object):
    before = make_code_object(make_kernel())
    after = make_code_object(make_kernel(), target="amdgcn-amd-amdhsa--gfx942:xnack+")
    found = compare_code_objects([before], [after])
    assert found.compared == 0
    assert "the candidate has no kernel.kd" in found.of(Severity.BREAKING)[0].reason


def test_an_architecture_without_limits_leaves_occupancy_unknown(make_kernel, make_code_object):
    old, new = (make_code_object(make_kernel(), target="amdgcn-amd-amdhsa--gfx999") for _ in range(2))
    found = compare_code_objects([old], [new])
    assert "no occupancy limits" in found.unknown[0]
    refused = {v.guard for v in binary_guards(found) if not v.passed}
    assert refused == {"binary-occupancy"}


def test_without_somebody_who_knows_occupancies_they_are_not_compared(make_kernel, make_code_object):
    old, new = (make_code_object(make_kernel(vgprs=vgprs)) for vgprs in (64, 65))
    found = compare([old], [new])
    assert {d.what for d in found.differences} == {"vgprs"}
    assert found.unknown == ("kernel.kd: occupancy: no occupancy limits for architecture 'gfx942'",)
    assert {v.guard for v in binary_guards(found) if not v.passed} == {"binary-occupancy"}


@pytest.mark.parametrize(
    ("guard", "facts"),
    [
        ("binary-abi", {"kernarg_bytes": 24}),
        ("binary-lds", {"lds_bytes": 512}),
        ("binary-scratch", {"scratch_bytes": 4}),
        ("binary-spills", {"sgpr_spills": 2}),
        ("binary-spills", {"vgpr_spills": None}),
        ("binary-occupancy", {"vgprs": 65}),
    ],
)
def test_each_binary_guard_refuses_something_alone(diff, guard, facts):
    verdicts = binary_guards(diff(**facts), measured=False)
    assert {v.guard for v in verdicts if not v.passed} == {guard}


def test_resources_that_got_worse_are_for_the_measurement_and_the_abi_is_not(diff):
    worse = {"lds_bytes": 512, "scratch_bytes": 4, "sgpr_spills": 2, "vgprs": 65}
    verdicts = binary_guards(diff(kernarg_bytes=24, **worse))
    assert {v.guard for v in verdicts if not v.passed} == {"binary-abi"}
    asked = {"binary-lds", "binary-scratch", "binary-spills", "binary-occupancy"}
    assert {v.guard for v in verdicts if v.asks} == asked


def test_a_loss_of_occupancy_can_be_allowed_and_nothing_else(diff):
    allowed = binary_guards(diff(vgprs=65), allow_occupancy_loss=True, measured=False)
    assert all(v.passed for v in allowed)
    spilled = binary_guards(diff(vgprs=65, vgpr_spills=9), allow_occupancy_loss=True, measured=False)
    assert {v.guard for v in spilled if not v.passed} == {"binary-spills"}


def test_more_spills_are_refused_although_occupancy_rose(diff, make_kernel, make_code_object):
    # The compiler's way out when registers end: 36 VGPRs, 1008 bytes of scratch, occupancy 8 (clang 22).
    before = make_code_object(make_kernel(vgprs=128))
    after = make_code_object(make_kernel(vgprs=36, scratch_bytes=1008, vgpr_spills=250))
    compared = compare_code_objects([before], [after])
    refused = {v.guard for v in binary_guards(compared, measured=False) if not v.passed}
    assert refused == {"binary-scratch", "binary-spills"}


def test_nothing_compared_is_no_pass():
    verdicts = {v.guard: v.passed for v in binary_guards(compare_code_objects([], []))}
    assert verdicts["binary-kernels"] is False


@pytest.mark.parametrize(
    ("verdict", "passed"),
    [
        (IsaVerdict.IDENTICAL, False),
        (IsaVerdict.OUTSIDE_LOOPS, False),
        (IsaVerdict.LOOPS_CHANGED, True),
    ],
)
def test_only_a_changed_loop_passes_the_instruction_guard(diff, verdict, passed):
    isa = IsaDiff(verdict, (), (), 10, 10)
    assert {v.guard: v.passed for v in binary_guards(diff(), isa)}["binary-isa"] is passed
