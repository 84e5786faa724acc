"""The emulated device, and how a program is started over the software KFD that stands for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.config import text
from rpl_core.errors import MissingError
from rpl_core.interfaces.options import CommandOption
from rpl_core.values import frozen
from rpl_emu.native_program import find_program
from rpl_emu.runtime_packages import LIBRARIES, fetched

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel


DEVICE = "gfx942-emu"
PRODUCT = "AMD Instinct MI300X (gfx942-emu, emulated)"


def emulated_device() -> DeviceModel:
    """Ceilings and formulas of the MI300X; nothing that ran on it was measured."""
    import attrs

    from rpl_amdgpu.models import device_models
    from rpl_gfx942.products import GFX942

    model = next(one for one in device_models(GFX942) if one.name == "mi300x")
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
