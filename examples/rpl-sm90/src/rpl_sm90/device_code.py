"""Two builds by nvcc compared: what ``rpl optimize`` asks of a candidate's machine code.

Weaker than what is asked of AMD's: barriers, atomics, fences and exchange between lanes are compared by kind
and count, not by the paths that they lie on. The order of both is judged on the source.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_codeobject.disassembly import Instruction, IsaVerdict, compare_instructions
from rpl_codeobject.kernel_names import is_instance
from rpl_codeobject.occupancy import LaunchShape, Occupancy, UsedRegisters, theoretical_occupancy
from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_core.process import ProcessRequest, run_command
from rpl_optimize.interfaces.builder import CodeComparison, DeviceCode
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_sm90.collector import cuda_roots
from rpl_sm90.cubin import Cubin, Function
from rpl_sm90.products import SM90, WARP

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What work-items do together, by the mnemonic's first word (cuobjdump's and nvdisasm's manual, "Hopper").
_KINDS = {
    "barriers": re.compile(r"BAR(?!RIER)|UCGABAR_ARV|UCGABAR_WAIT|SYNCS"),
    "atomics on memory": re.compile(r"ATOM|ATOMG|RED|REDG|UATOMG|UREDG"),
    "atomics on shared memory": re.compile(r"ATOMS"),
    "fences": re.compile(r"MEMBAR|FENCE"),
    "exchange between lanes": re.compile(r"SHFL|VOTE|VOTEU|MATCH|REDUX"),
    "asynchronous copies": re.compile(r"LDGSTS|UBLKCP|UBLKPF|UTMALDG|UTMASTG|UTMAREDG"),
}
_LOCAL = re.compile(r"LDL|STL")
_LABEL = re.compile(r"^(\.L_x_\d+|[\w.$]+):\s*$")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+((?:@!?U?P[\dT]+\s+)?)([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"`\(([^)]+)\)")
_TIME_LIMIT_S = 60.0


class CudaCode(DeviceCode):
    """The cubins of one program."""

    def __init__(self, cubins: Sequence[Cubin]) -> None:
        self.cubins = tuple(cubins)
        self.digest = hashlib.sha256(b"".join(one.digest() for one in cubins)).hexdigest()

    @cached_property
    def functions(self) -> dict[tuple[str, str], Function]:
        return {
            (cubin.architecture, name): one for cubin in self.cubins for name, one in cubin.functions.items()
        }

    def own(self, kernel: str) -> dict[tuple[str, str], Function]:
        """The kernel's instances."""
        return {
            key: one for key, one in self.functions.items() if one.kernel and is_instance(one.name, kernel)
        }

    def guards(self, after: DeviceCode, asked: CodeComparison) -> tuple[GuardVerdict, ...]:
        if not isinstance(after, CudaCode):
            return (GuardVerdict("binary-kernels", False, "the candidate was built by another compiler"),)
        before_own, after_own = self.own(asked.kernel), after.own(asked.kernel)
        kernels, others = (
            {key for key, one in code.functions.items() if one.kernel} for code in (self, after)
        )
        same = bool(before_own) and kernels == others
        which = f"{len(kernels & others)} kernels are in both builds"
        if not same:
            which += f", {len(kernels ^ others)} are in one alone"
        pairs = [(one, after_own[key]) for key, one in before_own.items() if key in after_own]
        return (
            GuardVerdict("binary-kernels", same, which),
            _abi(pairs, asked),
            *_resources(pairs, asked),
            *self._code_guards(after, asked),
            self._other_code(after, asked.kernel),
        )

    def _code_guards(self, after: CudaCode, asked: CodeComparison) -> Iterator[GuardVerdict]:
        try:
            old, new = (
                {key: code for key, code in one.disassembled.items() if key in one.own(asked.kernel)}
                for one in (self, after)
            )
        except RplError as error:
            for guard in ("binary-spills", "binary-isa", "binary-cooperation"):
                yield GuardVerdict(guard, False, f"not comparable: {error.fact}")
            return
        both = [(old[key], new[key]) for key in sorted(old.keys() & new.keys())]
        yield _spills(both, asked)
        yield _isa(both, asked)
        yield _cooperation(both, asked)

    def _other_code(self, after: CudaCode, kernel: str) -> GuardVerdict:
        names = {name for _, name in (*self.own(kernel), *after.own(kernel))}
        changed: list[str] = []
        if len(self.cubins) != len(after.cubins):
            changed.append("the number of cubins")
        for one, other in zip(self.cubins, after.cubins, strict=False):
            left, right = _beside(one, names), _beside(other, names)
            changed += sorted(key for key in left.keys() | right.keys() if left.get(key) != right.get(key))
        reason = f"changed: {', '.join(changed[:5])}" if changed else "everything but the kernel is as before"
        return GuardVerdict("other-code", not changed, reason)

    def why_not_moved(self, shifted: DeviceCode, kernel: str) -> str | None:
        if not isinstance(shifted, CudaCode):
            return "the padded build is another compiler's"
        before, after = self.own(kernel), shifted.own(kernel)
        if not before or {k: one.code for k, one in before.items()} != {
            k: one.code for k, one in after.items()
        }:
            return "the padding changed the kernel's machine code"
        if any(one.place == after[key].place for key, one in before.items()):
            return "the padding did not move the kernel"
        return None

    @cached_property
    def disassembled(self) -> dict[tuple[str, str], tuple[Instruction, ...]]:
        """Raises ``MissingError`` without nvdisasm, ``BadDataError`` where it fails."""
        return {
            (cubin.architecture, name): code
            for cubin in self.cubins
            for name, code in disassemble(cubin).items()
        }


def disassemble(cubin: Cubin) -> dict[str, tuple[Instruction, ...]]:
    """Function -> instructions; targets of branches are bytes from the function's begin."""
    tool = find_disassembler()
    with tempfile.TemporaryDirectory(prefix="rpl-sm90-") as scratch:
        path, log = Path(scratch, "kernels.cubin"), Path(scratch, "listing")
        path.write_bytes(cubin.elf)
        request = ProcessRequest(
            (str(tool), "-c", str(path)), log_path=log, time_limit_s=_TIME_LIMIT_S, what="nvdisasm"
        )
        done = run_command(request)
        text = log.read_text("utf-8", "replace")
    if not done.succeeded:
        raise BadDataError(f"nvdisasm failed: {text.strip().splitlines()[0] if text.strip() else 'no word'}")
    return dict(_functions(text))


def find_disassembler() -> Path:
    """``nvdisasm`` on ``PATH``, or where CUDA is: a toolkit or a wheel. Raises ``MissingError``."""
    folders = (os.environ.get("PATH", ""), *(f"{root}/bin" for root in cuda_roots()))
    found = shutil.which("nvdisasm", path=os.pathsep.join(folders))
    if found is None:
        raise MissingError(
            "nvdisasm was not found",
            next_step="install CUDA's toolkit (or set CUDA_HOME), or: pip install nvidia-cuda-nvdisasm",
        )
    return Path(found)


def _functions(listing: str) -> Iterator[tuple[str, tuple[Instruction, ...]]]:
    for part in re.split(r"^//-+ \.text\.", listing, flags=re.MULTILINE)[1:]:
        name = part.split(maxsplit=1)[0]
        lines: list[tuple[int, str, str]] = []
        labels, waiting = dict[str, int](), list[str]()
        for line in part.splitlines():
            if (label := _LABEL.match(line)) is not None:
                waiting.append(label[1])
            elif (found := _LINE.match(line)) is not None:
                address = int(found[1], 16)
                labels |= dict.fromkeys(waiting, address)
                waiting.clear()
                lines.append((address, found[3], (found[2] + found[4]).strip()))
        code = (
            Instruction(address, word, rest, labels.get(to[1]) if (to := _TARGET.search(rest)) else None)
            for address, word, rest in lines
        )
        yield name, tuple(_without_filling(tuple(code)))


def _without_filling(code: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Without the branch to itself and the ``NOP`` that fill a function's last 128 bytes."""
    end = len(code)
    while end and code[end - 1].mnemonic == "NOP":
        end -= 1
    if end and code[end - 1].mnemonic == "BRA" and code[end - 1].target == code[end - 1].address:
        end -= 1
    return code[:end]


def _abi(pairs: Sequence[tuple[Function, Function]], asked: CodeComparison) -> GuardVerdict:
    changed: list[str] = []
    for old, new in pairs:
        kinds = (key for key in old.launched.keys() | new.launched.keys() if key != "largest block")
        changed += [key for key in sorted(kinds) if old.launched.get(key) != new.launched.get(key)]
        if new.largest_block not in (old.largest_block, asked.workgroup_limit or old.largest_block):
            changed.append("largest block")
    reason = (
        f"changed: {', '.join(dict.fromkeys(changed))}" if changed else "parameters and limits are as before"
    )
    return GuardVerdict("binary-abi", bool(pairs) and not changed, reason)


def _resources(pairs: Sequence[tuple[Function, Function]], asked: CodeComparison) -> Iterator[GuardVerdict]:
    shared = [(old.shared_bytes, new.shared_bytes) for old, new in pairs]
    grown = max((new - old for old, new in shared), default=0)
    yield _weighed("binary-lds", grown > (asked.lds_growth or 0), f"{grown:+d} bytes of shared memory", asked)
    unknown = [new for pair in pairs for new in pair if new.frame_bytes is None or new.registers is None]
    if unknown:
        for guard in ("binary-scratch", "binary-occupancy"):
            yield GuardVerdict(guard, False, f"not comparable: {unknown[0].name} does not say what it uses")
        return
    frames = [(old.frame_bytes or 0, new.frame_bytes or 0) for old, new in pairs]
    worse = any(new > old for old, new in frames)
    yield _weighed("binary-scratch", worse, f"local memory per thread {_changes(frames)} bytes", asked)
    waves = [(_waves(old, asked), _waves(new, asked)) for old, new in pairs]
    if any(side is None for pair in waves for side in pair):
        yield GuardVerdict("binary-occupancy", False, "not comparable: the block's size is not known")
        return
    lost = any((new or 0) < (old or 0) for old, new in waves)
    if asked.allow_occupancy_loss:
        yield GuardVerdict("binary-occupancy", True, "a loss of occupancy is allowed on request")
    else:
        used = [(old.registers or 0, new.registers or 0) for old, new in pairs]
        what = f"registers {_changes(used)}, warps per sub-partition {_changes(waves)}"
        yield _weighed("binary-occupancy", lost, what, asked)


def _weighed(guard: str, worse: bool, what: str, asked: CodeComparison) -> GuardVerdict:
    """What a kernel costs is for the measurement to weigh, where there is one."""
    if not worse:
        return GuardVerdict(guard, True, f"not worse than the baseline ({what})")
    more = ": for the measurement to weigh" if asked.measured else ""
    return GuardVerdict(guard, asked.measured, f"{what}{more}", asks=asked.measured)


def _changes(pairs: Sequence[tuple[object, object]]) -> str:
    return ", ".join(f"{old} -> {new}" for old, new in pairs)


def _waves(function: Function, asked: CodeComparison) -> int | None:
    size = asked.launch_size
    if size is None:
        return None
    found = theoretical_occupancy(
        asked.architecture_of(SM90.name) or SM90,
        UsedRegisters(arch_vgprs=function.registers, accum_vgprs=None, sgprs=None),
        LaunchShape(workgroup_size=size, lds_bytes=function.shared_bytes, wave_size=WARP),
    )
    return found.waves_per_simd if isinstance(found, Occupancy) else None


def _spills(
    both: Sequence[tuple[Sequence[Instruction], Sequence[Instruction]]], asked: CodeComparison
) -> GuardVerdict:
    counts = [(_count(old, _LOCAL), _count(new, _LOCAL)) for old, new in both]
    worse = any(new > old for old, new in counts)
    return _weighed("binary-spills", worse, f"accesses to local memory {_changes(counts)}", asked)


def _count(code: Sequence[Instruction], pattern: re.Pattern[str]) -> int:
    return sum(pattern.fullmatch(one.mnemonic.partition(".")[0]) is not None for one in code)


def _isa(
    both: Sequence[tuple[Sequence[Instruction], Sequence[Instruction]]], asked: CodeComparison
) -> GuardVerdict:
    order = (IsaVerdict.LOOPS_CHANGED, IsaVerdict.OUTSIDE_LOOPS, IsaVerdict.IDENTICAL)
    diffs = [compare_instructions(old, new) for old, new in both]
    if not diffs:
        return GuardVerdict("binary-isa", False, f"no machine code of {asked.kernel} in both builds")
    best = min(diffs, key=lambda diff: order.index(diff.verdict))
    wanted = order[:1] if asked.changes_loop else order[:2]
    return GuardVerdict("binary-isa", best.verdict in wanted, best.sentence())


def _cooperation(
    both: Sequence[tuple[Sequence[Instruction], Sequence[Instruction]]], asked: CodeComparison
) -> GuardVerdict:
    """An unrolled loop repeats what it holds, one that is rolled up again does so less often."""
    changed: list[str] = []
    for old, new in both:
        before, after = (
            Counter({kind: _count(code, pattern) for kind, pattern in _KINDS.items()}) for code in (old, new)
        )
        for kind in _KINDS:
            come_or_gone = bool(before[kind]) != bool(after[kind])
            if come_or_gone or (before[kind] > after[kind] and not asked.changes_loop):
                changed.append(f"{kind} {before[kind]} -> {after[kind]}")
    reason = "; ".join(changed) or "barriers, atomics, fences and exchange between lanes as before"
    return GuardVerdict("binary-cooperation", bool(both) and not changed, reason)


def _beside(cubin: Cubin, names: set[str]) -> dict[str, bytes | tuple[int | None, ...]]:
    """Everything loaded that is not the kernel's own. ``.nv.info`` holds all functions' registers."""
    found: dict[str, bytes | tuple[int | None, ...]] = {
        name: content
        for name, content in cubin.sections.items()
        if name not in (".nv.info", ".nv.callgraph") and not any(name.endswith(f".{own}") for own in names)
    }
    for one in cubin.functions.values():
        if one.name not in names:
            found[f"resources of {one.name}"] = (one.registers, one.frame_bytes, one.shared_bytes)
    return found
