"""Guards on a candidate's binary: ABI, resources, and that the edit changed this kernel and no other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_codeobject.comparing import (
    AbiDiff,
    Difference,
    Severity,
    compare_code_objects,
    other_code_changes,
    position_free,
)
from rpl_codeobject.cooperation import cooperation_changes, cooperation_of, lane_exchanges
from rpl_codeobject.disassembly import Instruction, IsaDiff, IsaVerdict, compare_instructions, disassemble
from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.kernel_names import is_instance
from rpl_codeobject.occupancy import ArchitectureOf, LaunchAssumption
from rpl_core.errors import RplError
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_optimize.contracts import GuardPart, RetunedName
from rpl_optimize.interfaces.builder import CodeComparison
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_core.model.recording import Recording
    from rpl_optimize.build.builders import BuiltProgram

# What differs between two builds, as verdicts in the same form as those on the source.

#: Guard -> the compared properties that it looks at.
_RESOURCES = {
    "binary-lds": ("lds_bytes",),
    "binary-scratch": ("scratch_bytes",),
    "binary-spills": ("vgpr_spills", "sgpr_spills"),
    "binary-occupancy": ("occupancy_waves_per_simd",),
}


def binary_guards(
    diff: AbiDiff,
    isa: IsaDiff | None = None,
    *,
    allow_occupancy_loss: bool = False,
    measured: bool = True,
) -> tuple[GuardVerdict, ...]:
    """Verdicts of all binary guards. A comparison that could not be made refuses: it saw no data.

    What a kernel costs decides nothing about its results, and its time is what counts: a build that ends
    spills may well lose waves. So a resource that got worse asks for the measurement, and refuses only where
    nothing will be measured.
    """
    compared = f"{counted(diff.compared, 'kernel is', 'kernels are')} in both builds"
    breaking = diff.of(Severity.BREAKING)
    abi = "; ".join(map(_describe, breaking)) or "kernarg layout, symbols and limits are as before"
    verdicts = [
        GuardVerdict("binary-kernels", diff.compared > 0, compared),
        GuardVerdict("binary-abi", not breaking, abi),
    ]
    for guard, properties in _RESOURCES.items():
        worse = [d for d in diff.of(Severity.REGRESSION) if d.what in properties]
        unknown = [text for text in diff.unknown if any(p.split("_")[0] in text for p in properties)]
        if guard == "binary-occupancy" and allow_occupancy_loss:
            verdicts.append(GuardVerdict(guard, True, "a loss of occupancy is allowed on request"))
        elif worse:
            what = "; ".join(_describe(d) for d in worse)
            reason = f"{what}: for the measurement to weigh" if measured else what
            verdicts.append(GuardVerdict(guard, measured, reason, asks=measured))
        elif unknown:
            verdicts.append(GuardVerdict(guard, False, f"not comparable: {'; '.join(unknown)}"))
        else:
            verdicts.append(GuardVerdict(guard, True, "not worse than the baseline"))
    if isa is not None:
        changed = isa.verdict is IsaVerdict.LOOPS_CHANGED
        verdicts.append(GuardVerdict("binary-isa", changed, isa.sentence()))
    return tuple(verdicts)


def _describe(difference: Difference) -> str:
    change = f"{difference.what} {difference.before} -> {difference.after}"
    return f"{difference.kernel}: {change} ({difference.reason})"


# All guards on two builds: the whole comparison, and the machine code of the one kernel that may change.

COOPERATION = "binary-cooperation"
#: What no comparison of two builds may leave out.
REQUIRED = frozenset(("binary-kernels", "binary-abi", "binary-isa", COOPERATION, "other-code"))
Code = dict[tuple[str, str], "Sequence[Instruction]"]


@frozen
class LaunchLimit:
    """The transformation promises that no launch has more work-items per workgroup than ``promised``.

    ``recorded`` is the largest launch of the baseline, ``None`` where no launch was recorded.
    """

    promised: int
    recorded: int | None
    of: str = "recorded launch"

    def guard(self) -> GuardPart:
        if self.recorded is None:
            reason = "no launch of the kernel was recorded, so the promised limit can't be checked"
            return GuardPart(guard="launch-limit", passed=None, reason=reason)
        reason = f"the largest {self.of} has {self.recorded} work-items, {self.promised} are promised"
        return GuardPart(guard="launch-limit", passed=self.recorded <= self.promised, reason=reason)


@frozen
class KnownCode:
    """Device code that is known already. ``rejected``: it can't be accepted."""

    whose: str
    rejected: bool


def guard_new_code(code_sha256: str, known: Mapping[str, KnownCode]) -> GuardPart:
    """Refuses machine code that was judged before: measuring it again would only be another chance."""
    before = known.get(code_sha256)
    if before is None:
        return GuardPart(guard="binary-new", passed=True, reason="no version had the same machine code")
    reason = f"the same machine code as {before.whose}"
    return GuardPart(guard="binary-new", passed=False if before.rejected else None, reason=reason)


def largest_launch(recording: Recording, kernel: str) -> int | None:
    """The most work-items per workgroup among all recorded launches of the source kernel ``kernel``."""
    largest = None
    for trace in recording.traces:
        rows = [index for index, entry in enumerate(trace.kernels) if is_instance(entry.name, kernel)]
        shapes = trace.dispatches.shape[np.isin(trace.dispatches.kernel, rows)]
        sizes = np.prod(trace.shapes.workgroup[np.unique(shapes[shapes >= 0])], axis=1)
        if sizes.size:
            largest = max(largest or 0, int(sizes.max()))
    return largest


def guard_builds(
    before: BuiltProgram,
    after: BuiltProgram,
    kernel: str,
    owner: str,
    *,
    launch: LaunchAssumption,
    architecture_of: ArchitectureOf,
    must_change_loop: bool,
    allow_occupancy_loss: bool = False,
    measured: bool = True,
    limit: LaunchLimit | None = None,
    lds_growth: int | None = None,
    retuned: RetunedName | None = None,
    exchanged: int = 0,
    repeated: bool = False,
) -> tuple[GuardPart, ...]:
    """All guards, by the plugin ``owner`` where its builder says what device code is."""
    if before.code is None or after.code is None:
        return guard_binary(
            before.code_objects,
            after.code_objects,
            kernel,
            launch=launch,
            architecture_of=architecture_of,
            must_change_loop=must_change_loop,
            allow_occupancy_loss=allow_occupancy_loss,
            measured=measured,
            limit=limit,
            lds_growth=lds_growth,
            retuned=retuned,
            exchanged=exchanged,
            repeated=repeated,
        )
    asked = CodeComparison(
        kernel=kernel,
        architecture_of=architecture_of,
        launch_size=launch.workgroup_size,
        changes_loop=must_change_loop,
        measured=measured,
        allow_occupancy_loss=allow_occupancy_loss,
        workgroup_limit=None if limit is None else limit.promised,
        lds_growth=lds_growth,
    )
    with plugin_boundary(owner, "comparison of builds"):
        verdicts = before.code.guards(after.code, asked)
        missing = REQUIRED - {verdict.guard for verdict in verdicts}
        if missing:
            raise ValueError(f"it says nothing of {', '.join(sorted(missing))}")
    parts = (GuardPart(guard=v.guard, passed=v.passed, reason=v.reason) for v in verdicts)
    return (*parts, *(() if limit is None else (limit.guard(),)))


def guard_binary(
    before: Sequence[CodeObject],
    after: Sequence[CodeObject],
    kernel: str,
    *,
    launch: LaunchAssumption,
    architecture_of: ArchitectureOf,
    must_change_loop: bool,
    allow_occupancy_loss: bool = False,
    measured: bool = True,
    limit: LaunchLimit | None = None,
    lds_growth: int | None = None,
    retuned: RetunedName | None = None,
    exchanged: int = 0,
    repeated: bool = False,
) -> tuple[GuardPart, ...]:
    """All guards. ``kernel`` is the source name of the one that may change, with all its instances.

    ``measured``: the candidate's time will be measured, which resources leave to it. ``exchanged``: it
    declares that so many reductions end from lane to lane (``ShuffledReduction``). ``repeated``: that a block
    does the work of several (``SeveralBlocks``).
    """
    diff = compare_code_objects(before, after, launch=launch, architecture_of=architecture_of)
    if limit is not None:
        diff = _without_declared_limit(diff, kernel, limit)
    if lds_growth is not None:
        diff = _without_declared_growth(diff, kernel, lds_growth)
    verdicts = binary_guards(diff, allow_occupancy_loss=allow_occupancy_loss, measured=measured)
    parts = [GuardPart(guard=v.guard, passed=v.passed, reason=v.reason) for v in verdicts]
    if limit is not None:
        parts.append(limit.guard())
    return (
        *parts,
        *_code_guards(
            before,
            after,
            kernel,
            must_change_loop=must_change_loop,
            retuned=retuned,
            exchanged=exchanged,
            repeated=repeated,
        ),
    )


def why_not_moved(plain: BuiltProgram, shifted: BuiltProgram, kernel: str) -> str | None:
    """Why ``shifted`` does not hold the kernel's same code at another place, or ``None``."""
    if plain.code is not None and shifted.code is not None:
        return plain.code.why_not_moved(shifted.code, kernel)
    objects, moved = plain.code_objects, shifted.code_objects
    try:
        before, after = (
            {key: position_free(code) for key, code in _code_of(build, kernel).items()}
            for build in (objects, moved)
        )
    except RplError as error:
        return f"the padded build is not comparable: {error.fact}"
    if not before or before != after:
        return "the padding changed the kernel's machine code"
    if _entries(objects, kernel) == _entries(moved, kernel):
        return "the padding did not move the kernel"
    return None


def _entries(objects: Sequence[CodeObject], kernel: str) -> list[int | None]:
    """Where each instance's code begins, as seen from its descriptor, which padding does not move."""
    kernels = (k for code_object in objects for k in code_object.kernels if is_instance(k.name, kernel))
    return [None if k.descriptor is None else k.descriptor.entry_offset for k in kernels]


def launch_of(profile: ProfileDocument, recorded: str) -> LaunchAssumption:
    """How the baseline launches the kernel, as far as the profile knows."""
    for kernel in profile.kernels:
        if kernel.name == recorded and kernel.kernel.block:
            return LaunchAssumption(workgroup_size=math.prod(kernel.kernel.block))
    return LaunchAssumption()


def _without_declared_limit(diff: AbiDiff, kernel: str, limit: LaunchLimit) -> AbiDiff:
    """Without the one difference that the edit means to make: it breaks no launch that keeps the promise."""
    differences = (
        difference
        for difference in diff.differences
        if difference.kernel is None
        or not is_instance(difference.kernel, kernel)
        or (difference.what, difference.after) != ("max_workgroup_size", str(limit.promised))
    )
    return attrs.evolve(diff, differences=tuple(differences))


def _without_declared_growth(diff: AbiDiff, kernel: str, most: int) -> AbiDiff:
    """Without the growth of static LDS that the edit declares; what it costs in occupancy stays."""

    def declared(change: Difference) -> bool:
        if change.what != "lds_bytes" or change.kernel is None or not is_instance(change.kernel, kernel):
            return False
        before, after = change.before, change.after
        if before is None or after is None or not (before.isdecimal() and after.isdecimal()):
            return False
        return int(after) - int(before) <= most

    return attrs.evolve(diff, differences=tuple(d for d in diff.differences if not declared(d)))


def _code_guards(
    before: Sequence[CodeObject],
    after: Sequence[CodeObject],
    kernel: str,
    *,
    must_change_loop: bool,
    retuned: RetunedName | None,
    exchanged: int,
    repeated: bool,
) -> tuple[GuardPart, ...]:
    try:
        old, new = _code_of(before, kernel), _code_of(after, kernel)
        others = other_code_changes(before, after, lambda name: is_instance(name, kernel))
    except RplError as error:
        reason = f"not comparable: {error.fact}"
        names = ("binary-isa", COOPERATION, "other-code")
        return tuple(GuardPart(guard=g, passed=None, reason=reason) for g in names)
    both = sorted(old.keys() & new.keys())
    both = [key for key in both if is_instance(key[1], kernel)]
    compared = [compare_instructions(old[key], new[key]) for key in both]
    sizes = {
        (built.target, k.name): (k.max_workgroup_size, k.wavefront_size)
        for built in after
        for k in built.kernels
    }
    changes = [
        change
        for key in both
        for change in cooperation_changes(
            cooperation_of(old[key]),
            cooperation_of(new[key]),
            one_wave=sizes[key][0] <= sizes[key][1],
            # Constants change how often loops run, and so how far the compiler unrolls them.
            unrolled=must_change_loop or retuned is not None,
            exchanged=exchanged,
            repeated=repeated,
        )
    ]
    if exchanged and not all(lane_exchanges(old[key]) < lane_exchanges(new[key]) for key in both):
        changes.append("values are declared to go from lane to lane, and no more than before do")
    # The last look at what the syntax tree was asked before.
    paths = "; ".join(dict.fromkeys(changes)) or "barriers, atomics and fences on the same paths as before"
    elsewhere = "; ".join(others[:5]) or "everything but the kernel is as before"
    return (
        _guard_isa(compared, kernel, must_change_loop=must_change_loop, may_be_same=retuned == "launches"),
        GuardPart(guard=COOPERATION, passed=not changes, reason=paths),
        GuardPart(guard="other-code", passed=not others, reason=elsewhere),
    )


def _code_of(objects: Sequence[CodeObject], kernel: str) -> Code:
    """The instructions of the kernel's instances and of what they call, by target and name."""
    by_name: Code = {}
    for code_object in objects:
        instances = [k.name for k in code_object.kernels if is_instance(k.name, kernel)]
        functions: Mapping[str, Sequence[Instruction]] = disassemble(code_object, kernels=instances)
        by_name |= {(code_object.target, name): code for name, code in functions.items()}
    return by_name


def _guard_isa(
    compared: Sequence[IsaDiff], kernel: str, *, must_change_loop: bool, may_be_same: bool
) -> GuardPart:
    """By the instance that changed most: not every instance holds what the edit changes."""
    if not compared:
        return GuardPart(
            guard="binary-isa", passed=None, reason=f"no machine code of {kernel} in both builds"
        )
    order = (IsaVerdict.LOOPS_CHANGED, IsaVerdict.OUTSIDE_LOOPS, IsaVerdict.IDENTICAL)
    most = min(compared, key=lambda diff: order.index(diff.verdict))
    wanted = order[:1] if must_change_loop else order if may_be_same else order[:2]
    return GuardPart(guard="binary-isa", passed=most.verdict in wanted, reason=most.sentence())
