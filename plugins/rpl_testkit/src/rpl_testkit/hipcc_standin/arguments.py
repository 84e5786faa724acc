"""The command line of hipcc: inputs, the output, and which options go to which compilation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Request", "parse"]

#: Options whose value is the next word.
_WITH_VALUE: Final = (
    *("-o", "-x", "-I", "-D", "-U", "-include", "-isystem", "-idirafter", "-iquote", "-MF", "-MT", "-MQ"),
    *("-L", "-l", "-T", "-Xlinker", "-Xclang", "-mllvm", "-Xarch_device", "-Xarch_host"),
)
#: As hipcc has it: each of these is HIP, whatever its ending says.
_SOURCES: Final = frozenset((".hip", ".cpp", ".cu", ".cc", ".cxx", ".C"))
_DEVICE_ONLY: Final = frozenset(("--genco", "--cuda-device-only", "--offload-device-only"))
_HOST_ONLY: Final = frozenset(("--cuda-host-only", "--offload-host-only"))
_REFUSED: Final = frozenset(("-E", "-S", "-fgpu-rdc"))
_DEFAULT_ARCHITECTURE: Final = "gfx942"


@frozen
class Request:
    """What to do. ``device``, ``host`` and ``link`` are options; ``dependencies`` those of the -M family."""

    options: tuple[str, ...]  # everything but the inputs, as given
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    output: str | None
    only_compile: bool
    device_only: bool
    host_only: bool
    device: tuple[str, ...]
    host: tuple[str, ...]
    link: tuple[str, ...]
    dependencies: tuple[str, ...]
    refused: tuple[str, ...]


@attrs.define
class _Sorted:
    inputs: list[str] = attrs.field(factory=list)
    output: str | None = None
    flags: set[str] = attrs.field(factory=set)
    device: list[str] = attrs.field(factory=list)
    host: list[str] = attrs.field(factory=list)
    link: list[str] = attrs.field(factory=list)
    dependencies: list[str] = attrs.field(factory=list)

    def add(self, words: list[str]) -> None:
        option = words[0]
        if option == "-o":
            self.output = words[-1]
        elif option == "-c" or option in _DEVICE_ONLY | _HOST_ONLY | _REFUSED:
            self.flags.add(option)
        elif option.startswith(("--offload-arch", "--amdgpu-target")):
            named = option.replace("--amdgpu-target", "--offload-arch")
            self.device.append(named.replace("=native", f"={_DEFAULT_ARCHITECTURE}"))
        elif option.startswith("-M"):
            self.dependencies += words
        elif option.startswith(("-l", "-L", "-Wl,", "-Xlinker")):
            self.link += words
        elif option == "-Xarch_device":
            self.device.append(words[1])
        elif option == "-Xarch_host":
            self.host.append(words[1])
        elif option != "-x":
            self.device += words
            self.host += words


def parse(arguments: Sequence[str]) -> Request:
    """Sort the words of a command line; what is not known goes to clang, which has the last word on it."""
    sorted_words = _Sorted()
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            sorted_words.inputs.append(word)
            continue
        value = [next(words, "")] if word in _WITH_VALUE else []
        if word.startswith("-o") and len(word) > 2 and not word.startswith("-offload"):
            word, value = "-o", [word[2:]]
        sorted_words.add([word, *value])
    if not any(option.startswith("--offload-arch") for option in sorted_words.device):
        sorted_words.device.append(f"--offload-arch={_DEFAULT_ARCHITECTURE}")
    inputs = frozenset(sorted_words.inputs)
    return Request(
        options=tuple(word for word in arguments if word not in inputs),
        sources=tuple(i for i in sorted_words.inputs if Path(i).suffix in _SOURCES),
        objects=tuple(i for i in sorted_words.inputs if Path(i).suffix not in _SOURCES),
        output=sorted_words.output,
        only_compile="-c" in sorted_words.flags,
        device_only=bool(sorted_words.flags & _DEVICE_ONLY),
        host_only=bool(sorted_words.flags & _HOST_ONLY),
        device=tuple(sorted_words.device),
        host=tuple(sorted_words.host),
        link=tuple(sorted_words.link),
        dependencies=tuple(sorted_words.dependencies),
        refused=tuple(sorted(sorted_words.flags & _REFUSED)),
    )
