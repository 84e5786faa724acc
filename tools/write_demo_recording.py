"""Record the synthetic application of `rpl demo` with the test kit, as package data of rpl-emu.

Needed when the application, the writer of recordings or the counters that `rpl profile --roofline` asks for
have changed; `tests/cli/test_demo.py` tells. What is written holds no clock, path or name of this machine.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rpl_emu.demo.recorded import RECORDED_RUNS
from rpl_rocprofv3.collector.rocprof import REFERENCE_RUN
from rpl_testkit.rocpd_writer import write_rocpd
from rpl_testkit.rocprofv3_standin import install_standin
from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION
from rpl_testkit.synthetic_recording.recording import Collection, ProcessIdentity, record

RECORDING = Path(__file__).parent.parent / "plugins/rpl_emu/src/rpl_emu/demo/recording.tar.xz"
_PROFILE = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
_OPTIONS = ("--device", "gfx942", "--runs", "1", "--roofline", "--focus-critical", "--quiet")
_FIRST_PROCESS = 5001


def main() -> None:
    timing: dict[str, tuple[str, ...]] = {f"run_{number}": () for number in range(1, RECORDED_RUNS + 1)}
    write(RECORDING, {**timing, **counter_passes(), REFERENCE_RUN: ()})


def counter_passes() -> dict[str, tuple[str, ...]]:
    """The counters of each pass that a profile with hardware counters makes today."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name, "run")
        environment = {**os.environ, "RPL_ROCPROFV3": str(install_standin(Path(name)))}
        words = [sys.executable, "-c", _PROFILE, "profile", *_OPTIONS, "-o", str(run), "--", "true"]
        subprocess.run(words, check=True, env=environment, cwd=name)
        passes = json.loads((run / "run.json").read_text(encoding="utf-8"))["passes"]
    return {one["name"]: tuple(one["counters"]) for one in passes if one["role"] == "counters"}


def write(path: Path, passes: Mapping[str, tuple[str, ...]]) -> None:
    """Write one database per pass into a packed archive; the same bytes every time."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as name, tarfile.open(fileobj=packed, mode="w") as archive:
        for number, (pass_name, counters) in enumerate(passes.items(), _FIRST_PROCESS):
            database = Path(name, f"{pass_name}.db")
            write_pass(database, pass_name, counters, number)
            content = database.read_bytes()
            entry = tarfile.TarInfo(f"{pass_name}/run_{number}_results.db")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def write_pass(path: Path, pass_name: str, counters: tuple[str, ...], process: int) -> None:
    """What the stand-in writes for this pass, but for the ids and the command of a made-up process."""
    identity = ProcessIdentity(process, "python3 -c pass", ppid=_FIRST_PROCESS - 1)
    # As `rpl profile` asks: times, copies and calls in timing runs, times alone in one, else counters alone.
    timing, calls = not counters, not counters and pass_name != REFERENCE_RUN
    collection = Collection(kernels=timing, copies=calls, hip_api=calls, counters=counters)
    write_rocpd(path, record(DEMO_APPLICATION, identity, collection, seed=f"0/{pass_name}"), synthetic=True)


if __name__ == "__main__":
    main()
