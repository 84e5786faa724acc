"""The environment of a profiled application: the user's, without what another profiler left in it."""

from __future__ import annotations

from collections.abc import Mapping

#: Settings of rocprofv3, of the SDK and of older profilers. An inherited ROCPROF_OUTPUT_FORMAT would be
#: appended to rather than replaced, inherited counters would be counted (docs/reference/formats.md, 4.5).
_PREFIXES = ("ROCPROF_", "ROCPROFILER_", "ROCP_", "ROCTRACER_")
_NAMES = frozenset({"HSA_TOOLS_LIB", "HSA_TOOLS_REPORT_LOAD_FAILURE", "HSA_TOOLS_DISABLE_REGISTER"})
_PRELOAD = "LD_PRELOAD"
#: Libraries that rocprofv3 preloads; they are there when rpl itself runs under it.
_PRELOADED_PROFILERS = ("librocprofiler", "librocprofv3", "libroctracer")


def profiling_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """A copy of ``inherited`` without settings and preloaded libraries of profilers."""
    kept = {name: value for name, value in inherited.items() if not _is_profiler_setting(name)}
    if _PRELOAD in kept:
        libraries = _without_profilers(kept.pop(_PRELOAD))
        if libraries:
            kept[_PRELOAD] = libraries
    return kept


def _is_profiler_setting(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _without_profilers(preload: str) -> str:
    libraries = preload.replace(":", " ").split()  # ld.so(8) takes both separators
    return ":".join(
        library for library in libraries if not library.rpartition("/")[2].startswith(_PRELOADED_PROFILERS)
    )
