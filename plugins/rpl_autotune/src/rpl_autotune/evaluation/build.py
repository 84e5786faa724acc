"""Building one configuration, once per distinct build of a session."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import InterruptedRunError, RplError, TimeLimitError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import read_regular
from rpl_core.files.digest import sha256_of
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.outcome import describe_exit
from rpl_core.process.storage import make_directory
from rpl_core.text.safety import printable, shorten
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_autotune.interfaces.job import Variant

__all__ = ["Built", "build_variant", "file_lock"]

_PROGRAM, _RESULT, _LOG = "program", "result.json", "build.log"
_MOST_RESULT_BYTES = 1 << 20
_LONGEST_REASON = 300


@frozen
class Built:
    """A program with its digest, or the reason why there is none."""

    program: Path | None
    digest: str | None = None
    reason: str | None = None


def build_variant(variant: Variant, scratch: Path, working_directory: Path, time_limit_s: float) -> Built:
    """The program of ``variant``, built unless an equal build of this session has ended before."""
    assert variant.build_key is not None
    directory = scratch / "builds" / variant.build_key[:32]
    make_directory(directory)
    with file_lock(directory / ".lock"):
        known = _known(directory)
        if known is not None:
            return known
        built = _built(variant, directory, working_directory, time_limit_s)
        write_atomic(directory / _RESULT, json.dumps({"digest": built.digest, "reason": built.reason}))
        return built


def _known(directory: Path) -> Built | None:
    try:
        result = json.loads(read_regular(directory / _RESULT, _MOST_RESULT_BYTES))
    except (RplError, ValueError):
        return None
    program = directory / _PROGRAM
    if result["digest"] is None:
        return Built(None, None, result["reason"])
    return Built(program, result["digest"]) if program.is_file() else None


def _built(variant: Variant, directory: Path, place: Path, time_limit_s: float) -> Built:
    program = directory / _PROGRAM
    program.unlink(missing_ok=True)
    words = tuple(word.replace("{output}", str(program)) for word in variant.build)
    said: list[str] = []
    request = ProcessRequest(
        words,
        environment={**os.environ, "LC_ALL": "C"},
        log_path=directory / _LOG,
        time_limit_s=time_limit_s,
        working_directory=place,
        what="the build",
    )
    try:
        result = run_command(request, lambda line: _remember(said, line))
    except InterruptedRunError:
        raise
    except TimeLimitError as error:
        return Built(None, None, error.fact)
    except RplError as error:
        return Built(None, None, error.one_line())
    if not result.succeeded:
        told = next((line for line in said if "error" in line.lower()), said[-1] if said else None)
        return Built(None, None, told or f"the build {describe_exit(result)}")
    if not program.is_file():
        return Built(None, None, "the build ended well and left no program at {output}")
    return Built(program, sha256_of(program))


def _remember(said: list[str], line: str) -> None:
    plain = shorten(printable(line).strip(), _LONGEST_REASON)
    if plain and len(said) < 200:
        said.append(plain)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold ``path`` alone among the processes of this machine; a dead process holds nothing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
