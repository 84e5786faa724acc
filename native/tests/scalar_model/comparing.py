"""The emulator's `step` and the model side by side."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import attrs

from rpl_testkit.requirements import require

# Every group defines its operations.
from . import compare, conversions, packed, scalar, vector_integer, wave_wide  # noqa: F401
from .instructions import EXEC, M0, VCC, Instruction
from .machine import ACCUMULATORS, LDS_BYTES, SCALARS, VECTORS, State, disagreements, execute
from .random_instructions import Step


@attrs.frozen
class Compared:
    """``wrong``: what came out otherwise; ``refused``: what is not offered; ``ran``: per mnemonic."""

    ran: dict[str, int]
    refused: dict[str, str]
    rejected: dict[str, str]
    wrong: list[str]


def assembled(instructions: list[Instruction]) -> list[str | None]:
    """Their bytes in hex; None: the assembler knows no such form."""
    command = [require("llvm-mc-22"), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "--show-encoding"]
    text = "\n".join(x.assembly for x in instructions)
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    unknown = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)}
    codes = iter(re.findall(r"encoding: \[(.*)\]", done.stdout))
    return [
        None if k + 1 in unknown else "".join(re.findall(r"0x(\w\w)", next(codes)))
        for k in range(len(instructions))
    ]


def _text(name: str, value: Any) -> str:
    if isinstance(value, bytes):
        return f"{name}={value.hex()}"
    if isinstance(value, list):
        return f"{name}={','.join(f'{x:x}' for x in value)}"
    return f"{name}={value:x}"


def line(step: Step, code: str, outputs: list[str], *, keep: bool) -> str:
    words = ["keep"] if keep else []
    words += [_text(name, value) for name, value in step.loads.items()]
    return " ".join([*words, f"code={code}", f"out={','.join(outputs)}"])


def read(answer: dict[str, Any]) -> dict[str, Any]:
    if "lds" in answer:
        answer["lds"] = bytes.fromhex(answer["lds"])[:LDS_BYTES]
    return answer


def _everything() -> list[str]:
    names = [f"v{k}" for k in range(VECTORS)] + [f"a{k}" for k in range(ACCUMULATORS)]
    scalars = [*range(SCALARS), *(x + k for x in (VCC, EXEC) for k in (0, 1)), M0]
    return [*names, *(f"s{k}" for k in scalars), "scc", "lds"]


def compare_stream(emulator: Any, first: dict[str, Any], steps: list[Step]) -> Compared:
    """On a state that goes on: each instruction, then all registers, then the whole stream at a time."""
    found = Compared({}, {}, {}, [])
    codes = assembled([x.instruction for x in steps])
    steps = [x for x, code in zip(steps, codes, strict=True) if code]
    codes = [code for code in codes if code]
    state = State.blank()
    state.load(first)
    steps = [attrs.evolve(x, loads=(first if k == 0 else {}) | x.loads) for k, x in enumerate(steps)]
    lines = [
        line(x, code or "", named_results(x.instruction), keep=k > 0)
        for k, (x, code) in enumerate(zip(steps, codes, strict=True))
    ]
    lines.append("keep out=" + ",".join(_everything()))
    if not any(x.loads for x in steps[1:]):
        lines.append(line(steps[0], "".join(c or "" for c in codes), _everything(), keep=False))
    answers = [read(x) for x in emulator.step(*lines)]
    for step, answer in zip(steps, answers, strict=False):
        name, text = step.instruction.operation.name, step.instruction.assembly
        if "refused" in answer:
            found.refused[text] = answer["refused"]
            continue
        found.ran[name] = found.ran.get(name, 0) + 1
        state.load(step.loads)
        found.wrong.extend(
            f"{text}: {x}" for x in disagreements(state, execute(state, step.instruction), answer)[:1]
        )
    last = answers[len(steps)]
    found.wrong.extend(
        f"after {[x.instruction.assembly for x in steps]}: {x}"
        for x in disagreements(state, whole(state), last)[:1]
    )
    if not found.refused and len(answers) > len(steps) + 1 and answers[-1] != last:
        found.wrong.append(f"otherwise at a time: {[x.instruction.assembly for x in steps]}")
    return found


def whole(state: State) -> dict[str, Any]:
    rows = {f"v{k}": row for k, row in state.vectors.items()} | {
        f"a{k}": row for k, row in state.accumulators.items()
    }
    scalars = {
        name: state.scalars[int(name[1:])] for name in _everything() if name[0] == "s" and name != "scc"
    }
    return {**rows, **scalars, "scc": state.scc, "lds": bytes(state.lds)}


def named_results(i: Instruction) -> list[str]:
    """Registers that it may write."""
    names = [f"{x.kind}{x.index + k}" for x in i.results for k in range(x.words)]
    if i.operation.name == "v_swap_b32":
        names.append(f"v{i.sources[0].index}")
    if i.operation.wants.endswith("writes exec"):
        names += [f"s{EXEC}", f"s{EXEC + 1}"]
    return [*dict.fromkeys(names), "scc", *(["lds"] if i.operation.name.startswith("ds_") else [])]


@attrs.frozen
class Case:
    step: Step
    line: str
    outcome: dict[str, Any]

    def disagreements(self, answer: dict[str, Any]) -> list[str]:
        return disagreements(State.blank(), self.outcome, read(answer))


def cases(steps: list[Step]) -> tuple[list[Case], dict[str, str]]:
    """Each on a state of its own, as the model has it; and which forms the assembler does not know."""
    found, rejected = [], {}
    codes = assembled([x.instruction for x in steps])
    for step, code in zip(steps, codes, strict=True):
        if code is None:
            rejected[step.instruction.assembly] = step.instruction.operation.name
            continue
        state = State.blank()
        state.load(step.loads)
        outcome = execute(state, step.instruction)
        found.append(Case(step, line(step, code, list(outcome), keep=False), outcome))
    return found, rejected


def compare_steps(emulator: Any, steps: list[Step], options: tuple[str, ...] = ()) -> Compared:
    drawn, rejected = cases(steps)
    found = Compared({}, {}, rejected, [])
    for answer, case in zip(emulator.step(*(x.line for x in drawn), options=options), drawn, strict=True):
        name, text = case.step.instruction.operation.name, case.step.instruction.assembly
        if "refused" in answer:
            found.refused[text] = answer["refused"]
            continue
        found.ran[name] = found.ran.get(name, 0) + 1
        found.wrong.extend(f"{text}: {x}" for x in case.disagreements(answer)[:1])
    return found
