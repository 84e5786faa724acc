"""Install a `rocprofv3` whose runs cost next to nothing to start, for tests that need many."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rpl_testkit.rocprofv3_standin.install import install_standin

__all__ = ["ready_standin"]

_HERE = Path(__file__).parent
_START_LIMIT_S = 60.0


@contextmanager
def ready_standin(directory: Path, compiler: Path) -> Iterator[Path]:
    """A `rocprofv3` in `directory`, ready inside the context; afterwards it is the usual stand-in, slower.

    `compiler` compiles C. Runs are what the usual stand-in's are, but their processes belong to a session
    of their own: not for tests of what a killed profiler leaves behind.
    """
    usual = install_standin(directory / "usual")
    program = directory / "rocprofv3"
    # A socket's name may have 107 bytes; pytest's folders are often longer.
    with tempfile.TemporaryDirectory(prefix="rpl-ready-") as folder:
        place = Path(folder, "socket")
        words = (f'-DSOCKET="{place}"', f'-DUSUAL="{usual}"')
        subprocess.run([compiler, "-x", "c", *words, _HERE / "ready_client.c", "-o", program], check=True)
        command = [sys.executable, str(_HERE / "ready_server.py"), str(place)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
            try:
                _await(place, server)
                yield program
            finally:
                assert server.stdin is not None
                server.stdin.close()
                server.wait()


def _await(place: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while not place.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the stand-in that is kept ready did not start (exit code {server.poll()})")
        time.sleep(0.005)
