"""The environment of a build: the user's own, without what would let it write or act elsewhere.

Compilers take options from variables, some of which write files in odd places (``CC_LOG_DIAGNOSTICS``,
``SUNPRO_DEPENDENCIES``) or change every command line (``CCC_OVERRIDE_OPTIONS``). A text that a language model
wrote is compiled here, so none of them is passed on. Sources: clang's driver (``CCC_*``, ``CC_*``), GCC's
manual ("Environment Variables"). ``HIPCC_*`` stays: it is how users tell hipcc about their installation.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_DROPPED = frozenset(
    (
        *("CCC_OVERRIDE_OPTIONS", "CCC_PRINT_OPTIONS", "CCC_PRINT_OPTIONS_FILE", "CCC_PRINT_BINDINGS"),
        *("CC_PRINT_HEADERS", "CC_PRINT_HEADERS_FILE", "CC_PRINT_HEADERS_FORMAT", "CC_PRINT_OPTIONS"),
        *("CC_PRINT_OPTIONS_FILE", "CC_PRINT_PROC_STAT", "CC_PRINT_PROC_STAT_FILE", "CC_LOG_DIAGNOSTICS"),
        *("CC_LOG_DIAGNOSTICS_FILE", "FORCE_CLANG_DIAGNOSTICS_CRASH", "GCC_COMPARE_DEBUG"),
        *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "OLDPWD"),
    )
)
#: A cache would hand the second build the first one's result, and then nothing would have been rebuilt.
_ADDED = {"CCACHE_DISABLE": "1", "SCCACHE_RECACHE": "1", "LC_ALL": "C"}


def build_environment(
    scratch: Path, place: Path, *, include: Sequence[Path] = (), user: Mapping[str, str] | None = None
) -> dict[str, str]:
    """``user`` (default: rpl's own) for a build in ``place`` whose temporary files go to ``scratch``.

    ``include`` is searched for headers behind all ``-I`` of the command (``CPATH``).
    """
    given = os.environ if user is None else user
    kept = {name: value for name, value in given.items() if _passes(name, value)}
    kept |= _ADDED | {"TMPDIR": str(scratch), "PWD": str(place)}  # makefiles read $(PWD)
    if include:
        places = [*map(str, include), *filter(None, [given.get("CPATH")])]
        kept["CPATH"] = os.pathsep.join(places)
    return kept


def _passes(name: str, value: str) -> bool:
    if name in ("MAKEFLAGS", "MFLAGS"):  # the job server of a make that rpl itself was started by
        return "jobserver" not in value
    return name not in _DROPPED
