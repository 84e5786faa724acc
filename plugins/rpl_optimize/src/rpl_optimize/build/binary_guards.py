"""Guards on a candidate build, as verdicts in the same form as those on its source."""

from __future__ import annotations

from rpl_codeobject.comparing import AbiDiff, Difference, Severity
from rpl_codeobject.disassembly import IsaDiff, IsaVerdict
from rpl_core.text import counted
from rpl_optimize.interfaces.transformation import GuardVerdict

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
    verdicts = [_compared(diff), _abi(diff)]
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


def _compared(diff: AbiDiff) -> GuardVerdict:
    reason = f"{counted(diff.compared, 'kernel is', 'kernels are')} in both builds"
    return GuardVerdict("binary-kernels", diff.compared > 0, reason)


def _abi(diff: AbiDiff) -> GuardVerdict:
    breaking = diff.of(Severity.BREAKING)
    reason = "; ".join(_describe(d) for d in breaking) or "kernarg layout, symbols and limits are as before"
    return GuardVerdict("binary-abi", not breaking, reason)


def _describe(difference: Difference) -> str:
    change = f"{difference.what} {difference.before} -> {difference.after}"
    return f"{difference.kernel}: {change} ({difference.reason})"
