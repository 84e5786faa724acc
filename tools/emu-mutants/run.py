"""Give the emulator's lane functions small faults, and see whether the opcode tests notice.

    python tools/emu-mutants/run.py draw --seed 17 --exchanges 120 --changes 60   # a new list, drawn.json
    python tools/emu-mutants/run.py try [--limit 20]                              # those without an outcome
    python tools/emu-mutants/run.py report

Needs a built tree (`make native`); docs/validation.md reports. An exchange gives an opcode the function
of its neighbour in the table, the next one with the same kinds of operands; nothing is compiled. A change
exchanges an operator or a number in the source of the lane functions; one file is compiled. Each mutant
meets the instructions of native/tests/test_emu_scalar_model.py, and if they notice nothing all of TESTS.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).resolve().parent / "drawn.json"
BUILT, SOURCES = ROOT / "build" / "native" / "emu", ROOT / "native" / "emu"
SCRATCH = ROOT / "build" / "emu-mutants"
TESTS = (
    "native/tests/test_emu_scalar_model.py",
    "native/tests/test_emu_opcodes.py",
    "native/tests/test_emu.py",
)
FILES = (
    "scalar",
    "vector_integer",
    "vector_16",
    "vector_float",
    "vector_double",
    "convert",
    "compare",
    "packed",
)
FILES += ("lds", "modified")
#: Groups that the opcode tests look at; memory and matrices are held by the corpus.
FORMS = ("vector", "packed", "lds", "accumulator")
OPERATORS = {
    " + ": " - ",
    " - ": " + ",
    " & ": " | ",
    " | ": " & ",
    " ^ ": " | ",
    " << ": " >> ",
    " >> ": " << ",
    " < ": " <= ",
    " > ": " >= ",
    " == ": " != ",
    " && ": " || ",
    " * ": " + ",
    "31": "30",
    "63": "62",
    "0xffff": "0x7fff",
    "true": "false",
}
CAUGHT, SURVIVED, BROKEN = "caught", "survived", "does not compile"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=("draw", "try", "report"))
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--exchanges", type=int, default=120)
    parser.add_argument("--changes", type=int, default=60)
    parser.add_argument("--limit", type=int, default=10**6, help="mutants to try now (default: all)")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    options = parser.parse_args()
    if options.step == "draw":
        _draw(options.seed, options.exchanges, options.changes)
    elif options.step == "try":
        _try_all(options.limit, options.again)
    return _report()


def _draw(seed: int, exchanges: int, changes: int) -> None:
    r = random.Random(seed)
    rows = [{"kind": "exchange", "to": a, "from": b} for a, b in r.sample(_neighbours(), exchanges)]
    rows += [{"kind": "change", **change} for change in r.sample(_changes(), changes)]
    _save({"seed": seed, "mutants": [row | {"outcome": None, "equivalent": None} for row in rows]})


def _neighbours() -> list[tuple[str, str]]:
    listed = subprocess.run([BUILT / "rpl-emu", "opcodes"], capture_output=True, text=True, check=True).stdout
    last: dict[tuple[str, str], str] = {}
    found = []
    for row in json.loads(listed):
        kind = (row["form"], row["signature"])
        if row["form"] in FORMS and kind in last:
            found.append((last[kind], row["opcode"]))
        last[kind] = row["opcode"]
    return found


def _changes() -> list[dict[str, Any]]:
    found = []
    for name in FILES:
        text = (SOURCES / "opcodes" / f"{name}.cpp").read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            if re.search(r"^\s*(#include|#if|#pragma|using|template|namespace|RowList)|for \(", code):
                continue
            for old in OPERATORS:
                places = [m.start() for m in re.finditer(re.escape(old), code)]
                found += [{"file": name, "line": number, "text": line, "at": at, "old": old} for at in places]
    return found


def _save(content: dict[str, Any]) -> None:
    fresh = LIST.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    fresh.replace(LIST)


def _try_all(limit: int, again: bool) -> None:
    content = json.loads(LIST.read_text(encoding="utf-8"))
    waiting = [
        row
        for row in content["mutants"]
        if row["outcome"] is None or (again and row["outcome"] == SURVIVED and not row["equivalent"])
    ]
    _prepare()
    instructions = Instructions.drawn()
    for row in waiting[:limit]:
        row["outcome"], row["caught_by"] = _tried(row, instructions)
        _save(content)
        print(row["outcome"], _name(row), flush=True)


def _name(row: dict[str, Any]) -> str:
    if row["kind"] == "exchange":
        return f"{row['to']} does {row['from']}"
    return f"{row['file']}.cpp:{row['line']} {row['old'].strip()} at {row['at']}: {row['text'].strip()}"


def _prepare() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    for name in ("avx2", "avx512"):  # whichever the CPU has: the mutant
        (SCRATCH / f"librpl-emu-{name}.so").unlink(missing_ok=True)
        (SCRATCH / f"librpl-emu-{name}.so").symlink_to("librpl-emu-baseline.so")
    _compiled(Path(__file__).resolve().parent / "exchange.cpp", SCRATCH / "exchange.so", "-shared", "-fPIC")


def _compiled(source: Path, to: Path, *words: str | Path) -> bool:
    options = ["-std=c++20", "-O1", "-g0", "-w", "-fno-math-errno", "-ffp-contract=off", "-march=x86-64"]
    command = ["g++", *options, "-DRPL_EMU_BUILD=baseline", "-I", SOURCES, source, *words, "-ldl", "-o", to]
    return subprocess.run(command, capture_output=True).returncode == 0


class Instructions:
    """Those of the test, as the model has them; only answers that are not the emulator's own are judged."""

    def __init__(self, cases: list[Any], answers: list[str]) -> None:
        self.cases, self.answers = cases, answers

    @classmethod
    def drawn(cls) -> Instructions:
        sys.path.insert(0, str(ROOT / "native" / "tests"))
        from scalar_model.comparing import cases
        from scalar_model.random_instructions import every_opcode

        found = cases(every_opcode())[0]
        return cls(found, cls._answers(BUILT / "rpl-emu", found, {}))

    @staticmethod
    def _answers(program: Path, cases: list[Any], variables: dict[str, str]) -> list[str]:
        done = subprocess.run(
            [program, "step"],
            input="\n".join(x.line for x in cases),
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout.splitlines()

    def notice(self, variables: dict[str, str], only: str) -> str | None:
        """The first instruction that comes out wrong."""
        pairs = list(zip(self.cases, self.answers, strict=True))
        pairs = [x for x in pairs if only in ("", x[0].step.instruction.operation.name)]
        answers = self._answers(SCRATCH / "rpl-emu", [x for x, _ in pairs], variables)
        if len(answers) != len(pairs):
            return "the emulator ended"
        for (case, usual), answer in zip(pairs, answers, strict=True):
            if answer != usual and case.disagreements(json.loads(answer)):
                return str(case.step.instruction.assembly)
        return None


def _tried(row: dict[str, Any], instructions: Instructions) -> tuple[str, str | None]:
    program, lanes = SCRATCH / "rpl-emu", SCRATCH / "librpl-emu-baseline.so"
    shutil.copy2(BUILT / "rpl-emu", program)
    variables = {}
    if row["kind"] == "exchange":
        shutil.copy2(SCRATCH / "exchange.so", lanes)
        variables = {
            "RPL_EMU_LANES": str(BUILT / lanes.name),
            "RPL_EMU_EXCHANGE": f"{row['to']},{row['from']}",
        }
    elif not _built(row, program, lanes):
        return BROKEN, None
    noticed = instructions.notice(variables, row.get("to", "").replace(".", " "))
    return (CAUGHT, noticed) if noticed else _judged(variables)


def _built(row: dict[str, Any], program: Path, lanes: Path) -> bool:
    path = SOURCES / "opcodes" / f"{row['file']}.cpp"
    lines = path.read_text(encoding="utf-8").splitlines()
    line, at, old = row["text"], row["at"], row["old"]
    if lines[row["line"] - 1] != line:
        return False
    lines[row["line"] - 1] = line[:at] + OPERATORS[old] + line[at + len(old) :]
    changed = SCRATCH / path.name
    changed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    objects = BUILT / "CMakeFiles"
    if row["file"] == "scalar":
        shutil.copy2(BUILT / lanes.name, lanes)
        others = [*(objects / "rpl-emu.dir").rglob("*.o"), BUILT / "librpl_emu_machine.a", "-pthread"]
        return _compiled(changed, program, *others)
    others = [o for o in (objects / "rpl-emu-baseline.dir").rglob("*.o") if o.name != f"{path.name}.o"]
    return _compiled(changed, lanes, "-shared", "-fPIC", *others)


def _judged(variables: dict[str, str]) -> tuple[str, str | None]:
    """The tests with the mutant in the place of the built emulator."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["-m", "not long", "--timeout", "120", *TESTS]
    environment = {**os.environ, **variables, "RPL_TEST_EMULATOR": str(SCRATCH / "rpl-emu")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    failed = re.findall(r"^(?:FAILED|ERROR) \S+::(\S+)", done.stdout, re.MULTILINE)
    return (CAUGHT, failed[0]) if failed else (SURVIVED, None)


def _report() -> int:
    content = json.loads(LIST.read_text(encoding="utf-8"))
    rows = content["mutants"]
    print(f"seed {content['seed']}: {dict(Counter(str(row['outcome']) for row in rows))} of {len(rows)}")
    judged = [row for row in rows if row["outcome"] in (CAUGHT, SURVIVED) and not row["equivalent"]]
    caught = sum(row["outcome"] == CAUGHT for row in judged)
    equivalent = sum(bool(row["equivalent"]) for row in rows)
    print(f"equivalent: {equivalent}; caught of the others: {caught} of {len(judged)}")
    for row in rows:
        if row["outcome"] == SURVIVED:
            print(f"survived: {_name(row)}" + (f" ({row['equivalent']})" if row["equivalent"] else ""))
    return 0 if caught >= 0.95 * len(judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
