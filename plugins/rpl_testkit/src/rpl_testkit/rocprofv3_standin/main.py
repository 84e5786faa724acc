"""The program: command line in, passes out, exit codes as the real driver gives them."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from rpl_testkit.rocprofv3_standin import messages
from rpl_testkit.rocprofv3_standin.application.run_index import next_run_index
from rpl_testkit.rocprofv3_standin.application.scenario import ScenarioError, load_scenario
from rpl_testkit.rocprofv3_standin.emulated_rocm import emulated_rocm
from rpl_testkit.rocprofv3_standin.profile_pass import Session, profile_pass
from rpl_testkit.rocprofv3_standin.request.arguments import parse_command_line
from rpl_testkit.rocprofv3_standin.request.input_file import InputFileError
from rpl_testkit.rocprofv3_standin.request.passes import plan_passes
from rpl_testkit.rocprofv3_standin.request.pc_sampling import PcSamplingError
from rpl_testkit.rocprofv3_standin.request.replay import ReplayError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_testkit.rocprofv3_standin.emulated_rocm import EmulatedRocm
    from rpl_testkit.rocprofv3_standin.request.passes import Pass

__all__ = ["main"]


def main(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run the stand-in and return its exit code; argparse leaves by SystemExit(2)."""
    environment = dict(os.environ if environment is None else environment)
    # Ctrl-C ends the real program too; a Python traceback would betray the stand-in.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        release = emulated_rocm(environment)
        options, application = parse_command_line(arguments, release, environment)
        return _answer(options, application, release, environment)
    except (InputFileError, PcSamplingError, ReplayError) as error:
        return messages.fatal_error(str(error))
    except (RuntimeError, ScenarioError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _answer(
    options: dict[str, Any], application: list[str], release: EmulatedRocm, environment: Mapping[str, str]
) -> int:
    if options.get("version"):
        print(_version_text(release))
        return 0
    if options.get("pid"):
        return messages.fatal_error("attaching to a process is not part of rpl's stand-in")
    if options.get("list_avail"):
        from rpl_testkit.rocprofv3_standin.request.list_avail import list_available

        print(list_available())
        if not application:
            return 0
    if not application:
        return messages.fatal_error("No application provided")
    passes = plan_passes(options, release, environment)
    if options.get("echo"):
        print(f"command: {application}")
        return 0
    session = Session(
        application, release, environment, load_scenario(environment), next_run_index(environment)
    )
    return _run(passes, session)


def _run(passes: tuple[Pass, ...], session: Session) -> int:
    if len(passes) == 1:
        return profile_pass(passes[0], session)
    for one in passes:
        code = profile_pass(one, session)
        if code:
            text = f"Command '{list(session.application)}' returned non-zero exit status {code}."
            return messages.fatal_error(text)
    return 0


def _version_text(release: EmulatedRocm) -> str:
    facts = {
        "version": release.sdk,
        "git_revision": "rpl-standin (synthetic)",
        "library_arch": "x86_64-linux-gnu",
        "system_name": "Linux",
        "system_processor": "x86_64",
        "rocm_version": release.rocm,
    }
    return "\n".join(f"    {key:>16}: {value}" for key, value in facts.items())
