"""Find out what is built where no word of the command says it: by one recorded run."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.plugins.boundary import plugin_boundary

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.model.recording import Recording
    from rpl_optimize.cli.optimize_call import Call
    from rpl_optimize.cli.optimize_request import Steps

#: Among a call's flags, since a session that goes on must not have to look again: words for a shell.
KERNELS_IN_MEMORY = "kernels_in_memory"


def with_binary(
    session: Session, call: Call, source: Path | None, command: tuple[str, ...], step: Steps
) -> Call:
    """The call with ``--binary`` where the command only starts the program, else as it is.

    Raises ``UsageError`` where several files hold the kernels that the command launches.
    """
    from rpl_optimize.hookspecs import BUILDERS
    from rpl_optimize.running.launched import find_launched, kernels_in
    from rpl_optimize.running.program_word import holds_code_objects, names_program

    systems = session.host.catalog.of(BUILDERS).contributions

    def of_plugins(path: Path) -> tuple[str, ...]:
        names: list[str] = []
        for offered in systems:
            with plugin_boundary(offered.plugin, f"kernels of a file by {offered.value.name}"):
                names += offered.value.kernels_of(path)
        return tuple(names)

    def holds(path: Path) -> bool:
        return holds_code_objects(path) or bool(of_plugins(path))

    place = Path.cwd()
    if call.settings.binary is not None or names_program(command, place, holds):
        return call
    session.output.note(
        f"no word of the command holds kernels, so it is run once to see what {command[0]} starts"
    )
    text = source.read_bytes() if source is not None and source.is_file() else None
    with tempfile.TemporaryDirectory(prefix="rpl-launched-") as folder:
        scratch = Path(folder)

        def record(words: tuple[str, ...]) -> Recording:
            return _recorded(session, call, words, scratch / "recording", step)

        launched = find_launched(
            command, place, text, scratch, record, lambda path: (*kernels_in(path), *of_plugins(path))
        )
    if launched.path is None:
        return attrs.evolve(call, flags={**call.flags, KERNELS_IN_MEMORY: shlex.join(launched.kernels)})
    session.output.note(f"binary: {launched.path} (it holds {', '.join(launched.kernels)})")
    return attrs.evolve(call, flags={**call.flags, "binary": launched.path})


def _recorded(
    session: Session, call: Call, words: tuple[str, ...], directory: Path, step: Steps
) -> Recording:
    from rpl_core.cli.command_options import analysis_request
    from rpl_core.cli.profile_command import log_sink
    from rpl_core.ingest.load import load_recording
    from rpl_core.profiling.collectors import choose_collector
    from rpl_core.profiling.record import ProfileRequest, record_application

    analysis = analysis_request(session, call.flags, None)
    name = session.setting("collector", call.settings.collector)
    request = ProfileRequest(
        command=words,
        runs=1,
        roofline=False,
        trace_dependencies=False,
        time_limit_s=session.setting("time-limit", call.settings.time_limit),
        allow_dangerous_counters=False,
        output=directory,
        runs_directory=directory.parent,
        analysis=analysis,
    )
    device = session.setting("device", call.settings.device)
    collector = choose_collector(session.host, name, analysis.options, device)
    log = log_sink(session, call.settings.debug)
    recorded = record_application(request, collector, session.host, log, step.run)
    if recorded.failure is not None:
        raise recorded.failure
    return load_recording((directory,), session.host.catalog.readers().contributions)
