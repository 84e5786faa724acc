"""AMD's rocjitsu runs programs on a simulated GPU; what is recorded there is marked: nothing was measured.

Its launcher sets ``ROCJITSU_RUNTIME_DIR`` and preloads ``librocjitsu.so`` into the application
(ROCm/rocm-systems, ``emulation/rocjitsu``). The profiler sees an ordinary GPU and writes times as usual.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rpl_core.files.atomic import write_atomic
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.origin import ORIGIN_MARK, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VARIABLE = "ROCJITSU_RUNTIME_DIR"
_LIBRARY = "librocjitsu"
_LAUNCHERS = frozenset({"rocjitsu", "mirage"})


def why_simulated(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What says that the application gets a simulated GPU, or ``None``."""
    if environment.get(_VARIABLE):
        return f"{_VARIABLE} is set"
    preloaded = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    if any(PurePath(library).name.startswith(_LIBRARY) for library in preloaded):
        return f"LD_PRELOAD names {_LIBRARY}"
    launcher = next((PurePath(word).name for word in command if PurePath(word).name in _LAUNCHERS), None)
    return None if launcher is None else f"{launcher} starts it"


def mark_simulated(
    directory: Path, command: Sequence[str], environment: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """Mark all recordings in ``directory`` as modelled where the GPU was a simulated one."""
    why = why_simulated(command, environment)
    if why is None:
        return ()
    write_atomic(directory / f"{ORIGIN_MARK}.json", json.dumps({ORIGIN_MARK: Origin.MODELLED.value}) + "\n")
    return (
        Diagnostic(
            code="collect.simulated_gpu",
            fact=f"the application ran on the simulated GPU of rocjitsu ({why}): its times are not measured",
            remedy="run it on a GPU for times",
        ),
    )
