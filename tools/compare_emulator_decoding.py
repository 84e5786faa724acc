"""Instructions through the emulator's decoder and LLVM's: the same accepted, the same operands.

    python tools/compare_emulator_decoding.py --count 1000000 --seed 1
    python tools/compare_emulator_decoding.py --tests llvm/test/MC

Words are drawn at random behind the bits that tell an encoding (CDNA3 ISA, section 13), so that many are real
instructions; or they are all encodings that stand in the files of a folder, such as LLVM's own tests, of
whichever GPU. ``llvm-mc`` says for each whether gfx942 has it and what its operands are (``--show-inst``);
``rpl-emu decode --lines`` says the same, or why the instruction is not offered. Printed as JSON: how many
LLVM knows, how many of these are offered, the reasons of the others, and each disagreement. Exit 1 when one
side accepts what the other one does not know as an instruction, or operands differ.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
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
    """What LLVM says of one instruction: its text, its registers in order, and its numbers."""

    text: str
    registers: tuple[str, ...]
    numbers: tuple[int, ...]


def drawn(random_: random.Random, count: int) -> Iterator[bytes]:
    names = sorted(ENCODINGS)
    for k in range(count):
        fixed, free = ENCODINGS[names[k % len(names)]]
        first = fixed | (random_.getrandbits(32) & free)
        yield first.to_bytes(4, "little") + random_.getrandbits(32).to_bytes(4, "little") + bytes(4)


def written(folder: Path) -> list[bytes]:
    """The encodings that stand in the files of ``folder``, as LLVM's tests write them: ``0x01,0x02,...``."""
    found = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for line in re.findall(r"0x[0-9a-fA-F]{2}(?:, *0x[0-9a-fA-F]{2})+", path.read_text(errors="replace")):
            code = bytes.fromhex(re.sub("[^0-9a-fA-F]|0x", "", line))
            if len(code) % 4 == 0:
                found.add(code[:8].ljust(12, b"\0"))
    return sorted(found)


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
    # Without that feature LLVM 22 ends by a signal at each literal of a target that has none there; with it
    # such an instruction has 12 bytes, of which the filling has the last, and none of gfx942 has so many.
    command.append("--mattr=+vop3-literal")
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    if done.returncode < 0:
        half = len(codes) // 2
        return by_llvm(codes[:half]) + by_llvm(codes[half:]) if half else [None]
    invalid = {int(x) for x in re.findall(r"<stdin>:(\d+):1: warning: invalid", done.stderr)}
    found: list[Known | None] = []
    of_case: list[str] = []
    for block in re.split(r"^\t", done.stdout, flags=re.MULTILINE)[1:]:
        text = _text_of(block)
        if not text.startswith("s_nop ") or int(text[6:], 0) != len(found):
            of_case.append(block)
            continue
        first = of_case[0] if of_case and 2 * len(found) + 1 not in invalid else None
        if len(of_case) == 2 and _text_of(of_case[1]) == "s_nop 0xffff":
            first = None
        names = re.findall(r"<MCOperand Reg:(\w+)>", first or "")
        registers = tuple(r for r in map(register, names) if r)
        numbers = tuple(int(x) for x in re.findall(r"<MCOperand Imm:(-?\d+)>", first or ""))
        numbers += tuple(int(x, 0) for x in re.findall(r"lit(?:64)?\((\w+)\)", first or ""))
        found.append(Known(_text_of(first), registers, numbers) if first else None)
        of_case = []
    assert len(found) == len(codes), (len(found), len(codes))
    return found


def _text_of(block: str) -> str:
    return block.split("; <MCInst")[0].strip()


def by_emulator(program: Path, codes: list[bytes]) -> list[dict[str, Any]]:
    lines = "\n".join(code.hex() for code in codes)
    done = subprocess.run(
        [program, "decode", "--lines"], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _equal(ours: int, theirs: int, opcode: str) -> bool:
    """Of the sign the emulator has all bits and LLVM some; of a literal of a half LLVM has bits beyond it. A
    constant of a mixed sum is a half to LLVM, and a float by ``op_sel_hi`` to the emulator and the ISA.
    """
    if opcode.startswith("v_fma_mix") and 0 <= ours < 1 << 32 and 0 <= theirs < 1 << 16:
        (single,), (half,) = (
            struct.unpack("<f", ours.to_bytes(4, "little")),
            struct.unpack("<e", theirs.to_bytes(2, "little")),
        )
        if math.isclose(single, half, rel_tol=1e-3):
            return True
    bits = [1 << 64, 1 << 32, *([1 << 16] if 0 <= ours < 1 << 16 else [])]
    return any((ours - theirs) % one == 0 for one in bits)


def differing(known: Known, one: dict[str, Any]) -> bool:
    """Whether registers or constants of the decoded instruction are others than LLVM's."""
    constants = [int(x, 0) for x in one["from"] if x[0] in "-0123456789"]
    addresses = re.search("src_(shared|private)_base", known.text)  # registers to LLVM, and known here
    if not addresses and not all(any(_equal(x, y, one["opcode"]) for y in known.numbers) for x in constants):
        return True
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
    parser.add_argument(
        "--tests", type=Path, help="a folder whose files hold encodings, instead of drawn ones"
    )
    parser.add_argument("--emulator", type=Path, default=ROOT / "build" / "native" / "emu" / "rpl-emu")
    given = parser.parse_args()
    codes = iter(written(given.tests)) if given.tests else drawn(random.Random(given.seed), given.count)
    total: dict[str, Any] = {}
    while part_of := list(islice(codes, 10_000)):
        part = compare(given.emulator, part_of)
        for key, value in part.items():
            if key == "refused":
                total[key] = dict(Counter(total.get(key, {})) + Counter(value))
            else:
                total[key] = value if key not in total else total[key] + value
    print(json.dumps(total, indent=1))
    return 1 if total["accepted_alone"] or total["other_operands"] else 0


if __name__ == "__main__":
    sys.exit(main())
