"""What the scripts of this folder share: building and recording the programs, and keeping results."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rpl_core.interfaces.collector import CollectRequest
from rpl_core.model.trace import Trace
from rpl_sm90.collector import CuptiCollector
from rpl_sm90.reader import CuptiReader

HERE = Path(__file__).parent


def build(folder: Path, padding: int = 0) -> Path:
    """``programs.cu`` as a program, its kernels moved by ``padding``."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"programs-{padding}"
    if not program.exists():
        words = ["nvcc", "-O3", "-arch=sm_90", f"-DPADDING={padding}", str(HERE / "programs.cu")]
        subprocess.run([*words, "-o", program], check=True)
    return program


def run(*words: object) -> list[dict[str, Any]]:
    """The JSON lines that a program prints."""
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(folder: Path, *words: object, calls: bool = False) -> tuple[Trace, list[dict[str, Any]], float]:
    """One run through the collector: its trace, what it printed, and the wall clock of the process."""
    collector = CuptiCollector()
    request = CollectRequest(tuple(map(str, words)), runs=1, trace_dependencies=calls)
    (planned,) = collector.plan(request).passes
    outcome = collector.run(planned, folder, lambda _line: None)
    assert outcome.log is not None
    printed = [
        json.loads(line) for line in (folder / outcome.log).read_text().splitlines() if line.startswith("{")
    ]
    (path,) = (folder / name for name in outcome.files)
    (inputs,) = CuptiReader().claim([path])
    (trace,) = CuptiReader().read(inputs)
    return trace, printed, outcome.wall_s


def machine() -> dict[str, Any]:
    """Device, driver and versions; clocks are read, never set."""
    asked_for = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu"
    words = ["nvidia-smi", f"--query-gpu={asked_for}", "--format=csv,noheader"]
    asked = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    version = ["nvcc", "--version"]
    compiler = subprocess.run(version, capture_output=True, text=True, check=False).stdout
    return {
        "gpu": asked,
        "nvcc": compiler.strip().splitlines()[-1] if compiler else None,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "sources": hashlib.sha256((HERE / "programs.cu").read_bytes()).hexdigest(),
    }


class Results:
    """Lines of JSON that a later call goes on with, within the seconds of one call."""

    def __init__(self, name: str, seconds: float) -> None:
        folder = Path(os.environ.get("OUT", "."))
        self.path = folder / name
        self._until = time.monotonic() + seconds
        earlier = Path(os.environ.get("RPL_SM90_EARLIER", "")) / name
        if not self.path.exists() and os.environ.get("RPL_SM90_EARLIER") and earlier.exists():
            self.path.write_bytes(earlier.read_bytes())

    def known(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def add(self, **row: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def there_is_time(self) -> bool:
        return time.monotonic() < self._until

    def open_until_late(self) -> Iterator[int]:
        """Numbers from that of the known rows on, while there is time."""
        number = len(self.known())
        while self.there_is_time():
            yield number
            number += 1
        print(f"{self.path.name}: {number} rows; the time of this call is over", file=sys.stderr)
