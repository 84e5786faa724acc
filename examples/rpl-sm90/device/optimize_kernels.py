"""(3) ``rpl optimize`` from end to end on the programs of ``kernels/``.

Each session is offered one wrong candidate first. What a session accepted is measured afresh against the
original: 100 interleaved pairs of process runs that no choice has touched. A row per kernel; a later call
goes on where this one ended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from bench import HERE, Results, machine

from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_optimize.measurement.gains import gains_of, rule_for
from rpl_optimize.measurement.measure import CandidateMeasurement, MeasureTools, remeasure
from rpl_sm90.collector import CuptiCollector

#: What the row is called, program and kernel, its name as recordings show it, launches per run.
KERNELS = (
    ("transpose", "transpose", "transpose(float const*, float*, int)", 20),
    ("luminance_l2", "luminance", "luminance(float const*, float*, int)", 400),
    ("nbody", "nbody", "nbody(float const*, float*, int)", 5),
    ("luminance", "luminance", "luminance(float const*, float*, int)", 40),
)
PAIRS = 100
BUILD = "nvcc -O3 -arch=sm_90 {source} -o {output}"
_SESSION_S = 240.0


def main() -> int:
    scratch, seconds = Path(sys.argv[1]), float(sys.argv[2])
    wanted = sys.argv[3:]
    results = Results("optimize_kernels.jsonl", seconds)
    known = {row["kernel"] for row in results.known()}
    for label, name, shown, launches in KERNELS:
        if label in known or (wanted and label not in wanted) or not results.there_is_time():
            continue
        results.add(kernel=label, machine=machine(), **optimized(scratch / label, name, shown, launches))
    for row in results.known():
        print(json.dumps({key: row[key] for key in ("kernel", "exit_code", "candidates", "confirmed")}))
    return 0


def optimized(place: Path, name: str, shown: str, launches: int) -> dict[str, Any]:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(HERE / "kernels", place)
    subprocess.run([*BUILD.format(source=f"{name}.cu", output=name).split()], cwd=place, check=True)
    session = place / "session"
    words = [sys.executable, "-c", "from rpl_core.cli import main; main()", "-p", "wrong_candidate"]
    words += ["optimize", f"{name}.cu", f"./{name} {launches}", "--build", BUILD]
    words += ["--output-file", "result.bin:f32", "--rtol", "1e-5", "--atol", "1e-5"]
    words += ["--device", device(), "--collector", os.environ.get("RPL_SM90_COLLECTOR", "cupti")]
    words += [
        "--auto-approve",
        "--patience",
        "6",
        "--max-iters",
        "8",
        "--time-budget",
        str(_SESSION_S),
        "-o",
        str(session),
    ]
    words += os.environ.get("RPL_SM90_MORE", "").split()
    begin = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, file=sys.stderr)
    row: dict[str, Any] = {"exit_code": done.returncode, "wall_s": time.monotonic() - begin}
    row |= {"notes": done.stderr.splitlines()[-60:], "candidates": [], "confirmed": None}
    kept(session, place.name)
    document = session / "optimize.json"
    if document.is_file():
        told = json.loads(document.read_text())
        keys = ("number", "summary", "judgement", "pairs", "kernel_gain", "kernel_gain_interval")
        more = ("measured_gain", "predicted_gain", "placement_share", "first_kernel_gain")
        row["candidates"] = [{key: one.get(key) for key in (*keys, *more)} for one in told["candidates"]]
        if told.get("verdict") == "accepted":
            row["confirmed"] = confirmed(place, session, told, name, shown, launches)
    return row


def confirmed(
    place: Path, session: Path, told: dict[str, Any], name: str, shown: str, launches: int
) -> dict[str, Any]:
    """The accepted source, built by the user's command alone, against the original."""
    last = [one for one in told["candidates"] if one["judgement"]["verdict"] == "accepted"][-1]
    shutil.copy(session / last["source"], place / "accepted.cu")
    subprocess.run([*BUILD.format(source="accepted.cu", output="accepted").split()], cwd=place, check=True)
    tools = MeasureTools(
        CuptiCollector(), create_host(PluginSelection(), config={}), _silent, _silent, _silent
    )
    rule = rule_for(0.02, 1.0, candidates=1)
    assert rule is not None
    asked = CandidateMeasurement(
        kernel=shown,
        base=(str(place / name), str(launches)),
        new=(str(place / "accepted"), str(launches)),
        directory=place / "confirm",
        rule=rule,
        seed=20261126,
    )
    here = Path.cwd()
    os.chdir(place)
    try:
        part = remeasure(asked, tools, PAIRS)
    finally:
        os.chdir(here)
    gains = gains_of(part)
    return {
        "pairs": len(part.log_ratios),
        "gain": gains.kernel,
        "interval": gains.kernel_interval,
        "application_gain": gains.application,
        "problem": part.problem,
        "base_cv": part.base_cv,
        "base_ns": part.base_ns,
        "new_ns": part.new_ns,
    }


def device() -> str:
    return "h200" if "H200" in machine()["gpu"] else "h100"


def kept(session: Path, name: str) -> None:
    """The session's own words: its document, ledger and sources, without recordings and programs."""
    if not session.is_dir() or "OUT" not in os.environ:
        return
    with tarfile.open(Path(os.environ["OUT"]) / f"session-{name}.tar.gz", "w:gz") as archive:
        for path in sorted(session.rglob("*")):
            if (
                path.is_file()
                and path.suffix in {".json", ".jsonl", ".cu", ".log"}
                and path.stat().st_size < 1 << 21
            ):
                archive.add(path, path.relative_to(session.parent))


def _silent(_text: str) -> None:
    """No progress: the rows are the output."""


if __name__ == "__main__":
    sys.exit(main())
