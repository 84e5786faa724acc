"""Demangled names by LLVM's demangler (pycxxfilt), in a process of its own.

The names come from recordings and code objects of others. A few hundred characters of back references
unfold to terabytes, and the library ends its process when it gets no memory: so a worker with bounded memory
and time has the names, and one that it dies of stays mangled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

__all__ = ["demangled"]

#: Chosen: generated kernels reach some 5 000 characters mangled and 20 000 demangled.
_LONGEST_MANGLED = 16_384
_LONGEST_SHOWN = 65_536
_MEMORY_BYTES = 128 << 20
_CPU_S = 3
_TIME_LIMIT_S = 30.0
#: Names that may end a worker before the rest stays mangled.
_MOST_FAILURES = 3


def demangled(names: Sequence[str]) -> Mapping[str, str]:
    """Mangled name -> demangled name, for those of ``names`` that are mangled and can be demangled."""
    waiting = [n for n in dict.fromkeys(names) if n.startswith("_Z") and len(n) <= _LONGEST_MANGLED]
    shown: dict[str, str] = {}
    for _ in range(_MOST_FAILURES):
        if not waiting:
            break
        answers = _answers(waiting)
        shown.update((name, text) for name, text in zip(waiting, answers, strict=False) if text)
        waiting = waiting[len(answers) + 1 :]
    return shown


def _answers(names: Sequence[str]) -> list[str | None]:
    """One answer per name, in order; fewer where the worker ended at the one behind the last."""
    words = [sys.executable, "-I", "-m", "rpl_codeobject.demangle"]
    try:
        done = subprocess.run(
            words, input=json.dumps(names).encode(), capture_output=True, timeout=_TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    whole = done.stdout.rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def _work() -> None:
    """Answer the list of names on stdin line by line, each as soon as it is known."""
    import resource
    from pathlib import Path

    demangle = _demangler()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in json.load(sys.stdin):
        text = demangle(name)
        print(json.dumps(text if text and len(text) <= _LONGEST_SHOWN else None), flush=True)


def _demangler() -> Callable[[str], str | None]:
    if sys.version_info >= (3, 11):
        from pycxxfilt import demangle
    else:  # the same demangler, of which pycxxfilt has no build for 3.10
        from pydemumble import demangle
    found: Callable[[str], str | None] = demangle
    return found


if __name__ == "__main__":
    _work()
