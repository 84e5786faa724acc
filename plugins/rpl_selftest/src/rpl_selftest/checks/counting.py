"""Counters against arithmetic and against the emulator's exact counts; registers against the code object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import RplError
from rpl_selftest.bench import Bench, Recorded, kernels
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_FMA = "SQ_INSTS_VALU_FMA_F64"
_WAVES = "SQ_WAVES"
_CLASSES = "SQ_INSTS_"
_WAVE, _FLOPS_OF_FMA = 64, 2
#: Of the last launches' lines some stay in the L2 caches (32 MiB of 5 x 256 MiB), and code is read, too.
_LEAST_BYTES, _MOST_BYTES = 0.95, 1.05
#: gfx90a and later: registers by 8, 512 to a SIMD, at most 8 waves (docs/reference/devices.md).
_GRANULE, _REGISTERS, _MOST_WAVES = 8, 512, 8
_SHOWN = 4


def per_launch(recorded: Recorded) -> Mapping[str, Mapping[str, float]]:
    """Kernel to counter to its sum over instances, mean of all launches; of the first pass that has it."""
    import numpy as np

    found: dict[str, dict[str, float]] = {}
    for trace in recorded.recording.counter_passes:
        assert trace.counters is not None
        kernel_of_row = trace.dispatches.kernel[trace.counters.dispatch]
        for kernel in np.unique(kernel_of_row).tolist():
            launches = int(np.count_nonzero(trace.dispatches.kernel == kernel))
            name_of_kernel = trace.kernels[kernel].name.partition("(")[0]
            counters = found.setdefault(name_of_kernel, {})
            for number, name in enumerate(trace.counter_names):
                rows = (kernel_of_row == kernel) & (trace.counters.counter == number)
                if name not in counters and rows.any():
                    counters[name] = float(trace.counters.value[rows].sum()) / launches
    if not found:
        raise NotPossibleError("no counter was recorded")
    return found


def _compared(pairs: Iterable[tuple[str, float, float | None]]) -> Finding:
    """Of (what, expected, counted): equal, or the first that differ. Counts have no tolerance."""
    all_pairs = list(pairs)
    counted = [(what, expected, found) for what, expected, found in all_pairs if found is not None]
    absent = [what for what, _, found in all_pairs if found is None]
    if not counted:
        raise NotPossibleError(f"not counted: {', '.join(absent[:_SHOWN]) or 'nothing'}")
    wrong = [
        f"{what}: {found:,.12g}, not {expected:,.12g}"
        for what, expected, found in counted
        if found != expected
    ]
    found = "; ".join(wrong[:_SHOWN]) + (f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
    equal = f"{len(counted)} of {len(counted)} counts are equal"
    if absent:
        equal += f"; not counted: {', '.join(absent[:_SHOWN])}"
    return judged(not wrong, found or equal, compared=len(counted), wrong=len(wrong))


def waves(bench: Bench) -> Finding:
    counted = per_launch(bench.counted())
    return _compared(
        (f"{_WAVES} of {kernel.name}", kernel.waves, counted.get(kernel.name, {}).get(_WAVES))
        for kernel in kernels(bench.sizes)
    )


def instructions(bench: Bench) -> Finding:
    counted, exact = per_launch(bench.counted()), bench.emulator_counts()
    return _compared(
        (f"{name} of {kernel}", count, counted.get(kernel, {}).get(name))
        for kernel, counters in exact.items()
        for name, count in counters.items()
        if name.startswith(_CLASSES)
    )


def testbed(bench: Bench) -> Finding:
    """Programs that users have the source of, in ordinary sizes: loops, LDS, barriers, shuffles, matrices."""
    pairs: list[tuple[str, float, float | None]] = []
    reasons = []
    for program, known in bench.testbed_programs().items():
        try:
            recorded, exact = bench.testbed(program)
            counted = per_launch(recorded)
        except NotPossibleError as error:
            reasons.append(f"{program}: {error}")
            continue
        for kernel in known:
            of_launch = next((one for name, one in counted.items() if kernel.is_symbol(name)), {})
            expected = {**exact[kernel.name], _WAVES: kernel.waves}
            pairs += [
                (f"{name} of {kernel.name}", count, of_launch.get(name))
                for name, count in expected.items()
                if name == _WAVES or name.startswith(_CLASSES)
            ]
    if not pairs:
        raise NotPossibleError("; ".join(reasons))
    finding = _compared(pairs)
    return attrs.evolve(finding, found="; ".join((finding.found, *reasons))) if reasons else finding


def flops(bench: Bench) -> Finding:
    recorded = bench.counted()
    counted = per_launch(recorded)
    documented = {one["name"]: (one["roofline"] or {}).get("flops") for one in recorded.profile["kernels"]}
    known = kernels(bench.sizes)
    by_counter = [
        (f"{_FMA} of {one.name}", one.fma_instructions, counted.get(one.name, {}).get(_FMA)) for one in known
    ]
    by_document = [
        (f"FLOPs of {one.name}", _FLOPS_OF_FMA * _WAVE * one.fma_instructions, documented.get(one.name))
        for one in known
        if one.fmas_per_lane
    ]
    return _compared([*by_counter, *by_document])


def memory_bytes(bench: Bench) -> Finding:
    recorded = bench.counted()
    moved = {one["name"]: (one["roofline"] or {}).get("bytes") for one in recorded.profile["kernels"]}
    known = next(kernel for kernel in kernels(bench.sizes) if kernel.bytes_moved)
    found = moved.get(known.name)
    if found is None:
        raise NotPossibleError(f"the profile has no bytes of {known.name}: their counters were not recorded")
    assert known.bytes_moved is not None
    share = found / known.bytes_moved
    text = f"{found:,.0f} of {known.bytes_moved:,} bytes ({share:.2%})"
    return judged(_LEAST_BYTES <= share <= _MOST_BYTES, text, share=share)


def registers(bench: Bench) -> Finding:
    """What the profiler recorded of each kernel against what the compiler wrote into the code object."""
    from rpl_codeobject.reading import read_code_objects

    _, code = bench.build()
    try:
        compiled = {one.name: one for code_object in read_code_objects(code) for one in code_object.kernels}
    except RplError as error:
        raise NotPossibleError(error.one_line()) from error
    resources = {one["name"]: one for one in bench.timing().profile["kernels"]}
    wrong, compared = [], 0
    for known in kernels(bench.sizes):
        kernel, recorded = compiled.get(known.name), resources.get(known.name)
        if kernel is None or recorded is None:
            continue
        allocated = max(-(-kernel.vgprs // _GRANULE) * _GRANULE, _GRANULE)
        expected = {
            "vector registers": (allocated, recorded["resources"]["vgpr_per_thread"]),
            "LDS bytes": (kernel.lds_bytes, recorded["resources"]["lds_bytes"]),
            "scratch bytes": (kernel.scratch_bytes, recorded["resources"]["scratch_bytes"]),
            "waves per SIMD": (
                min(_MOST_WAVES, _REGISTERS // allocated),
                recorded["occupancy"]["waves_per_simd"],
            ),
        }
        compared += len(expected)
        wrong += [
            f"{what} of {known.name}: {found}, not {right}"
            for what, (right, found) in expected.items()
            if right != found
        ]
    if not compared:
        raise NotPossibleError("no kernel of the code object was recorded")
    return judged(
        not wrong,
        "; ".join(wrong[:_SHOWN]) or f"{compared} of {compared} figures are equal",
        wrong=len(wrong),
    )


COUNTING = (
    Check(
        "counters-waves",
        "rpl profile --roofline; SQ_WAVES against launches by arithmetic",
        "equal for each kernel",
        "docs/reference/counters.md",
        waves,
    ),
    Check(
        "counters-instructions",
        "the same; SQ_INSTS_* against the emulator's counts of the same code object",
        "equal for each kernel and class",
        "docs/EMULATOR.md",
        instructions,
    ),
    Check(
        "counters-testbed",
        "rpl profile --roofline of examples/testbed; SQ_WAVES and SQ_INSTS_* against the emulator",
        "equal for each kernel and class",
        "docs/EMULATOR.md",
        testbed,
    ),
    Check(
        "counters-flops",
        "the same; double precision FMAs against arithmetic, and the FLOPs of profile.json",
        "equal for each kernel",
        "docs/ROOFLINE_DESIGN.md",
        flops,
    ),
    Check(
        "counters-bytes",
        "the same; bytes of the copy beyond the L2 caches against its size",
        f"{_LEAST_BYTES:.0%} to {_MOST_BYTES:.0%} of what it reads and writes",
        "docs/reference/counters.md",
        memory_bytes,
    ),
    Check(
        "registers",
        "registers, LDS, scratch and occupancy of profile.json against the code object",
        "equal for each kernel, registers rounded up to 8",
        "docs/reference/devices.md",
        registers,
    ),
)
