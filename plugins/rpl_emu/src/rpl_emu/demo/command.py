"""``rpl demo``: the whole job, from profile to report, with nothing but what is installed."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of
from rpl_emu.demo.recorded import RECORDED_RUNS

#: Programs that were built when the wheel was made (tools/build_demo_programs.py); a checkout has none.
PROGRAMS = "programs.tar.xz"
_NEXT = """\
Nothing of it was measured on a GPU: times are modelled bounds, and say so.

Look again:       rpl report {run}; rpl explain --run {run}
The report:       {folder}/report.html
More programs:    rpl emu run -- {folder}/programs/gemm; their sources lie beside them

Now your own program
Without a GPU:    rpl profile --device gfx942-emu --roofline -- ./your_app args
On hardware:      rpl profile --device gfx942 --roofline -- ./your_app args"""


@click.command("demo")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--recorded", is_flag=True, help="The recording of a synthetic application, in any case.")
@click.option(
    "--runs",
    type=click.IntRange(1, RECORDED_RUNS),
    default=3,
    show_default=True,
    help="Timing runs of the recorded application.",
)
@click.pass_context
def demo(context: click.Context, output: Path | None, runs: int, *, recorded: bool) -> int:
    """Show rpl's whole job without a GPU, a compiler or a program of yours.

    On the emulated device a program is profiled, its dominant kernel isolated and replayed, and two
    candidates of another kernel are compared. It needs the wheels of rpl-emu and rpl-gfx942, and ROCm's
    runtime (rpl emu get-runtime). Without them, or with --recorded, a recording of a synthetic application
    is profiled.

    \b
    rpl demo -o demo
    rpl demo --recorded -o demo-run
    rpl report demo-run --format html -o demo.html
    """
    from rpl_core.errors import MissingError
    from rpl_emu.demo.recorded import profile_recording

    if not recorded:
        try:
            return _emulated(context, output)
        except MissingError as error:
            session_of(context).output.note(f"a recorded application only: {error.one_line()}")
    return profile_recording(context, output, runs)


def _emulated(context: click.Context, output: Path | None) -> int:
    """Raises MissingError before anything is written where something is not here."""
    import os
    import shlex
    import shutil
    import tempfile

    from rpl_core.run_directory import claim_path, make_empty, point_latest
    from rpl_emu.demo.steps import (
        PROGRAM,
        Steps,
        compare_candidates,
        isolate_and_replay,
        profile,
        write_report,
    )
    from rpl_emu.software_gpu import call, find_runtime, launcher_words

    session = session_of(context)
    with tempfile.TemporaryDirectory(prefix="rpl-demo-") as unpacked:
        _unpack_programs(Path(unpacked))
        _require_device()
        call(["doctor"], seconds=30)
        launcher = launcher_words(find_runtime((str(Path(unpacked, PROGRAM)),), None))
        if output is None:
            folder = claim_path(Path(session.setting("runs-directory")), ("demo",))
        else:
            make_empty(output)
            folder = output
        shutil.copytree(unpacked, folder / "programs")
    steps = Steps(5, session.output.line, {**os.environ, "RPL_REPLAY_LAUNCHER": shlex.join(launcher)})
    programs = (folder / "programs").absolute()

    profile(steps, folder, programs / PROGRAM)
    isolate_and_replay(steps, folder, programs / PROGRAM)
    with steps.step("compare two candidates of another kernel, smooth"):
        compare_candidates(steps, folder, programs)
    write_report(steps, folder / PROGRAM, folder)
    if output is None:
        point_latest(folder / PROGRAM)
    session.output.line(f"{steps.all_s:.0f} s in all.")
    session.output.line(_NEXT.format(folder=folder, run=folder / PROGRAM))
    return 0


def _unpack_programs(folder: Path) -> None:
    from importlib.resources import files

    from rpl_core.errors import MissingError
    from rpl_emu.demo.recorded import unpack

    if not (files(__package__) / PROGRAMS).is_file():
        raise MissingError(
            "this installation of rpl-emu holds no programs that were built before",
            next_step="install its wheel as make dist makes it, or in a checkout: make demo",
        )
    unpack(PROGRAMS, folder)


def _require_device() -> None:
    from rpl_core.errors import MissingError
    from rpl_emu.software_gpu import emulated_device

    try:
        emulated_device()
    except ModuleNotFoundError:
        raise MissingError(
            "the emulated device is not here", next_step="pip install 'rpl-emu[profile]'"
        ) from None
