"""The main job on a recorded synthetic application, for a look where no emulator can run."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click

from rpl_core.cli.session import session_of

#: How many timing runs `recording.tar.xz` holds.
RECORDED_RUNS: Final = 10

_INTRODUCTION: Final = """\
This is SYNTHETIC data: a stand-in for rocprofv3 writes what the profiler would write for a made-up
application on an MI300X. Everything behind it is what a real profile does. Nothing below is a measurement.
"""

_NEXT: Final = """\

Look again:      rpl report {directory}; rpl explain --run {directory}

Now your own program
On a recording:  rpl profile --device gfx942 --from DIR_OR_FILE
On hardware:     rpl profile --device gfx942 --roofline -- ./your_app args"""

# Every pass writes into a folder of its own, whose name is the name of the recorded one.
_STANDIN: Final = """\
#!/bin/sh
# Synthetic stand-in, not the profiler of ROCm: hands out a recording of the same name.
PATH=$PATH:/usr/bin:/bin
if [ "$1" = --version ]; then printf 'version: 1.1.0\\nrocm_version: 7.2.0\\n'; exit; fi
while [ $# -gt 0 ] && [ "$1" != -d ]; do shift; done
recorded=${0%/*}/${2##*/}
mkdir -p "$2" && cp "$recorded"/* "$2" && echo "synthetic recording copied to $2"
"""


def profile_recording(context: click.Context, output: Path | None, runs: int) -> int:
    """Profile, as ``rpl profile`` does it, and say how to go on. Returns the exit code.

    Needs rpl-rocprofv3 and rpl-gfx942, no GPU and no ROCm.
    """
    from rpl_core.run_directory import default_path, point_latest

    session = session_of(context)
    directory = output or default_path(Path(session.setting("runs-directory")), ("demo",))
    session.output.line(_INTRODUCTION)
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="rpl-demo-"))
        # The variable wins over PATH and configuration, so that nothing else can run in its place.
        held.enter_context(_variable("RPL_ROCPROFV3", str(_install_standin(Path(folder)))))
        application = Path(__file__).with_name("demo_application.py")
        words = ["--device", "gfx942", "--runs", str(runs), "--roofline", "--focus-critical"]
        code = _profile(context, [*words, "-o", str(directory), "--", sys.executable, str(application)])
    if output is None:
        point_latest(directory)
    session.output.line(_NEXT.format(directory=directory))
    return code


def _profile(context: click.Context, words: list[str]) -> int:
    """Run ``rpl profile`` as if a person had typed it, with all options that plugins add to it."""
    group = context.find_root()
    assert isinstance(group.command, click.Group)
    command = group.command.get_command(group, "profile")
    assert command is not None
    with command.make_context("profile", words, parent=group) as typed:
        return int(command.invoke(typed))


def unpack(archive_name: str, folder: Path) -> None:
    """The files of an archive of this package, with the rights that it gives them."""
    import tarfile
    from importlib.resources import files

    with (
        (files(__package__) / archive_name).open("rb") as stream,
        tarfile.open(fileobj=stream, mode="r:xz") as archive,
    ):
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            path = folder / member.name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.read())
            path.chmod(member.mode)


def _install_standin(folder: Path) -> Path:
    """Unpack the recording beside an executable `rocprofv3`, and return the path of that."""
    unpack("recording.tar.xz", folder)
    program = folder / "rocprofv3"
    program.write_text(_STANDIN, encoding="ascii")
    program.chmod(0o755)
    return program


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
