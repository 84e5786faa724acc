"""From the options of a call to what a session needs; and what ``--resume`` recalls of an earlier call."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from rpl_core.cli.command_options import settled
from rpl_core.errors import BadDataError, RplError, UsageError
from rpl_core.files import read_regular
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import MASK, is_masked, masked_text, masked_words
from rpl_core.values import frozen
from rpl_optimize.cli.optimize_options import OptimizeSettings
from rpl_optimize.hookspecs import BUILDERS, EQUIVALENCE_CHECKS, METRICS, PROPOSERS, TRANSFORMATIONS
from rpl_optimize.transform import MAX_SOURCE_BYTES

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.cli.session import Session
    from rpl_core.interfaces.options import Options
    from rpl_core.model.recording import Recording
    from rpl_core.plugins.host import Contribution
    from rpl_optimize.contracts import PolicyPart
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.loop.session import OptimizeRequest, Tools

# One call of ``rpl optimize``: what a session remembers of it, and what ``--resume`` takes from there.

#: Given anew with --resume; everything else is the session's own.
_OF_THIS_CALL = ("resume", "auto_approve", "step_by_step", "debug", "as_json", "time_budget")
#: A longer file is cut off and then no JSON (chosen: command lines end at a few MiB).
_MOST_BYTES = 16 << 20
_NOT_AS_WRITTEN = (
    OSError,
    RecursionError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    click.ClickException,
)


@frozen
class Call:
    """One call of a command. ``flags`` are its options by Python name."""

    words: tuple[str, ...]
    flags: Mapping[str, Any]
    proposer: str
    suffix: str
    proposer_options: Mapping[str, str] = attrs.field(factory=dict)
    command_name: str = "rpl optimize"

    def settings(self, session: Session) -> OptimizeSettings:
        """What the flags say, and where they are silent what is set."""
        return settled(OptimizeSettings, session, self.flags)

    @property
    def command(self) -> str:
        """The command's own name."""
        return self.command_name.removeprefix("rpl ")

    @property
    def plain_options(self) -> dict[str, Any]:
        """All options as the ledger holds them, those of the proposer under ``proposer.``."""
        own = {f"proposer.{name}": value for name, value in self.proposer_options.items()}
        return plain_flags({**self.flags, **own, "suffix": self.suffix})


def plain_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON values; several values of one option become one text for the ledger's reader."""

    def value(given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return shlex.join(map(str, given))
        return str(given) if isinstance(given, Path) else given

    return _without_secrets(flags, {name: value(given) for name, given in flags.items()})


def _without_secrets(flags: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """The options without secrets, unless ``--keep-command`` is among the flags."""
    if flags.get("keep_command"):
        return dict(plain)
    return {name: masked_text(given) if isinstance(given, str) else given for name, given in plain.items()}


def remembered(call: Call) -> Mapping[str, Any]:
    """What ``--resume`` needs of this call."""
    return {
        "words": list(call.words if call.flags.get("keep_command") else masked_words(call.words)),
        "flags": plain_flags(call.flags),
        "proposer": call.proposer,
        "suffix": call.suffix,
        "proposer_options": _without_secrets(call.flags, call.proposer_options),
        "directory": str(Path.cwd()),
        "command_name": call.command_name,
    }


def recalled(root: Path, call: Call, context: click.Context) -> tuple[Call, Call]:
    """The call that began the session as it was, and with what this call says anew.

    Raises ``UsageError`` for what can't be said anew, ``BadDataError`` for a damaged session.
    """
    from rpl_optimize.session_layout import REQUEST

    path = root / REQUEST
    if not path.is_file():
        raise UsageError(f"{root} holds no session", next_step="name a directory that `rpl optimize` made")
    try:
        with path.open("rb") as stream:
            begun, directory = _parsed(stream.read(_MOST_BYTES).decode(), call.flags, context)
    except _NOT_AS_WRITTEN as error:
        raise _damaged(path, error) from None
    if directory != str(Path.cwd()):
        raise UsageError(
            f"the session was started in {directory}, and its paths are relative to it",
            next_step=f"cd {shlex.quote(directory)} and resume there",
        )
    if begun.command_name != call.command_name:
        raise UsageError(
            f"the session was started by `{begun.command_name}`",
            next_step=f"{begun.command_name} --resume {shlex.quote(str(root))}",
        )
    begun = _with_secrets(begun, call.words, root)
    from click.core import ParameterSource

    given = [
        parameter.opts[0]
        for parameter in context.command.get_params(context)
        if parameter.name is not None
        and parameter.name not in _OF_THIS_CALL
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        and parameter.param_type_name == "option"
    ]
    if given:
        raise UsageError(
            f"--resume goes on with the session's own options, so {', '.join(given)} can't be given anew",
            next_step="leave it out, or start a new session",
        )
    anew = {name: call.flags[name] for name in _OF_THIS_CALL}
    if anew["time_budget"] is None:
        anew["time_budget"] = begun.flags["time_budget"]
    return begun, attrs.evolve(begun, flags={**begun.flags, **anew})


def _with_secrets(begun: Call, words: tuple[str, ...], root: Path) -> Call:
    """The call with its command as it was: where secrets were masked, the user says it again."""
    options = {**begun.flags, **begun.proposer_options}
    masked = [name for name, value in options.items() if isinstance(value, str) and MASK in value]
    if masked:
        raise UsageError(
            f"the session's {', '.join(sorted(masked))} held a secret, which was not kept",
            next_step="start a new session with --keep-command",
        )
    if not is_masked(begun.words):
        if words:
            raise UsageError(
                "--resume goes on with the session's own command", next_step="leave the rest out"
            )
        return begun
    if masked_words(words) != begun.words:
        raise UsageError(
            f"the session's command held a secret, which was not kept: {shlex.join(begun.words)}",
            next_step=f"say it again: {begun.command_name} --resume {shlex.quote(str(root))} -- COMMAND",
        )
    return attrs.evolve(begun, words=words)


def _parsed(text: str, defaults: Mapping[str, Any], context: click.Context) -> tuple[Call, str]:
    document = json.loads(text)
    flags = {**defaults, **_typed(dict(document["flags"]), context)}
    words, own = tuple(map(str, document["words"])), dict(document["proposer_options"])
    options = {str(name): str(value) for name, value in own.items()}
    names = str(document["proposer"]), str(document["suffix"])
    begun = Call(words, flags, *names, options, str(document["command_name"]))
    return begun, str(document["directory"])


def _typed(flags: dict[str, Any], context: click.Context) -> dict[str, Any]:
    """The options as the command line would have given them, checked like there."""
    known = {parameter.name: parameter for parameter in context.command.get_params(context)}
    for name, value in flags.items():
        parameter = known.get(name)
        if parameter is None or value is None:
            continue
        given = tuple(shlex.split(value)) if parameter.multiple else value
        flags[name] = parameter.type_cast_value(context, given)
    return flags


def _damaged(path: Path, error: Exception) -> BadDataError:
    said = " ".join(str(error).split()) or type(error).__name__
    return BadDataError(f"{path} can't be read: {said}", cause="it was changed or is damaged")


_HEADER_SUFFIXES = (".cuh", ".h", ".hh", ".hpp", ".hxx")
_SOURCE_SUFFIXES = (".cu", ".hip", ".cpp", ".cc", ".cxx", *_HEADER_SUFFIXES)
_TRITON = re.compile(rb"^\s*@(?:\w+\.)*triton\.(?:jit|autotune)\b", re.MULTILINE)
#: Seconds for one run of a check, where --time-limit says nothing.
_CHECK_TIME_LIMIT_S = 600.0


class Steps:
    """Progress in two sizes: the stages for everyone, each process run where it disturbs nobody."""

    def __init__(self, show: Callable[[str], None], *, every_run: bool) -> None:
        self._show = show
        self._every_run = every_run
        self._stage = ""

    def stage(self, text: str) -> None:
        self._stage = text
        self._show(text)

    def run(self, text: str) -> None:
        if self._every_run:
            self._show(f"{self._stage}: {text}")


def optimize_request(session: Session, call: Call) -> OptimizeRequest:
    """The request of a call, with what settings and the working directory say."""
    from rpl_core.cli.command_options import analysis_request, option_values
    from rpl_optimize.build.project_systems import find_source
    from rpl_optimize.equivalence.outputs import read_outputs
    from rpl_optimize.interfaces.builder import BuildRequest
    from rpl_optimize.interfaces.equivalence import EquivalenceOptions
    from rpl_optimize.loop.session import Limits, OptimizeRequest

    given = call.settings(session)
    read_outputs(given.outputs)  # a wrong one must not wait for the first candidate
    source, command = split_source(call, given.source)
    located = find_source(
        command, source=source, compile_database=given.compile_database, binary=given.binary
    )
    session.output.note(f"source: {located.path} ({located.how})")
    path = located.path.resolve()
    plugin_values = option_values(session, call.command, call.flags)
    return OptimizeRequest(
        command=command,
        keep_command=given.keep_command,
        source=path,
        build=BuildRequest(
            command=command,
            source=path,
            place=Path.cwd(),
            build_command=given.build_command,
            compile_database=given.compile_database,
            project=given.project,
            binary=given.binary,
            kernels_in_memory=tuple(shlex.split(call.flags.get(KERNELS_IN_MEMORY) or "")),
            link_flags=_link_flags(given.link_flags),
            architecture=_architecture(session, given),
            time_limit_s=given.build_time_limit,
            options=plugin_values,
        ),
        equivalence=EquivalenceOptions(
            validate=given.validate,
            outputs=given.outputs,
            relative=given.rtol,
            absolute=given.atol,
            time_limit_s=given.time_limit or _CHECK_TIME_LIMIT_S,
            plugins=plugin_values,
        ),
        policy=_policy(given),
        limits=Limits(given.min_improvement, given.max_iters, given.patience, given.time_budget),
        analysis=analysis_request(session, call.flags, None),
        kernel=given.kernel,
        suffix=call.suffix,
        command_name=call.command_name,
        in_place=given.in_place,
        runs=given.runs,
        roofline=given.roofline,
        trace_dependencies=given.focus_critical,
        time_limit_s=given.time_limit,
        proposer_options=call.proposer_options,
    )


def _link_flags(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(f"--link-flags can't be split into words: {error}") from None


def split_source(call: Call, source: Path | None) -> tuple[Path | None, tuple[str, ...]]:
    """The source, if one is named, and the command: a first word that names a source file is the source.

    ``source`` is what ``--source`` says.
    """
    from rpl_core.process import application_command

    words = call.words
    if not words:
        raise UsageError("no application given", next_step='`rpl optimize kernel.hip "./app 100"`')
    if source is None and (Path(words[0]).suffix in _SOURCE_SUFFIXES or _is_triton(Path(words[0]))):
        source, words = Path(words[0]), words[1:]
        if not words:
            raise UsageError(
                f"{source} is a source, and no command to measure is given",
                next_step='`rpl optimize kernel.hip "./app 100"`',
            )
    if source is not None and _is_triton(source):
        raise UsageError(
            f"{source} is a source of Triton, which is out of reach: Triton itself compiles its kernels",
            next_step="tune it with Triton's own autotuner; `rpl profile` and `rpl explain` read its kernels",
        )
    return source, application_command(words)


def _is_triton(path: Path) -> bool:
    try:
        return path.suffix == ".py" and _TRITON.search(read_regular(path, MAX_SOURCE_BYTES)) is not None
    except RplError:
        return False


def chosen_metric(session: Session, given: OptimizeSettings) -> Contribution[Metric] | None:
    """The model that candidates are compared by, if they are not measured.

    Raises ``UsageError`` for measurements on a device that has none, and for what a model can't decide.
    """
    offered = session.host.catalog.of(METRICS)
    device = given.device
    if given.metric is None:
        models = [
            contribution.value.name
            for contribution in offered.contributions
            if device in contribution.value.devices
        ]
        if models:
            raise UsageError(
                f"nothing can be measured on {device}, so no candidate could be proven faster there",
                next_step=f"compare them by a model, which accepts none: --metric {models[0]}",
            )
        return None
    metric = offered.get(given.metric)  # says which there are
    if device not in metric.devices:
        raise UsageError(
            f"--metric {metric.name} is of {metric.devices[0]}, not of {device or 'the GPU that is found'}",
            next_step=f"--device {metric.devices[0]}",
        )
    for option, said in (("--in-place", given.in_place), ("--placement-check", given.placement_check),
                         ("--allow-unverified", given.allow_unverified)):  # fmt: skip
        if said:
            raise UsageError(
                f"{option} is about what is measured and accepted, and a model accepts nothing",
                next_step=f"leave {option} out; the best source is kept in the session's directory (-o)",
            )
    return next(
        contribution for contribution in offered.contributions if contribution.value.name == metric.name
    )


def _architecture(session: Session, given: OptimizeSettings) -> str | None:
    """What to compile for, where the device is named."""
    name = given.device
    if name is None:
        return None
    if (metric := chosen_metric(session, given)) is not None:
        return metric.value.architecture
    from rpl_core.devices import resolve_device

    devices = tuple(session.host.catalog.devices())
    model = resolve_device(name, (), devices, lambda _agents: None).model
    return None if model is None else model.architecture


def _policy(given: OptimizeSettings) -> PolicyPart:
    from rpl_measure.side import SYNTHETIC_VARIABLE
    from rpl_optimize.contracts import PolicyPart

    return PolicyPart(
        allow_unverified=given.allow_unverified,
        allow_occupancy_loss=given.allow_occupancy_loss,
        allow_synthetic=os.environ.get(SYNTHETIC_VARIABLE) == "1",
        force_noisy=given.force,
        traffic_gate=given.traffic_gate,
        placement_check=given.placement_check,
        metric=given.metric,
    )


def optimize_tools(session: Session, call: Call, request: OptimizeRequest, step: Steps) -> Tools:
    """The plugins and sinks that a session works with; ``MissingError`` for those that are not there."""
    from rpl_core.cli.profile import log_sink
    from rpl_core.profiling import choose_collector
    from rpl_optimize.build.builders import choose_builder
    from rpl_optimize.equivalence.stage import EquivalenceStage
    from rpl_optimize.loop.session import Tools
    from rpl_optimize.transform import installed

    catalog = session.host.catalog
    builder = choose_builder(request.build, catalog.of(BUILDERS).contributions, session.output.note)
    builder = attrs.evolve(builder, keep_command=request.keep_command)
    catalog.of(PROPOSERS).get(call.proposer)  # says which there are
    given = call.settings(session)
    metric = chosen_metric(session, given)
    proposer = next(c for c in catalog.of(PROPOSERS).contributions if c.value.name == call.proposer)
    return Tools(
        host=session.host,
        collector=choose_collector(
            session.host,
            given.collector,
            request.analysis.options,
            given.device,
        ),
        builder=builder,
        proposer=proposer,
        equivalence=EquivalenceStage(
            catalog.of(EQUIVALENCE_CHECKS),
            installed(catalog.of(TRANSFORMATIONS)),
            builder,
            request.equivalence,
            _runner(metric, request.equivalence.plugins),
        ),
        approve=approval(session.output, automatic=given.auto_approve),
        note=session.output.note,
        log=log_sink(session, given.debug),
        step=step.stage,
        run_step=step.run,
        metric=metric,
    )


def _runner(
    metric: Contribution[Metric] | None, options: Options
) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """What makes of a command the words that run it on the session's device."""
    if metric is None:
        return lambda words: words

    def run_by_model(words: tuple[str, ...]) -> tuple[str, ...]:
        with plugin_boundary(metric.plugin, f"metric {metric.value.name!r}"):
            return tuple(require_value(word, str) for word in metric.value.command(words, options))

    return run_by_model


def approval(output: Output, *, automatic: bool) -> Callable[[str, str], bool]:
    """Asks whether a proven change is accepted, unless ``automatic`` says so."""

    def ask(diff: str, evidence: str) -> bool:
        if automatic:
            return True

        output.note(diff)
        output.note(evidence)
        try:
            return click.confirm("accept this change?", err=True)
        except click.Abort:  # Ctrl-C or the end of the input: no answer, so the question stays open
            raise KeyboardInterrupt from None

    return ask


# Find out what is built where no word of the command says it: by one recorded run.

#: Among a call's flags, since a session that goes on must not have to look again: words for a shell.
KERNELS_IN_MEMORY = "kernels_in_memory"


def with_binary(
    session: Session, call: Call, source: Path | None, command: tuple[str, ...], step: Steps
) -> Call:
    """The call with ``--binary`` where the command only starts the program, else as it is.

    Raises ``UsageError`` where several files hold the kernels that the command launches.
    """
    from rpl_optimize.running.program_word import find_launched, holds_code_objects, kernels_in, names_program

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
    if call.settings(session).binary is not None or names_program(command, place, holds):
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
    from rpl_core.cli.profile import log_sink
    from rpl_core.ingest import load_recording
    from rpl_core.profiling import ProfileRequest, choose_collector, record_application

    analysis = analysis_request(session, call.flags, None)
    given = call.settings(session)
    request = ProfileRequest(
        command=words,
        runs=1,
        roofline=False,
        trace_dependencies=False,
        time_limit_s=given.time_limit,
        allow_dangerous_counters=False,
        output=directory,
        runs_directory=directory.parent,
        analysis=analysis,
    )
    collector = choose_collector(session.host, given.collector, analysis.options, given.device)
    log = log_sink(session, given.debug)
    recorded = record_application(request, collector, session.host, log, step.run)
    if recorded.failure is not None:
        raise recorded.failure
    return load_recording((directory,), session.host.catalog.readers().contributions)
