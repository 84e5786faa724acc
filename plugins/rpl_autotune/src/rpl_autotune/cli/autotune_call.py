"""What ``rpl autotune`` does behind its options: its space, its request, its tools and its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import ApplicationError, ExitCode, InterruptedRunError, MissingError, UsageError
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.cache import Cache
    from rpl_autotune.contracts.autotune import AutotuneDocument
    from rpl_autotune.evaluation.templates import Templates
    from rpl_autotune.interfaces.job import Timing
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.search.tuning import Tuning, TuningRequest, TuningTools
    from rpl_autotune.space.possible import Expression
    from rpl_core.cli.session import Session

_UNIT_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1000.0}
#: Where --budget says nothing (chosen): what the goal of the built-in strategy is stated for.
_BUDGET = 100
#: Where --time-limit says nothing: a hanging configuration must not hang the search.
_TIME_LIMIT_S = 600.0
_CACHE_NAME = "autotune-cache.jsonl"
#: How ROCm is told which GPUs a process may see (ROCm documentation, "GPU isolation techniques").
_DEVICE_VARIABLES = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@frozen
class AutotuneSettings:
    """What the options of one call say, by the names that click gives them; ``None``: not said."""

    space: Path | None
    cmd_template: str | None
    build: str | None
    defines: tuple[str, ...]
    build_all: bool
    code_object: str | None
    kernel: str | None
    workgroup_size: str | None
    dynamic_lds: str | None
    validate: str | None
    default: str | None
    rocprof: bool
    time_regex: str | None
    time_unit: str
    device: str | None
    collector: str | None
    runs: int | None
    time_limit: float | None
    build_time_limit: float
    budget: int | None
    time_budget: float | None
    exhaustive: bool
    strategy: str
    seed: int
    seed_fraction: float
    prune_factor: float
    confirm_rounds: int
    executor: str | None
    devices: str | None
    cluster: str | None
    recorded: Path | None
    cache: Path | None
    no_cache: bool
    export_cache: Path | None
    export_t4: Path | None
    show: Path | None
    output: Path | None
    as_json: bool


@frozen(eq=False)
class AutotuneCall:
    """The options of one ``rpl autotune``."""

    session: Session
    settings: AutotuneSettings

    @property
    def recorded(self) -> Path | None:
        return self.settings.recorded

    def space(self) -> SearchSpace:
        """The space of ``--space``, or of the recording."""
        from rpl_autotune.recorded_space import read_recorded
        from rpl_autotune.space.read import read_space, space_of

        default = _assignments(self.settings.default)
        if self.settings.space is not None:
            return read_space(self.settings.space, default)
        if self.recorded is None:
            raise UsageError("no search space is given", next_step="name one with --space FILE")
        return space_of(read_recorded(self.recorded).description(), default, str(self.recorded))

    def scratch(self) -> Path:
        """The directory of the result, made and empty."""
        from rpl_core.run_directory.manifest import claim_path, make_empty

        output = self.settings.output
        if output is None:
            return claim_path(Path(self.session.setting("runs-directory")), ("autotune",)).resolve()
        make_empty(output)
        return output.resolve()

    def request(self, space: SearchSpace, scratch: Path) -> TuningRequest:
        from rpl_autotune.interfaces.job import PluginChoice
        from rpl_autotune.search.tuning import TuningRequest

        settings = self.settings
        return TuningRequest(
            space=space,
            templates=self.templates(space),
            command_text=settings.cmd_template or f"recorded in {self.recorded}",
            build_text=settings.build,
            timing=self._timing(),
            budget=self._budget(space),
            time_budget_s=settings.time_budget,
            seed=settings.seed,
            seed_fraction=settings.seed_fraction,
            prune_factor=settings.prune_factor,
            exhaustive=settings.exhaustive,
            time_limit_s=self.session.setting("time-limit", settings.time_limit) or _TIME_LIMIT_S,
            build_time_limit_s=settings.build_time_limit,
            final_rounds=settings.confirm_rounds,
            scratch=scratch,
            working_directory=Path.cwd(),
            plugins=PluginChoice(
                modules=self.session.plugin_modules,
                disabled=self.session.disabled_plugins,
                config_file=self.session.config_file,
            ),
        )

    def templates(self, space: SearchSpace) -> Templates:
        """The commands of ``--cmd-template``, ``--build`` and ``--validate``, checked against the space."""
        from rpl_autotune.evaluation.templates import Templates, read_templates, source_digest

        settings = self.settings
        if self.recorded is not None:
            if settings.cmd_template is not None or settings.build is not None:
                raise UsageError("--recorded runs nothing, so there is no command", next_step="leave one out")
            return Templates(("recorded",))
        if settings.cmd_template is None:
            raise UsageError("no command is given", next_step='add --cmd-template "./kernel --bm {BLOCK_M}"')
        templates = read_templates(
            space, settings.cmd_template, settings.build, settings.validate, settings.defines
        )
        if not templates.build:
            return templates
        return attrs.evolve(templates, sources=source_digest(templates.build, Path.cwd()))

    def _timing(self) -> Timing:
        from rpl_autotune.evaluation.run_job import checked_pattern
        from rpl_autotune.interfaces.job import Timing

        pattern = self.settings.time_regex
        runs = self.session.setting("runs", self.settings.runs)
        if pattern is not None:
            unit_ms = _UNIT_MS[self.settings.time_unit]
            return Timing(source="printed", runs=runs, pattern=checked_pattern(pattern), unit_ms=unit_ms)
        if self.recorded is not None or not self.settings.rocprof:
            return Timing(source="wall" if self.recorded is None else "profile", runs=runs)
        device = self.session.setting("device", self.settings.device)
        collector = self.session.setting("collector", self.settings.collector)
        return Timing(source="profile", runs=runs, device=device, collector=collector)

    def _budget(self, space: SearchSpace) -> int:
        if self.settings.exhaustive:
            return len(space)
        asked = self.settings.budget
        if asked is None:
            return min(_BUDGET, max(2, (len(space) + 1) // 2))
        if asked >= len(space):
            self.session.output.note(
                f"the budget is {len(space) - 1}: the whole space is measured with --exhaustive only"
            )
        return min(asked, max(len(space) - 1, 1))

    def tools(self, space: SearchSpace) -> TuningTools:
        from rpl_autotune.hookspecs import STRATEGIES
        from rpl_autotune.search.outcome import RecordedRequest
        from rpl_autotune.search.tuning import TuningTools
        from rpl_core.plugins.boundary import plugin_boundary

        catalog, settings = self.session.host.catalog, self.settings
        strategies, executors = catalog.of(STRATEGIES), catalog.executors()
        strategy = strategies.get(settings.strategy)
        with plugin_boundary(strategies.plugin_of(strategy.name), f"strategy {strategy.name!r}"):
            missing = strategy.missing()
        if missing is not None:
            raise MissingError(missing)
        executor = executors.get(self._executor_name())
        return TuningTools(
            strategy=strategy,
            strategy_plugin=strategies.plugin_of(strategy.name),
            executor=executor,
            executor_plugin=executors.plugin_of(executor.name),
            executor_request=RecordedRequest(
                devices=_devices(settings.devices),
                device_variables=_DEVICE_VARIABLES,
                address=settings.cluster,
                resource="GPU",
                recording=None if self.recorded is None else str(self.recorded),
                space=space,
                note=self.session.output.note,
            ),
            cache=self._cache(),
            note=self.session.output.note,
        )

    def _executor_name(self) -> str:
        settings, named = self.settings, self.settings.executor
        implied = (("dask", settings.cluster), ("recorded", settings.recorded), ("local", settings.devices))
        asked = [name for name, given in implied if given is not None]
        if len({*asked, *filter(None, [named])}) > 1:
            raise UsageError(
                "--cluster, --recorded, --devices and --executor contradict each other",
                next_step="say one place to measure",
            )
        return named or (asked[0] if asked else "local")

    def _cache(self) -> Cache | None:
        from rpl_autotune.cache import Cache

        if self.recorded is not None or self.settings.no_cache:
            return None
        path = self.settings.cache or Path(self.session.setting("runs-directory")) / _CACHE_NAME
        return Cache(path, self.session.output.note)


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


# The options of ``rpl autotune`` on code objects: which file holds the code of which configuration.


def space_with_code(call: AutotuneCall, space: SearchSpace, scratch: Path) -> SearchSpace:
    """``space`` with the numbers of its code objects as features, where options name any."""
    settings = call.settings
    named = settings.code_object
    if named is None and not settings.build_all:
        _refuse_details(settings)
        return space
    from rpl_autotune.evaluation.templates import CodeRequest, code_features
    from rpl_core.pipeline import architectures

    files = _built(call, space, scratch) if named is None else _named(named, space)
    sizes = (_expression(text, space) for text in (settings.workgroup_size, settings.dynamic_lds))
    features = code_features(
        space, CodeRequest(files, settings.kernel, *sizes), architectures(None, call.session.host)
    )
    for problem in features.problems:
        call.session.output.note(problem)
    if features.unknown:
        call.session.output.note(
            f"no code object at hand for {features.unknown} of {len(space)} configurations"
        )
    return attrs.evolve(space, given_features={**space.given_features, **features.columns})


def _refuse_details(settings: AutotuneSettings) -> None:
    details = {
        "--kernel": settings.kernel,
        "--workgroup-size": settings.workgroup_size,
        "--dynamic-lds": settings.dynamic_lds,
    }
    for option, given in details.items():
        if given is not None:
            raise UsageError(
                f"{option} is about code objects, and none is named",
                next_step="add --code-object FILE, or --build-all to --build",
            )


def _expression(text: str | None, space: SearchSpace) -> Expression | None:
    from rpl_autotune.space.possible import parse_expression

    return None if text is None else parse_expression(text, frozenset(space.parameters))


def _named(template: str, space: SearchSpace) -> list[Path | None]:
    """The files that ``--code-object`` names; those that are not there count as unknown."""
    from rpl_autotune.evaluation.templates import filled_path

    paths = [filled_path(template, space, index) for index in range(len(space))]
    present = {path: path.is_file() for path in set(paths)}
    if not any(present.values()):
        raise UsageError(
            f"--code-object: there is no {paths[space.default]}",
            next_step="name a file with the code; {NAME} stands for the value of a parameter",
        )
    return [path if present[path] else None for path in paths]


def _built(call: AutotuneCall, space: SearchSpace, scratch: Path) -> list[Path | None]:
    """The programs of all configurations, each distinct one built once; the search uses the same builds."""
    from rpl_autotune.evaluation.run_job import build_variant

    templates: Templates = call.templates(space)
    if not templates.build:
        raise UsageError("--build-all has nothing to build", next_step="add --build, or leave it out")
    programs: dict[str | None, Path | None] = {}
    variants = [templates.variant(space, index) for index in range(len(space))]
    count = len({variant.build_key for variant in variants})
    with call.session.output.progress("build", total=count) as step:
        for variant in variants:
            if variant.build_key not in programs:
                step(f"{len(programs) + 1}/{count}")
                built = build_variant(variant, scratch, Path.cwd(), call.settings.build_time_limit)
                programs[variant.build_key] = built.program
    return [programs[variant.build_key] for variant in variants]


# What ``rpl autotune`` does, behind its options.


_NAME = "autotune.json"


def run_autotune(session: Session, settings: AutotuneSettings) -> int:
    """One search, or a look at a finished one."""
    if settings.show is not None:
        _print(session, _stored(session, settings.show), as_json=settings.as_json)
        return int(ExitCode.OK)

    call = AutotuneCall(session, settings)
    space = call.space()
    scratch = call.scratch()
    space = space_with_code(call, space, scratch)
    request, tools = call.request(space, scratch), call.tools(space)
    session.output.note(f"{counted(len(space), 'configuration')}; results go to {scratch}")
    document, failure = _search(session, request, tools)
    _write(session, request, document, settings)
    if failure is not None:
        raise failure
    _print(session, document, as_json=settings.as_json)
    if document.best_config is None:
        raise _nothing_runs(document)
    return int(ExitCode.OK)


def _stored(session: Session, directory: Path) -> AutotuneDocument:
    from rpl_analysis.documents.load import load_document
    from rpl_autotune.contracts.autotune import AutotuneDocument
    from rpl_autotune.contracts.kinds import AutotuneContract

    known = (c.value for c in session.host.catalog.documents().contributions)
    document = load_document(directory, AutotuneContract(), known)
    assert isinstance(document, AutotuneDocument)
    return document


def _search(
    session: Session, request: TuningRequest, tools: TuningTools
) -> tuple[AutotuneDocument, InterruptedRunError | None]:
    """The finished document; with the error of an interrupt, after which it holds what there is."""
    import attrs

    from rpl_autotune.search.outcome import autotune_document
    from rpl_autotune.search.tuning import Tuning

    with session.output.progress("autotune", total=request.budget + 1) as step:
        tuning = Tuning(request, attrs.evolve(tools, step=step))
        try:
            end, result = _measured(tuning)
        except (KeyboardInterrupt, InterruptedRunError):
            return _interrupted(tuning)
        return autotune_document(tuning, end, result), None


def _measured(tuning: Tuning) -> Any:
    from rpl_autotune.search.outcome import RecordedRequest, measure_finally, without_final
    from rpl_autotune.search.tuning import JobWorkers
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
    from rpl_autotune.search.outcome import autotune_document, without_final

    kept = f" in {tuning.tools.cache.path}" if tuning.tools.cache is not None else ""
    document = autotune_document(tuning, "interrupted", without_final(tuning, "the search was interrupted"))
    return document, InterruptedRunError(
        f"interrupted; kept{kept}: {counted(len(tuning.evaluations), 'evaluation')}",
        next_step="run the same command again: it goes on from there",
    )


def _write(
    session: Session, request: TuningRequest, document: AutotuneDocument, settings: AutotuneSettings
) -> None:
    from rpl_autotune.recorded_space import write_kernel_tuner_cache, write_t4
    from rpl_core.documents import to_json
    from rpl_core.files import write_atomic

    write_atomic(request.scratch / _NAME, to_json(document))
    if settings.export_cache is not None:
        write_kernel_tuner_cache(document, request.space, settings.export_cache)
    if settings.export_t4 is not None:
        write_t4(document, settings.export_t4)
    if document.final is not None:
        _write_report(session, request, document)


def _write_report(session: Session, request: TuningRequest, document: AutotuneDocument) -> None:
    """``report.html``: the documents of the winner's run with the section on the search."""
    from rpl_autotune.search.outcome import KEPT_RUN
    from rpl_core.files import write_atomic
    from rpl_core.interfaces.renderer import RenderRequest, SectionOf
    from rpl_core.model.value_checks import require_value
    from rpl_core.pipeline import AnalysisRequest, analyse_paths
    from rpl_core.plugins.boundary import plugin_boundary
    from rpl_core.run_directory.layout import is_run_directory

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


def _print(session: Session, document: AutotuneDocument, *, as_json: bool) -> None:
    from rpl_autotune.report import document_text
    from rpl_core.cli.output import terminal_width
    from rpl_core.documents import to_json

    session.output.raw(to_json(document) if as_json else document_text(document, terminal_width()))


def _nothing_runs(document: AutotuneDocument) -> ApplicationError | UsageError:
    reasons = [item.reason for item in document.evaluations if item.reason]
    most = max(dict.fromkeys(reasons), key=reasons.count) if reasons else "no reason is known"
    return ApplicationError(
        f"none of the {document.evaluated_configs} configurations that were tried has a time; "
        f"most often: {most}",
        next_step="run one of them by hand; see autotune.json for each",
    )
