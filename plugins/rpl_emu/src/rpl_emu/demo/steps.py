"""The steps of the demo: a program profiled, its dominant kernel isolated and replayed, a report written.

``rpl demo`` takes them with programs that were built before, ``make demo`` with those that it builds.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rpl_core.errors import RplError
from rpl_core.text import counted

#: The program that everything but the optimizer is shown on, and its size.
PROGRAM, SIZE = "attention", "256"
DEVICE = "gfx942-emu"
#: Of examples/optimize: the program, how it is called (it writes its result into the last), and its
#: candidates with the status of a replay: one computes the same, one does not.
SMOOTH, SMOOTH_ARGUMENTS = "smooth", ("1024", "1", "/dev/null")
CANDIDATES = {"smooth_unrolled": (0,), "smooth_short": (1,)}
_LAUNCH = ("--kernel", "_Z6smoothPKfS0_Pfii", "--grid", "1024", "--block", "256")
_FLOAT_BYTES, _TAPS = 4, 64
#: rpl itself as a command, wherever its script lies; people read and type ``rpl``.
RPL = (
    sys.executable,
    "-c",
    "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())",
)
#: Lines of output that show where a command failed.
LAST_LINES = 15


class FailedError(RplError):
    """A command that should have worked did not."""


class Steps:
    """Numbered steps with their times; what is fetched and built is timed apart from what rpl does.

    ``environment`` is that of all commands, ``say`` gets each line that is told.
    """

    def __init__(self, count: int, say: Callable[[str], None], environment: Mapping[str, str]) -> None:
        self._count, self._number = count, 0
        self.say, self.environment = say, dict(environment)
        self.own_s, self._begin = 0.0, time.monotonic()

    @property
    def all_s(self) -> float:
        """Seconds since the first step."""
        return time.monotonic() - self._begin

    @contextmanager
    def step(self, title: str, *, prepares: bool = False) -> Iterator[None]:
        self._number += 1
        self.say(f"[{self._number}/{self._count}] {title}")
        begin = time.monotonic()
        yield
        took = time.monotonic() - begin
        if not prepares:
            self.own_s += took
        self.say(f"      {took:.1f} s\n")

    def rpl(self, *words: str | Path, statuses: tuple[int, ...] = (0,), folder: Path | None = None) -> str:
        """What the command printed; the command itself is shown. A word ``rpl`` is rpl again."""
        typed = ["rpl", *map(str, words)]
        self.say(f"      $ {shlex.join(typed)}")
        return self.call(typed, statuses, folder)

    def call(
        self, command: Sequence[str | Path], statuses: tuple[int, ...] = (0,), folder: Path | None = None
    ) -> str:
        """What it printed. Raises FailedError with its last lines for another status."""
        words = [part for word in command for part in (RPL if word == "rpl" else (str(word),))]
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=self.environment)
        if done.returncode not in statuses:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])
            raise FailedError(f"`{shlex.join(map(str, command))}` ended with {done.returncode}:\n{last}")
        return done.stdout

    def show(self, text: str, until: str | None = None) -> None:
        for line in (text.partition(until)[0] if until else text).splitlines():
            self.say(f"      {line}".rstrip())


def profile(steps: Steps, folder: Path, program: Path) -> None:
    """Into ``folder``/PROGRAM."""
    with steps.step(f"profile the attention pipeline on the emulated device {DEVICE}"):
        words = ("profile", "--device", DEVICE, "--roofline", "-o", folder / PROGRAM, "--", program, SIZE)
        steps.show(steps.rpl(*words), until="\n\nSpeed of light")


def isolate_and_replay(steps: Steps, folder: Path, program: Path) -> None:
    """Two steps, after ``profile`` into the same folder: the capture lies in ``folder``/capture."""
    kernel, capture = _dominant(folder / PROGRAM), folder / "capture"
    with steps.step(f"isolate its dominant kernel, {kernel}"):
        _isolate(steps, kernel, capture, (str(program), SIZE))
    with steps.step("replay it without its program, and compare the memory that it leaves"):
        steps.show(steps.rpl("replay", "full-vm", capture, "--device", DEVICE))
        steps.say("      The same by ROCr, at the captured addresses, over a software driver:")
        steps.show(steps.rpl("replay", "reserve-check", capture))
        steps.show(steps.rpl("replay", "full-vm", capture))


def write_report(steps: Steps, run: Path, folder: Path) -> None:
    with steps.step("write the report"):
        steps.rpl("report", "--format", "html", "-o", folder / "report.html", run)


def _dominant(run: Path) -> str:
    """The kernel with the most time, without its arguments."""
    kernels = json.loads((run / "profile.json").read_text(encoding="utf-8"))["kernels"]
    name: str = max(kernels, key=lambda kernel: float(kernel["runtime_ms"] or 0))["name"]
    return name.partition("(")[0]


def _isolate(steps: Steps, kernel: str, capture: Path, application: Sequence[str]) -> None:
    words = ("isolate", "--kernel", rf"^{re.escape(kernel)}\(", "-o", capture)
    steps.show(steps.rpl(*words, "--", "rpl", "emu", "run", "--", *application))


def compare_candidates(steps: Steps, folder: Path, programs: Path) -> None:
    """Two changes of ``smooth`` that were built before: what they compute, and how much they execute.

    `rpl optimize` would change the source, build it, and try other inputs than the captured one, too.
    """
    capture = folder / "smooth"
    _isolate(steps, SMOOTH, capture, (str(programs / SMOOTH), *SMOOTH_ARGUMENTS))
    executed = {"as it is": _executed(steps, capture / "kernel.hsaco")}
    for name, statuses in CANDIDATES.items():
        candidate = programs / f"{name}.hsaco"
        told = steps.rpl(
            "replay", "full-vm", capture, "--hsaco", candidate, "--device", DEVICE, statuses=statuses
        )
        steps.show(told[told.rfind("\nreproduced") + 1 :])
        executed[name] = _executed(steps, candidate)
    for name, (instructions, bound_ns) in executed.items():
        told = f"{counted(instructions, 'instruction')}, at least {bound_ns:.0f} ns (modelled)"
        steps.say(f"      {name:16} {told}")
    steps.say(
        "      Both candidates were built before: rpl optimize needs a compiler. They were compared on the"
    )
    steps.say("      captured input only, and nothing was measured, so nothing is accepted.")


def _executed(steps: Steps, code_object: Path) -> tuple[int, float]:
    """Instructions of all waves, and the least time by the model, of a launch as the program makes it."""
    size = int(SMOOTH_ARGUMENTS[0])
    words: list[str | Path] = ["rpl", "emu", "launch", code_object, "--json", *_LAUNCH]
    for floats in (size + _TAPS, _TAPS, size):
        words += ["--arg", f"zeros:{floats * _FLOAT_BYTES}"]
    words += ["--arg", f"i32:{size}", "--arg", f"i32:{_TAPS}"]
    document = json.loads(steps.call(words))
    return int(document["instructions"]), float(document["modelled"]["bound_ns"])
