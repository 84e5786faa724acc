"""Traces of torch.profiler, and the same as plain JSON; expected values come from the JSON alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rpl_core.model.trace import Trace
from rpl_torch.reader import TorchReader

TRACES = ("bert-small", "nsfw-detection", "qwen-0.5b", "resnet-act-checkpoint", "sglang-prefilldecode")


@cache
def _plain(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


@cache
def _read(paths: tuple[Path, ...], _changed_ns: tuple[int, ...]) -> Trace:
    reader = TorchReader()
    (found,) = reader.claim(paths)
    (trace,) = reader.read(found)
    return trace


@pytest.fixture
def read() -> Callable[..., Trace]:
    """``read(path, ...)``: the trace of the one set that these files make; nobody changes it."""
    return lambda *paths: _read(paths, tuple(path.stat().st_mtime_ns for path in paths))


@pytest.fixture(params=TRACES)
def real(request, rpl_shared_data) -> tuple[Path, dict[str, Any]]:
    """A real trace: its path, and its JSON as the standard library reads it."""
    path = rpl_shared_data / "pytorch" / f"mi300-{request.param}" / "trace.json.gz"
    return path, _plain(path)


@pytest.fixture
def real_named(rpl_shared_data) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    def named(name: str) -> tuple[Path, dict[str, Any]]:
        path = rpl_shared_data / "pytorch" / f"mi300-{name}" / "trace.json.gz"
        return path, _plain(path)

    return named
