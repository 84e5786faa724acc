"""The emulator: its native program, the device that it emulates, and how programs are started there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.config import text
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.interfaces.options import CommandOption
from rpl_core.values import frozen
from rpl_emu.runtime_packages import LIBRARIES, fetched, with_llvm
from rpl_vmreplay.native_parts import NativePart, find_part

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel

FOLDER_VARIABLE = "RPL_EMU_FOLDER"
LLVM_VARIABLE = "RPL_EMU_LLVM"
#: A runtime that was fetched, whose LLVM decodes instructions where the system has none.
RUNTIME_VARIABLE = "RPL_EMU_RUNTIME"
PROGRAM = NativePart(
    "rpl-emu", "emu", "the emulator", "`rpl emu`", "emulator", named_by=f"{FOLDER_VARIABLE}=build"
)
#: Beyond its own limit the program gets this long to end by itself.
_GRACE_S = 10.0

#: ``LAYOUT``: captured memory has to lie where the program itself does.
OK, FINDING, LAYOUT, MEMORY_FAULT, LIMIT = 0, 1, 3, 4, 124
_ERRORS: dict[int, type[RplError]] = {64: UsageError, 65: BadDataError, 69: MissingError}


@frozen
class Answer:
    """What one call gave. ``document`` is what it printed; a launch that stopped prints one too."""

    status: int
    document: Any
    messages: tuple[str, ...]


def find_program() -> Path:
    """Raises MissingError with the remedy."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return find_part(PROGRAM, Path(folder) if folder else None)


def command_of(words: Sequence[str]) -> list[str]:
    """With the program and the library that it is to take. Raises MissingError."""
    llvm = os.environ.get(LLVM_VARIABLE)
    return [str(find_program()), *words, *(["--llvm", llvm] if llvm else [])]


def environment() -> dict[str, str]:
    """Of the program and of what starts it."""
    root = None if RUNTIME_VARIABLE in os.environ else with_llvm()
    return {**os.environ, **({RUNTIME_VARIABLE: str(root)} if root else {})}


def call(words: Sequence[str], *, seconds: float | None = None) -> Answer:
    """Run the program; its errors of usage, input and absence become rpl's own.

    A code object is untrusted: the program runs apart from rpl, and is ended if its own limit fails.
    """
    try:
        done = subprocess.run(
            command_of(words),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=environment(),
            timeout=None if seconds is None else seconds + _GRACE_S,
        )
    except subprocess.TimeoutExpired:
        return Answer(LIMIT, None, ("the emulator did not end in time and was stopped",))
    messages = tuple(line.removeprefix("rpl-emu: ") for line in done.stderr.splitlines() if line)
    if done.returncode in _ERRORS:
        raise _error(done.returncode, messages)
    if done.returncode not in (OK, FINDING, LAYOUT, MEMORY_FAULT, LIMIT):
        raise RplError(
            f"the emulator ended with status {done.returncode}",
            cause=messages[0] if messages else "a fault of the emulator itself",
            next_step="report it with the code object",
        )
    return Answer(done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, messages)


def _error(status: int, messages: tuple[str, ...]) -> RplError:
    fact, _, next_step = (messages[0] if messages else "the emulator refused").partition(" Next: ")
    return _ERRORS[status](fact, next_step=next_step or None)


# The emulated device, and how a program is started over the software KFD that stands for it.

DEVICE = "gfx942-emu"
PRODUCT = "AMD Instinct MI300X (gfx942-emu, emulated)"


def emulated_device() -> DeviceModel:
    """Ceilings and formulas of the MI300X; nothing that ran on it was measured."""
    import attrs

    from rpl_amdgpu.models import device_models
    from rpl_gfx942.products import GFX942

    model = next(device for device in device_models(GFX942) if device.name == "mi300x")
    return attrs.evolve(model, name=DEVICE, architecture=DEVICE, product=PRODUCT, chip_ids=())


# How a program is started over the software KFD, with the emulator for its kernels and a runtime of ROCm.

LAUNCHER = "softkfd-run"
#: From the folder of rpl-emu.
_PLACES = ("../softkfd", ".")
#: Where packages of distributions and AMD's own put the runtime.
_SYSTEM = ("/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
_RUNTIME = "libhsa-runtime64.so.1"
_NEEDED = re.compile(rb"libamdhip64\.so\.\d+")
RUNTIME: CommandOption[Path | None] = CommandOption(
    name="runtime",
    commands=("profile",),
    parse=lambda value: Path(text(value)),
    default=None,
    help="Root with ROCm's runtime for the emulated device, as rpl emu get-runtime prints; else found.",
    metavar="DIR",
)
#: Programs are small beside their libraries; what stands in the first part is enough.
_MOST_READ = 64 << 20


@frozen
class Runtime:
    """``root``: a folder as `rpl emu get-runtime` makes it; None: the runtime of the system."""

    root: Path | None = None


def launcher_words(
    runtime: Runtime, *, sanitize: bool = False, strict_decode: bool = False
) -> tuple[str, ...]:
    """What stands before a program and its arguments. Raises MissingError with the remedy."""
    flags = (*(("--sanitize",) if sanitize else ()), *(("--strict-decode",) if strict_decode else ()))
    words = (str(find_launcher()), "--executor", "emu", *flags)
    return words if runtime.root is None else (*words, "--runtime", str(runtime.root))


def find_launcher() -> Path:
    """The launcher of the software KFD. Raises MissingError."""
    program = find_program()
    for place in _PLACES:
        launcher = (program.parent / place / LAUNCHER).resolve()
        if launcher.is_file() and (launcher.parent / "libsoftkfd.so").is_file():
            return launcher
    raise MissingError(
        f"the software KFD is not beside {program}",
        cause="it was built without libdrm-dev",
        next_step="pip install 'rpl-emu[native]', or in a checkout: apt-get install libdrm-dev, "
        "cmake -S . -B build && cmake --build build -j, then RPL_EMU_FOLDER=build",
    )


def find_runtime(command: Sequence[str], given: Path | None, system: Sequence[str] = _SYSTEM) -> Runtime:
    """The runtime that was given, the system's, or one that was fetched and fits. Raises MissingError."""
    if given is not None:
        if not (given / LIBRARIES / _RUNTIME).exists():
            raise MissingError(f"{given} holds no {_RUNTIME}", next_step=_remedy(command))
        return Runtime(given.resolve())
    wanted = _hip_library(command)
    if any(_fits(Path(folder), wanted) for folder in system):
        return Runtime()
    fitting = [folder for folder in fetched() if _fits(folder / LIBRARIES, wanted)]
    if not fitting:
        raise MissingError(
            f"there is no ROCm runtime here{f' with {wanted}' if wanted else ''}",
            next_step=_remedy(command),
        )
    return Runtime(fitting[-1])


def system_runtime() -> Path | None:
    """The first folder of the system that holds a runtime."""
    return next((folder for folder in map(Path, _SYSTEM) if _fits(folder, None)), None)


def _fits(folder: Path, wanted: str | None) -> bool:
    return (folder / _RUNTIME).exists() and (wanted is None or (folder / wanted).exists())


def _remedy(command: Sequence[str]) -> str:
    return (
        "rpl emu get-runtime, install ROCm's runtime (no GPU is needed), or name one: "
        f"rpl emu run --runtime FOLDER -- {' '.join(command)}"
    )


def _hip_library(command: Sequence[str]) -> str | None:
    """The version of HIP that the program was linked with; None where it does not say."""
    try:
        with Path(command[0]).open("rb") as program:
            match = _NEEDED.search(program.read(_MOST_READ))
    except OSError:
        return None
    return match.group().decode() if match else None
