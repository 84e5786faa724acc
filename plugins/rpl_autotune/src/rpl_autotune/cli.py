"""``rpl autotune``: find launch and tile parameters with a fraction of the measurements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from rpl_autotune.options import SECONDS, SearchOptions
from rpl_core.cli.command_options import DeviceOption, option, settled, takes
from rpl_core.cli.session import Session, session_of
from rpl_core.errors import ApplicationError, ExitCode, InterruptedRunError, MissingError, UsageError
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.contracts import AutotuneDocument
    from rpl_autotune.interfaces import SearchSpace, Timing
    from rpl_autotune.space import Expression
    from rpl_autotune.templates import Templates
    from rpl_autotune.tuning import Tuning, TuningRequest, TuningTools

_FILE = click.Path(path_type=Path)
_UNIT_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1000.0}
#: Where --budget says nothing (chosen): what the goal of the built-in strategy is stated for.
_BUDGET = 100
#: Where --time-limit says nothing: a hanging configuration must not hang the search.
_TIME_LIMIT_S = 600.0
_CACHE_NAME = "autotune-cache.jsonl"
#: How ROCm is told which GPUs a process may see (ROCm documentation, "GPU isolation techniques").
_DEVICE_VARIABLES = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def _assignments(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not sign or not name.strip() for name, sign, _ in pairs):
        raise UsageError(f"--default {text!r} is not of the form A=1,B=2")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _devices(text: str | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if len(set(names)) != len(names):
        raise UsageError(f"--devices {text} names a device twice, and never two run on one")
    return names


@frozen
class ProgramOptions:
    """What is searched: a space and the commands that run one of its configurations, or a recording."""

    space: Path | None = option(
        "--space", type=_FILE, metavar="FILE", help="The search space (`rpl schema search-space`)."
    )
    recorded: Path | None = option(
        "--recorded", type=_FILE, metavar="FILE", help="Search a recorded space; nothing is run."
    )
    cmd_template: str | None = option(
        "--cmd-template", metavar="TEXT", help='The command, such as "./app --bm {BLOCK_M}".'
    )
    build: str | None = option(
        "--build", metavar="TEXT", help='A build per configuration, such as "hipcc {defines} -o {output}".'
    )
    defines: tuple[str, ...] = option(
        "-D", "--define", multiple=True, metavar="NAME", help="What {defines} stands for."
    )
    build_time_limit_s: float = option(
        "--build-time-limit", type=SECONDS, metavar="S", default=600.0, help="Seconds for one build."
    )
    validate: str | None = option(
        "--validate", metavar="TEXT", help="A command that exits 0 when a configuration is right."
    )
    default: Mapping[str, str] | None = option(
        "--default",
        metavar="A=1,B=2",
        parse=_assignments,
        help="The configuration of today, to compare with.",
    )
    build_all: bool = option(
        "--build-all", is_flag=True, help="Build all first: the model learns from their code objects."
    )
    code_object: str | None = option(
        "--code-object", metavar="FILE", help="Code of a configuration, such as k_{BLOCK_M}.hsaco."
    )
    kernel: str | None = option(
        "--kernel", metavar="NAME", help="The kernel in it that counts (default: all)."
    )
    workgroup_size: str | None = option(
        "--workgroup-size", metavar="EXPR", help="Work-items, such as BLOCK_M*BLOCK_N/4."
    )
    dynamic_lds: str | None = option("--dynamic-lds", metavar="EXPR", help="LDS bytes that the launch adds.")


@frozen
class TimingOptions(DeviceOption):
    """How the time of a configuration is taken."""

    collector: str | None = option(
        "--collector", setting="collector", metavar="NAME", help="Collector to record with."
    )
    runs: int = option(
        "--runs",
        setting="runs",
        type=click.IntRange(1),
        metavar="N",
        help="Runs of each configuration (default 3).",
    )
    time_limit_s: float = option(
        "--time-limit",
        setting="time-limit",
        type=SECONDS,
        metavar="S",
        parse=lambda seconds: seconds or _TIME_LIMIT_S,
        help="Seconds that one run may take (default 600).",
    )
    rocprof: bool = option(
        "--rocprof/--no-rocprof",
        default=True,
        help="Time kernels by the profiler, or the whole process.",
    )
    time_regex: str | None = option(
        "--time-regex", metavar="RE", help="Take the time that the program prints, in its first group."
    )
    printed_unit_ms: float = option(
        "--time-unit",
        type=click.Choice(list(_UNIT_MS)),
        default="ms",
        show_default=True,
        parse=_UNIT_MS.__getitem__,
        help="Unit of --time-regex.",
    )


@frozen
class PlaceOptions:
    """Where configurations are measured, and what is kept and written."""

    executor: str | None = option("--executor", metavar="NAME", help="Where to measure (default: local).")
    devices: tuple[str, ...] = option(
        "--devices", metavar="0,1", parse=_devices, help="GPUs of this machine, one worker each."
    )
    cluster: str | None = option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers measure.")
    cache: Path | None = option(
        "--cache", type=_FILE, metavar="FILE", help="Kept measurements (default: in the runs directory)."
    )
    no_cache: bool = option("--no-cache", is_flag=True, help="Measure everything anew.")
    export_cache: Path | None = option(
        "--export-cache", type=_FILE, metavar="FILE", help="Write a cache file of Kernel Tuner."
    )
    export_t4: Path | None = option(
        "--export-t4", type=_FILE, metavar="FILE", help="Write the evaluations as T4."
    )
    show: Path | None = option(
        "--show", type=_FILE, metavar="DIR", help="Show a finished search; nothing is run."
    )
    output: Path | None = option("-o", "--output", type=_FILE, metavar="DIR", help="Directory of the result.")
    as_json: bool = option("--json", is_flag=True, help="Print autotune.json on stdout.")
    runs_directory: Path = option(setting="runs-directory", parse=Path)


@click.command("autotune")
@takes(ProgramOptions, TimingOptions, SearchOptions, PlaceOptions)
@click.pass_context
def autotune(context: click.Context, /, **flags: Any) -> int:
    """Search the parameters of a program for the fastest configuration.

    Placeholders in the templates stand for parameters. What was measured is kept, so the same command goes on
    where an interrupted one stopped.

    \b
    rpl autotune --space space.json \\
      --cmd-template "./kernel --bm {BLOCK_M} --bn {BLOCK_N}"
    rpl autotune --space space.json --cmd-template "{program}" \\
      --build "hipcc k.hip {defines} -o {output}"
    rpl autotune --recorded convolution.json.gz --budget 100
    """
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()
    session = session_of(context)
    return AutotuneCall(
        session,
        settled(ProgramOptions, session, flags),
        settled(TimingOptions, session, flags),
        settled(SearchOptions, session, flags),
        settled(PlaceOptions, session, flags),
    ).run()


@frozen(eq=False)
class AutotuneCall:
    """One ``rpl autotune``: what its options say, and what follows from them for a space."""

    session: Session
    program: ProgramOptions
    timing: TimingOptions
    search: SearchOptions
    place: PlaceOptions

    def run(self) -> int:
        """One search, or a look at a finished one."""
        if self.place.show is not None:
            self._print(self._finished(self.place.show))
            return int(ExitCode.OK)
        space = self._space()
        scratch = self._scratch()
        space = self._with_code_features(space, scratch)
        request, tools = self._request(space, scratch), self._tools(space)
        self.session.output.note(f"{counted(len(space), 'configuration')}; results go to {scratch}")
        document, interruption = _search(self.session, request, tools)
        self._write(request, document)
        if interruption is not None:
            raise interruption
        self._print(document)
        if document.best_config is None:
            raise _nothing_runs(document)
        return int(ExitCode.OK)

    def _finished(self, directory: Path) -> AutotuneDocument:
        from rpl_analysis.documents.load import load_document
        from rpl_autotune.contracts import AutotuneDocument
        from rpl_autotune.plugin import AutotuneContract

        known = (c.value for c in self.session.host.catalog.documents().contributions)
        document = load_document(directory, AutotuneContract(), known)
        assert isinstance(document, AutotuneDocument)
        return document

    def _print(self, document: AutotuneDocument) -> None:
        from rpl_autotune.report import document_text
        from rpl_core.cli.output import terminal_width
        from rpl_core.documents import to_json

        as_json = self.place.as_json
        self.session.output.raw(to_json(document) if as_json else document_text(document, terminal_width()))

    def _space(self) -> SearchSpace:
        """The space of ``--space``, or of the recording."""
        from rpl_autotune.recorded_space import read_recorded
        from rpl_autotune.space_file import read_space, space_of

        program = self.program
        if program.space is not None:
            return read_space(program.space, program.default)
        if program.recorded is None:
            raise UsageError("no search space is given", next_step="name one with --space FILE")
        described = read_recorded(program.recorded).description()
        return space_of(described, program.default, str(program.recorded))

    def _scratch(self) -> Path:
        """The directory of the result, made and empty."""
        from rpl_core.run_directory import claim_path, make_empty

        output = self.place.output
        if output is None:
            return claim_path(self.place.runs_directory, ("autotune",)).resolve()
        make_empty(output)
        return output.resolve()

    def _request(self, space: SearchSpace, scratch: Path) -> TuningRequest:
        from rpl_autotune.interfaces import PluginChoice
        from rpl_autotune.tuning import TuningRequest

        program = self.program
        return TuningRequest(
            space=space,
            templates=self._templates(space),
            command_text=program.cmd_template or f"recorded in {program.recorded}",
            build_text=program.build,
            timing=self._timing(),
            budget=self._budget(space),
            options=self.search,
            time_limit_s=self.timing.time_limit_s,
            build_time_limit_s=program.build_time_limit_s,
            scratch=scratch,
            working_directory=Path.cwd(),
            plugins=PluginChoice(
                modules=self.session.plugin_modules,
                disabled=self.session.disabled_plugins,
                config_file=self.session.config_file,
            ),
        )

    def _templates(self, space: SearchSpace) -> Templates:
        """The commands of ``--cmd-template``, ``--build`` and ``--validate``, checked against the space."""
        from rpl_autotune.templates import Templates, read_templates, source_digest

        program = self.program
        if program.recorded is not None:
            if program.cmd_template is not None or program.build is not None:
                raise UsageError("--recorded runs nothing, so there is no command", next_step="leave one out")
            return Templates(("recorded",))
        if program.cmd_template is None:
            raise UsageError("no command is given", next_step='add --cmd-template "./kernel --bm {BLOCK_M}"')
        templates = read_templates(
            space, program.cmd_template, program.build, program.validate, program.defines
        )
        if not templates.build:
            return templates
        return attrs.evolve(templates, sources=source_digest(templates.build, Path.cwd()))

    def _timing(self) -> Timing:
        from rpl_autotune.interfaces import Timing
        from rpl_autotune.run_job import checked_pattern

        asked, pattern = self.timing, self.timing.time_regex
        if pattern is not None:
            return Timing(
                source="printed",
                runs=asked.runs,
                pattern=checked_pattern(pattern),
                unit_ms=asked.printed_unit_ms,
            )
        if self.program.recorded is not None:
            return Timing(source="profile", runs=asked.runs)
        if not asked.rocprof:
            return Timing(source="wall", runs=asked.runs)
        return Timing(source="profile", runs=asked.runs, device=asked.device, collector=asked.collector)

    def _budget(self, space: SearchSpace) -> int:
        asked = self.search.most_evaluations
        if self.search.exhaustive:
            return len(space)
        if asked is None:
            return min(_BUDGET, max(2, (len(space) + 1) // 2))
        if asked >= len(space):
            self.session.output.note(
                f"the budget is {len(space) - 1}: the whole space is measured with --exhaustive only"
            )
        return min(asked, max(len(space) - 1, 1))

    def _tools(self, space: SearchSpace) -> TuningTools:
        from rpl_autotune.hookspecs import STRATEGIES
        from rpl_autotune.recorded_space import RecordedRequest
        from rpl_autotune.run_job import Cache
        from rpl_autotune.tuning import TuningTools
        from rpl_core.plugins.boundary import plugin_boundary

        catalog, place, recorded = self.session.host.catalog, self.place, self.program.recorded
        note = self.session.output.note
        strategies, executors = catalog.of(STRATEGIES), catalog.executors()
        strategy = strategies.get(self.search.strategy)
        with plugin_boundary(strategies.plugin_of(strategy.name), f"strategy {strategy.name!r}"):
            missing = strategy.missing()
        if missing is not None:
            raise MissingError(missing)
        executor = executors.get(self._executor_name())
        cached = recorded is None and not place.no_cache
        return TuningTools(
            strategy=strategy,
            strategy_plugin=strategies.plugin_of(strategy.name),
            executor=executor,
            executor_plugin=executors.plugin_of(executor.name),
            executor_request=RecordedRequest(
                devices=place.devices,
                device_variables=_DEVICE_VARIABLES,
                address=place.cluster,
                resource="GPU",
                recording=None if recorded is None else str(recorded),
                space=space,
                note=note,
            ),
            cache=Cache(place.cache or place.runs_directory / _CACHE_NAME, note) if cached else None,
            note=note,
        )

    def _executor_name(self) -> str:
        place = self.place
        implied = {
            "dask": place.cluster is not None,
            "recorded": self.program.recorded is not None,
            "local": bool(place.devices),
        }
        asked = {name for name, given in implied.items() if given} | ({place.executor} - {None})
        if len(asked) > 1:
            raise UsageError(
                "--cluster, --recorded, --devices and --executor contradict each other",
                next_step="say one place to measure",
            )
        return next((name for name in asked if name is not None), "local")

    # The options on code objects: which file holds the code of which configuration.

    def _with_code_features(self, space: SearchSpace, scratch: Path) -> SearchSpace:
        """``space`` with the numbers of its code objects as features, where options name any."""
        program, note = self.program, self.session.output.note
        if program.code_object is None and not program.build_all:
            details = {
                "--kernel": program.kernel,
                "--workgroup-size": program.workgroup_size,
                "--dynamic-lds": program.dynamic_lds,
            }
            for words, given in details.items():
                if given is not None:
                    raise UsageError(
                        f"{words} is about code objects, and none is named",
                        next_step="add --code-object FILE, or --build-all to --build",
                    )
            return space
        from rpl_autotune.space import parse_expression
        from rpl_autotune.templates import CodeRequest, code_features
        from rpl_core.pipeline import architectures

        def expression(text: str | None) -> Expression | None:
            return None if text is None else parse_expression(text, frozenset(space.parameters))

        files = (
            self._built_programs(space, scratch)
            if program.code_object is None
            else _code_objects(program.code_object, space)
        )
        request = CodeRequest(
            files, program.kernel, expression(program.workgroup_size), expression(program.dynamic_lds)
        )
        features = code_features(space, request, architectures(None, self.session.host))
        for problem in features.problems:
            note(problem)
        if features.unknown:
            note(f"no code object at hand for {features.unknown} of {len(space)} configurations")
        return attrs.evolve(space, given_features={**space.given_features, **features.columns})

    def _built_programs(self, space: SearchSpace, scratch: Path) -> list[Path | None]:
        """The programs of all configurations, each distinct one built once; the search uses these builds."""
        from rpl_autotune.run_job import build_variant

        templates = self._templates(space)
        if not templates.build:
            raise UsageError("--build-all has nothing to build", next_step="add --build, or leave it out")
        programs: dict[str | None, Path | None] = {}
        variants = [templates.variant(space, index) for index in range(len(space))]
        count = len({variant.build_key for variant in variants})
        with self.session.output.progress("build", total=count) as step:
            for variant in variants:
                if variant.build_key not in programs:
                    step(f"{len(programs) + 1}/{count}")
                    built = build_variant(variant, scratch, Path.cwd(), self.program.build_time_limit_s)
                    programs[variant.build_key] = built.program
        return [programs[variant.build_key] for variant in variants]

    def _write(self, request: TuningRequest, document: AutotuneDocument) -> None:
        from rpl_autotune.recorded_space import write_kernel_tuner_cache, write_t4
        from rpl_core.documents import to_json
        from rpl_core.files import write_atomic

        write_atomic(request.scratch / "autotune.json", to_json(document))
        if self.place.export_cache is not None:
            write_kernel_tuner_cache(document, request.space, self.place.export_cache)
        if self.place.export_t4 is not None:
            write_t4(document, self.place.export_t4)
        if document.final is not None:
            _write_report(self.session, request, document)


def _code_objects(template: str, space: SearchSpace) -> list[Path | None]:
    """The files that ``--code-object`` names; those that are not there count as unknown."""
    from rpl_autotune.templates import filled_path

    paths = [filled_path(template, space, index) for index in range(len(space))]
    present = {path: path.is_file() for path in set(paths)}
    if not any(present.values()):
        raise UsageError(
            f"--code-object: there is no {paths[space.default]}",
            next_step="name a file with the code; {NAME} stands for the value of a parameter",
        )
    return [path if present[path] else None for path in paths]


def _search(
    session: Session, request: TuningRequest, tools: TuningTools
) -> tuple[AutotuneDocument, InterruptedRunError | None]:
    """The finished document; with the error of an interrupt, after which it holds what there is."""
    from rpl_autotune.outcome import autotune_document
    from rpl_autotune.tuning import Tuning

    with session.output.progress("autotune", total=request.budget + 1) as step:
        tuning = Tuning(request, attrs.evolve(tools, step=step))
        try:
            end, result = _measured(tuning)
        except (KeyboardInterrupt, InterruptedRunError):
            return _interrupted(tuning)
        return autotune_document(tuning, end, result), None


def _measured(tuning: Tuning) -> Any:
    from rpl_autotune.outcome import measure_finally, without_final
    from rpl_autotune.recorded_space import RecordedRequest
    from rpl_autotune.tuning import JobWorkers
    from rpl_core.interfaces.executor import Workers
    from rpl_core.plugins.boundary import plugin_boundary

    tools = tuning.tools
    what = f"executor {tools.executor.name!r}"
    with plugin_boundary(tools.executor_plugin, what):
        opened: object = tools.executor.open(tools.executor_request)
        if not isinstance(opened, Workers):
            raise TypeError(f"Workers were expected, not {type(opened).__name__}")
    with JobWorkers(opened, tools.executor_plugin, what) as workers:
        end = tuning.run(workers)
        asked = tools.executor_request
        if isinstance(asked, RecordedRequest) and asked.recording is not None:
            return end, without_final(tuning, "nothing runs in a recorded space")
        return end, measure_finally(tuning, workers)


def _interrupted(tuning: Tuning) -> tuple[AutotuneDocument, InterruptedRunError]:
    from rpl_autotune.outcome import autotune_document, without_final

    kept = f" in {tuning.tools.cache.path}" if tuning.tools.cache is not None else ""
    document = autotune_document(tuning, "interrupted", without_final(tuning, "the search was interrupted"))
    return document, InterruptedRunError(
        f"interrupted; kept{kept}: {counted(len(tuning.evaluations), 'evaluation')}",
        next_step="run the same command again: it goes on from there",
    )


def _write_report(session: Session, request: TuningRequest, document: AutotuneDocument) -> None:
    """``report.html``: the documents of the winner's run with the section on the search."""
    from rpl_autotune.outcome import KEPT_RUN
    from rpl_core.files import write_atomic
    from rpl_core.interfaces.section import RenderRequest, SectionOf
    from rpl_core.model.value_checks import require_value
    from rpl_core.pipeline import AnalysisRequest, analyse_paths
    from rpl_core.plugins.boundary import plugin_boundary
    from rpl_core.run_directory import is_run_directory

    run = request.scratch / KEPT_RUN
    renderers = session.host.catalog.renderers()
    if "html" not in renderers or not is_run_directory(run):
        why = "no plugin renders HTML (rpl-report does)" if "html" not in renderers else f"there is no {run}"
        session.output.note(f"no report.html: {why}")
        return
    analysis = AnalysisRequest(device=request.timing.device)
    documents, _ = analyse_paths((run,), analysis, session.host)
    sections = session.host.catalog.report_sections().contributions
    asked = RenderRequest(
        {**documents.by_name(), "autotune": document},
        sections=tuple(SectionOf(c.plugin, c.value) for c in sections),
        timeline_reason="see `rpl report --format html` for the timeline of this run",
    )
    with plugin_boundary(renderers.plugin_of("html"), "renderer 'html'"):
        page = require_value(renderers.get("html").render(asked), str)
    write_atomic(request.scratch / "report.html", page)
    session.output.note(f"report: {request.scratch / 'report.html'}")


def _nothing_runs(document: AutotuneDocument) -> ApplicationError | UsageError:
    reasons = [item.reason for item in document.evaluations if item.reason]
    most = max(dict.fromkeys(reasons), key=reasons.count) if reasons else "no reason is known"
    return ApplicationError(
        f"none of the {document.evaluated_configs} configurations that were tried has a time; "
        f"most often: {most}",
        next_step="run one of them by hand; see autotune.json for each",
    )
