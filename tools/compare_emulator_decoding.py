"""Random instructions through the emulator's decoder and LLVM's: the same accepted, the same operands.

    python tools/compare_emulator_decoding.py --count 1000000 --seed 1

Words are drawn at random behind the bits that tell an encoding (CDNA3 ISA, section 13), so that many are real
instructions. ``llvm-mc`` says for each whether it is one and what its operands are (``--show-inst``);
``rpl-emu decode --lines`` says the same, or why the instruction is not offered. Printed as JSON: how many
LLVM knows, how many of these are offered, the reasons of the others, and each disagreement. Exit 1 when one
side accepts what the other one does not know as an instruction, or operands differ.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[1]
#: First word: fixed bits, and which bits are drawn.
ENCODINGS = {
    "SOP2": (0x80000000, 0x3FFFFFFF),
    "SOPK": (0xB0000000, 0x0FFFFFFF),
    "SOP1": (0xBE800000, 0x007FFFFF),
    "SOPC": (0xBF000000, 0x007FFFFF),
    "SOPP": (0xBF800000, 0x007FFFFF),
    "SMEM": (0xC0000000, 0x03FFFFFF),
    "VOP2": (0x00000000, 0x7FFFFFFF),
    "VOP1": (0x7E000000, 0x01FFFFFF),
    "VOPC": (0x7C000000, 0x01FFFFFF),
    "VOP3": (0xD0000000, 0x03FFFFFF),
    "VOP3P": (0xD3800000, 0x007FFFFF),
    "DS": (0xD8000000, 0x03FEFFFF),
    "FLAT": (0xDC000000, 0x03FFFFFF),
    "MUBUF": (0xE0000000, 0x03FFFFFF),
}
_NAMED = {"VCC": "s106:2", "EXEC": "s126:2", "FLAT_SCR": "s102:2", "XNACK_MASK": "s104:2"}
_NAMED |= {"M0": "s124", "SRC_SCC": "scc"}
_NAMED |= {f"{name}_{half}": f"s{at + k}" for name, at in (("VCC", 106), ("EXEC", 126), ("FLAT_SCR", 102),
           ("XNACK_MASK", 104)) for k, half in enumerate(("LO", "HI"))}  # fmt: skip
#: Registers of which the text says nothing, or which the text alone has.
_IMPLIED = {"s106:2", "s124"}
#: Forms whose operands stand in LLVM's order.
_ORDERED = {"scalar", "vector", "packed", "matrix", "accumulator"}


@attrs.frozen
class Known:
    """What LLVM says of one instruction: its text and its registers, in order."""

    text: str
    registers: tuple[str, ...]


def drawn(random_: random.Random, count: int) -> Iterator[bytes]:
    names = sorted(ENCODINGS)
    for k in range(count):
        fixed, free = ENCODINGS[names[k % len(names)]]
        first = fixed | (random_.getrandbits(32) & free)
        yield first.to_bytes(4, "little") + random_.getrandbits(32).to_bytes(4, "little") + bytes(4)


def register(name: str) -> str | None:
    """``VGPR2_VGPR3`` is ``v2:2``; names of what has no register give None."""
    name = re.sub(r"_(vi|gfx\w+)$", "", name)
    if name in _NAMED:
        return _NAMED[name]
    parts = name.split("_")
    found = [re.fullmatch(r"(VGPR|AGPR|SGPR|TTMP)(\d+)", part) for part in parts]
    if found[0] is None:
        return None
    kind = found[0][1]
    at = int(found[0][2]) + (108 if kind == "TTMP" else 0)
    return f"{'s' if kind == 'TTMP' else kind[0].lower()}{at}" + (f":{len(parts)}" if len(parts) > 1 else "")


#: Stands behind each case: what LLVM makes of a case's second word may swallow two words.
_FILL = ",".join(2 * ["0xff,0xff,0x80,0xbf"])


def by_llvm(codes: list[bytes]) -> list[Known | None]:
    """One for each code; None: its first word begins no instruction, or LLVM ends by a signal there."""
    lines = []
    for k, code in enumerate(codes):
        lines.append(",".join(f"0x{x:02x}" for x in code[:8]))
        lines.append(f"{_FILL},0x{k & 255:02x},0x{k >> 8:02x},0x80,0xbf")  # s_nop k
    command = ["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "--disassemble", "--show-inst"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    if done.returncode < 0:
        half = len(codes) // 2
        return by_llvm(codes[:half]) + by_llvm(codes[half:]) if half else [None]
    invalid = {int(x) for x in re.findall(r"<stdin>:(\d+):1: warning: invalid", done.stderr)}
    found: list[Known | None] = []
    of_case: list[str] = []
    for block in re.split(r"^\t", done.stdout, flags=re.MULTILINE)[1:]:
        text = block.split("; <MCInst")[0].strip()
        if not text.startswith("s_nop ") or int(text[6:], 0) != len(found):
            of_case.append(block)
            continue
        first = of_case[0] if of_case and 2 * len(found) + 1 not in invalid else None
        names = re.findall(r"<MCOperand Reg:(\w+)>", first or "")
        registers = tuple(r for r in map(register, names) if r)
        found.append(Known(first.split("; <MCInst")[0].strip(), registers) if first else None)
        of_case = []
    assert len(found) == len(codes), (len(found), len(codes))
    return found


def by_emulator(program: Path, codes: list[bytes]) -> list[dict[str, Any]]:
    lines = "\n".join(code.hex() for code in codes)
    done = subprocess.run(
        [program, "decode", "--lines"], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def differing(known: Known, one: dict[str, Any]) -> bool:
    """Whether the registers of the decoded instruction are others than LLVM's."""
    named = [*one["to"], *one["from"]]
    if one["opcode"].startswith(
        "buffer_atomic_cmpswap"
    ):  # LLVM names its datum, of which the result is a part
        named = one["from"]
    ours = [x for x in dict.fromkeys(named) if x[0] in "vas"]
    theirs = [x for x in dict.fromkeys(known.registers) if x[0] in "vas"]
    if set(ours) ^ set(theirs) <= _IMPLIED:
        ours, theirs = ([x for x in side if x not in _IMPLIED] for side in (ours, theirs))
        return one["form"] in _ORDERED and ours != theirs
    return True


def compare(program: Path, codes: list[bytes]) -> dict[str, Any]:
    known, decoded = by_llvm(codes), by_emulator(program, codes)
    offered, reasons, accepted_alone, other_operands = 0, Counter[str](), [], []
    unknown_to_both = 0
    for code, llvm, one in zip(codes, known, decoded, strict=True):
        # LLVM says so of registers that the encoding can't have, and of scalar pairs from an odd number on.
        if llvm is None or "/*Invalid" in llvm.text or "; Warning" in llvm.text:
            accepted_alone += [] if "refused" in one else [code.hex()]
            unknown_to_both += "refused" in one
        elif "refused" in one:
            reasons[one["refused"].split(": ")[0].split(" at 0x")[0]] += 1
        else:
            offered += 1
            if differing(llvm, one):
                other_operands.append(
                    {"code": code.hex(), "text": llvm.text, "emulator": one, "llvm": llvm.registers}
                )
    return {
        "words": len(codes),
        "known_to_llvm": len(codes) - unknown_to_both - len(accepted_alone),
        "offered": offered,
        "refused": dict(reasons.most_common()),
        "accepted_alone": accepted_alone,
        "other_operands": other_operands,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="instructions to draw (20000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--emulator", type=Path, default=ROOT / "build" / "native" / "emu" / "rpl-emu")
    given = parser.parse_args()
    random_ = random.Random(given.seed)
    total: dict[str, Any] = {}
    for at in range(0, given.count, 2_000):
        part = compare(given.emulator, list(drawn(random_, min(2_000, given.count - at))))
        for key, value in part.items():
            if key == "refused":
                total[key] = dict(Counter(total.get(key, {})) + Counter(value))
            else:
                total[key] = value if key not in total else total[key] + value
    print(json.dumps(total, indent=1))
    return 1 if total["accepted_alone"] or total["other_operands"] else 0


if __name__ == "__main__":
    sys.exit(main())
