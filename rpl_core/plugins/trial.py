"""The first import of a stranger's distribution, in a child: what hangs, crashes or leaves costs itself.

An import that never ends, or ends the process without a word, can't be caught where it happens. So before a
module of a distribution that is not this project's own is imported here, a child imports it within a time
limit. What came of it is kept per version and files in ``$XDG_CACHE_HOME/rpl/imports`` (``~/.cache`` without
that variable), where that can be written, so that a sound plugin costs this once. An import that raises is
sound: that is caught and named where it is imported for use.

This guards against mistakes. Malice can tell the child from the real thing, and is not what this is about.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from rpl_core import __version__
from rpl_core.errors import RplError
from rpl_core.files import cache_folder, read_regular, write_atomic
from rpl_core.plugins.entry_points import is_own

#: Seconds that an import may take in the child; 0 leaves the trial out.
LIMIT_VARIABLE = "RPL_IMPORT_LIMIT_S"
#: The largest frameworks take some ten seconds from a cold disk of a network (chosen).
_LIMIT_S = 30.0
#: So many files tell that a package is another one than before; larger ones change in these too (chosen).
_MOST_FILES = 5000
_LARGEST_KEPT_BYTES = 1 << 14
_SOUND = b"imported"
#: The result goes through a pipe of its own: what the module prints, or exits with, is none.
_CHILD = """
import importlib, json, os, sys
path, module, answer = json.loads(sys.argv[1])
sys.path[:] = path
try:
    importlib.import_module(module)
except BaseException:
    pass
os.write(answer, b"imported")
os._exit(0)
"""


def why_unusable(distribution: str | None, version: str | None, module: str) -> str | None:
    """Why importing ``module`` would end or hold this process; ``None`` for one that comes back.

    This project's own distributions are not tried, nor is a module of none, which the user named.
    """
    if distribution is None or is_own(distribution):
        return None
    limit_s = _limit_s()
    if limit_s <= 0 or module in sys.modules:
        return None
    kept = _place(distribution, version, module)
    found = _kept_at(kept)
    if found is None:
        found = _tried(module, limit_s)
        with contextlib.suppress(OSError):  # then it is tried again next time
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_atomic(kept, json.dumps({"distribution": distribution, "module": module, **found}))
    problem = found["problem"]
    again = f" (to try again at once, delete {kept})" if kept is not None and kept.exists() else ""
    return None if problem is None else f"{problem}{again}"


def _limit_s() -> float:
    try:
        return float(os.environ[LIMIT_VARIABLE])
    except (KeyError, ValueError):
        return _LIMIT_S


def _tried(module: str, limit_s: float) -> dict[str, str | None]:
    """``{"problem": None}`` if the import came back, or what it did instead."""
    import subprocess  # runs without strangers need none

    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb") as answer:
        try:
            child = subprocess.Popen(
                [sys.executable, "-c", _CHILD, json.dumps([sys.path, module, writer])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writer,),
                start_new_session=True,
            )
        except OSError:  # no process to be had: nothing is known against it
            return {"problem": None}
        finally:
            os.close(writer)
        try:
            code = child.wait(limit_s)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGKILL)  # its session, as long as it was not waited for
            child.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return {"problem": f"importing {module} did not end within {limit_s:g} s"}
            raise
        if answer.read(len(_SOUND)) == _SOUND:
            return {"problem": None}
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return {"problem": f"importing {module} crashed the process ({name})"}
    return {"problem": f"importing {module} ended the process with exit code {code}"}


def _place(distribution: str, version: str | None, module: str) -> Path | None:
    """Where the result of exactly these files is kept; ``None`` where there is no home folder."""
    folder = cache_folder()
    if folder is None:
        return None
    facts = [__version__, sys.version, sys.prefix, distribution, version, module, _files(module)]
    return folder / "imports" / f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}.json"


def _files(module: str) -> list[tuple[str, int, int]]:
    """Path, size and time of the files of the module's package, found without importing any of it."""
    top = module.partition(".")[0]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return []
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    files = [Path(spec.origin)] if spec is not None and spec.origin and not folders else []
    for folder in folders:
        sources = (path for path in Path(folder).rglob("*") if path.suffix in (".py", ".so", ".pyd"))
        files += islice(sources, _MOST_FILES)
    facts = []
    for path in sorted(files):
        with contextlib.suppress(OSError):
            status = path.stat()
            facts.append((str(path), status.st_size, status.st_mtime_ns))
    return facts


def _kept_at(path: Path | None) -> dict[str, str | None] | None:
    if path is None:
        return None
    try:
        kept = json.loads(read_regular(path, _LARGEST_KEPT_BYTES))
        problem = kept["problem"]
    except (RplError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return {"problem": problem} if problem is None or isinstance(problem, str) else None
