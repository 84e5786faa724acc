"""Records CUDA programs by CUPTI's activity API: kernels, and with ``--focus-critical`` copies and calls too.

Hardware counters are read by ``ncu`` in a pass of its own.

The library that CUDA loads into the program is one C++ source. It is compiled once per machine, against the
headers of the CUDA that is there, since CUPTI's records change with its version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_core.files import make_directory
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    process_findings,
    require_program,
    run_command,
)
from rpl_core.values import frozen
from rpl_sm90.activity import SUFFIX
from rpl_sm90.ncu import SUFFIX as TABLE
from rpl_sm90.ncu import ncu_words

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectRequest, LineSink

_SOURCE = Path(__file__).with_name("native") / "recorder.cpp"
_FOLDER = ".rocpd_profile"  # where the core keeps the runs that time comes from
_LOGS = "artifacts/logs"
_COUNTERS = "artifacts/counters"
_NCU = "ncu"
#: Before the application: env, and what the recorder is told.
_OWN_WORDS = ("env", "library", "CUPTI", "folder", "calls")
_COMPILERS = ("g++", "c++", "clang++")
#: Below a folder of CUDA: the toolkit's layout, and that of NVIDIA's Python packages.
_INCLUDE = ("include", "extras/CUPTI/include")
_LIBRARIES = ("lib64", "extras/CUPTI/lib64", "lib", "targets/x86_64-linux/lib")


@frozen
class Cuda:
    """Where CUDA is: folders that hold ``cupti.h`` and ``cuda.h``, and the library of CUPTI."""

    include: tuple[Path, ...]
    library: Path


def find_cuda() -> Cuda:
    """By ``CUDA_HOME``, the ``nvcc`` on ``PATH``, the usual place, or NVIDIA's Python packages.

    Raises ``MissingError``.
    """
    headers: dict[str, Path] = {}
    library: Path | None = None
    for root in cuda_roots():
        include = [root / name for name in _INCLUDE]
        libraries = (found for name in _LIBRARIES for found in sorted((root / name).glob("libcupti.so*")))
        for folder in include:
            # The records of a library are those of the headers beside it.
            if "cupti.h" not in headers and (folder / "cupti.h").is_file():
                library = next(libraries, None)
                if library is not None:
                    headers["cupti.h"] = folder
            if "cuda.h" not in headers and (folder / "cuda.h").is_file():
                headers["cuda.h"] = folder
    if library is not None and len(headers) == 2:
        return Cuda(tuple(dict.fromkeys(headers.values())), library)
    raise MissingError(
        "no CUDA with CUPTI was found",
        cause="CUDA_HOME, nvcc, /usr/local/cuda and Python packages lack cupti.h, cuda.h or libcupti.so",
        next_step="install CUDA, set CUDA_HOME, or: pip install nvidia-cuda-cupti nvidia-cuda-runtime",
    )


def cuda_roots() -> Iterator[Path]:
    """Where CUDA may be: of several the first counts."""
    home = os.environ.get("CUDA_HOME")
    if home:
        yield Path(home)
        return
    compiler = shutil.which("nvcc")
    if compiler:
        yield Path(compiler).resolve().parents[1]
    yield Path("/usr/local/cuda")
    for folder in sys.path:
        yield from sorted(Path(folder).glob("nvidia/cu[0-9]*"))


def recorder_library(cuda: Cuda) -> Path:
    """The library that CUDA loads, compiled for ``cuda`` unless that was done before.

    Raises ``MissingError`` without a C++ compiler, and ``BadDataError`` where CUDA's headers don't fit.
    """
    compiler = next((found for found in map(shutil.which, _COMPILERS) if found), None)
    if compiler is None:
        raise MissingError("no C++ compiler was found", next_step="install g++")
    headers = next(folder / "cupti.h" for folder in cuda.include if (folder / "cupti.h").is_file())
    version = headers.with_name("cupti_version.h").read_bytes()
    mark = hashlib.sha256(_SOURCE.read_bytes() + version + str(cuda.include).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rpl-sm90"
    library = cache / f"librpl_cupti_{mark}.so"
    if library.is_file():
        return library
    make_directory(cache)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made, log = Path(scratch, library.name), Path(scratch, "log")
        words = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
        words += [f"-I{folder}" for folder in cuda.include]
        words += [str(_SOURCE), "-o", str(made), "-ldl"]
        result = run_command(ProcessRequest(tuple(words), log_path=log, what="the C++ compiler"))
        if not result.succeeded:
            lines = [line for line in log.read_text("utf-8", "replace").splitlines() if "error" in line]
            raise BadDataError(
                f"the recorder does not compile against {headers.parent}: {lines[0] if lines else 'see g++'}",
                cause="CUPTI's records changed with its version; 13.0 fits",
                next_step="pip install nvidia-cuda-cupti==13.0.* and set CUDA_HOME to its folder",
            )
        made.replace(library)
    return library


class CuptiCollector(Collector):
    """Each run leaves a file per process that used CUDA."""

    name = "cupti"
    summary = (
        "CUDA programs by CUPTI: kernels; copies, calls and events where they are asked for; counters by ncu"
    )

    def missing(self) -> str | None:
        try:
            recorder_library(find_cuda())
        except RplError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        require_program(request.command)
        if request.counters and shutil.which(_NCU) is None:
            raise MissingError(
                "ncu was not found, which reads hardware counters",
                next_step="install Nsight Compute, or leave --roofline away",
            )
        cuda = find_cuda()
        calls = "1" if request.trace_dependencies else "0"
        words = (
            "env",
            f"CUDA_INJECTION64_PATH={recorder_library(cuda)}",
            f"RPL_CUPTI_LIBRARY={cuda.library}",
            "RPL_CUPTI_FOLDER={directory}",
            f"RPL_CUPTI_CALLS={calls}",
        )
        counting = (
            PlannedPass(
                name="counters",
                role=TraceRole.COUNTERS,
                directory=_COUNTERS,
                command=(*ncu_words(request.counters, f"{{directory}}/counters{TABLE}"), *request.command),
                counters=request.counters,
                time_limit_s=request.time_limit_s,
            ),
        )
        return CollectionPlan(
            (
                *(
                    PlannedPass(
                        name=f"run_{number}",
                        role=TraceRole.TIMING,
                        directory=f"{_FOLDER}/run_{number}",
                        command=(*words, *request.command),
                        time_limit_s=request.time_limit_s,
                    )
                    for number in range(1, request.runs + 1)
                ),
                *(counting if request.counters else ()),
            )
        )

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        root = run_directory.absolute()
        folder = root / planned.directory
        make_directory(folder)
        make_directory(root / _LOGS)
        log_path = root / _LOGS / f"{planned.name}.log"
        what = f"the application (pass {planned.name})"
        counts = planned.role is TraceRole.COUNTERS
        own = len(ncu_words(planned.counters, "") if counts else _OWN_WORDS)
        words = tuple(word.replace("{directory}", str(folder)) for word in planned.command[:own])
        result = run_command(
            ProcessRequest(
                command=(*words, *planned.command[own:]),
                log_path=log_path,
                time_limit_s=planned.time_limit_s,
                what=what,
            ),
            log,
        )
        if not result.succeeded:
            raise ApplicationExitError(result, what=what, next_step=f"see {log_path}, or add --debug")
        files = sorted(folder.glob(f"*{TABLE if counts else SUFFIX}"))
        if not files:
            raise BadDataError(
                "the application left no recording",
                cause=(
                    "it launched no kernel, or this driver lets only administrators read counters"
                    if counts
                    else "it never used CUDA, or CUDA did not load the recorder (its log would say so)"
                ),
                next_step=f"see {log_path}",
            )
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in files),
            log=log_path.relative_to(root).as_posix(),
            diagnostics=process_findings(planned.name, result),
            tool_version="Nsight Compute" if counts else "CUPTI",
        )
