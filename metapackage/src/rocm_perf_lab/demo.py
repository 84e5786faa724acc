"""``rpl demo``: the main job on a synthetic application, for a look without a GPU."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_core.cli.output import Output

_INTRODUCTION = """\
This is SYNTHETIC data: a stand-in for rocprofv3 writes what the profiler would write for a made-up
application on an MI300X. Everything behind it is what a real profile does. Nothing below is a measurement.
"""

_NEXT = """\

On a recording:  rpl profile --device gfx942 --from DIR_OR_FILE
On hardware:     rpl profile --device gfx942 --roofline -- ./your_app args
Look again:      rpl report {directory}; rpl explain --run {directory}"""


@click.command("demo")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Run directory (default: a new one).")
@click.option("--runs", type=int, default=3, show_default=True, help="Timing runs.")
@click.pass_context
def demo(context: click.Context, output: Path | None, runs: int) -> int:
    """Profile a synthetic application from start to end and show what comes out.

    Needs rpl-rocprofv3 and rpl-gfx942, no GPU and no ROCm.
    """
    from rpl_core.cli.profile import profile
    from rpl_core.run_directory.writer import default_path, point_latest
    from rpl_testkit.rocprofv3_standin import install_standin

    session = session_of(context)
    directory = output or default_path(Path(session.setting("runs-directory")), ("demo",))
    session.output.line(_INTRODUCTION)
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="rpl-demo-"))
        # The variable wins over PATH and configuration, so that nothing else can run in its place.
        held.enter_context(_variable("RPL_ROCPROFV3", str(install_standin(Path(folder)))))
        code: Any = context.invoke(
            profile,
            application=(sys.executable, "-c", "pass"),
            device="gfx942",
            runs=runs,
            rocprof=True,
            roofline=True,
            focus_critical=True,
            output=directory,
            recordings=(),
        )
    if output is None:
        point_latest(directory)
    _say_next(session.output, directory)
    return int(code)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable, for this process and its children, and put the old value back."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _say_next(output: Output, directory: Path) -> None:
    output.line(_NEXT.format(directory=directory))
