"""One line: recording -> analyzers -> documents and sections. It runs what the plugins gave, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.devices import ResolvedDevice, refuse_other_family, resolve_device, with_ceilings
from rpl_core.documents import Documents, check_all, diagnostic_drafts, draft_all, provenance_doc
from rpl_core.errors import MissingError
from rpl_core.ingest import load_recording
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.interfaces.document import DocumentContext
from rpl_core.interfaces.options import CommandOption, Options
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import protect
from rpl_core.run_directory import is_run_directory, mark_complete, mark_recorded, write_analysed
from rpl_core.schedule import AnalysisResult, Step, analyze
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture, ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Agent
    from rpl_core.plugins.host import PluginHost


@frozen
class AnalysisRequest:
    """What the user asked for. ``root`` is the run directory, for paths in the provenance."""

    device: str | None = None
    options: Options = attrs.field(factory=Options)
    root: Path | None = None

    def remembered(self) -> dict[str, Any]:
        """What a manifest keeps, for later analyses of the run; it can't hold every option's value."""
        values = {name.replace("-", "_"): value for name, value in self.options.by_name().items()}
        plain = {k: v for k, v in values.items() if isinstance(v, (str, int, float, bool, type(None)))}
        return {"device": self.device, **plain}


def analyse(recording: Recording, request: AnalysisRequest, host: PluginHost) -> Documents:
    """All documents that the installed plugins make of ``recording``."""
    for trace in recording.traces:
        protect(trace)
    values = request.options.by_name()
    for option in host.catalog.options():
        if option.change_recording is not None and values.get(option.name) is not None:
            recording = option.change_recording(recording, values[option.name])
    device = find_device(request, recording.gpu_agents, host, recording.ceilings)
    if request.device is not None and device.model is not None:
        refuse_other_family(device.model, recording)
    context = AnalysisContext(
        recording=recording,
        device=device.model,
        options=request.options,
        architecture=architectures(device.model, host),
        offered=partial(host.catalog.of, device=device.model),
    )
    result = analyze(
        context, [Step(c.plugin, c.value, c.trusted) for c in host.catalog.analyzers().contributions]
    )
    return _documents(recording, device, request, result, host)


def _documents(
    recording: Recording,
    device: ResolvedDevice,
    request: AnalysisRequest,
    result: AnalysisResult,
    host: PluginHost,
) -> Documents:
    context = DocumentContext(
        recording=recording,
        device=device.model,
        device_reason=device.diagnostics[0].fact if device.diagnostics else None,
        options=request.options,
        facts=result.facts,
        providers=result.providers,
    )
    drafts = draft_all(context, host.catalog.documents().contributions)
    noticed = (*_all_diagnostics(recording, device, result, host), *drafts.problems)
    diagnostics = diagnostic_drafts(noticed)
    contributors = _contributors(recording, device, result, host)
    envelope = {
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance_doc(recording, device, contributors, request.root, result.remarks),
        "diagnostics": diagnostics,
    }
    contents, late = check_all(drafts, envelope)
    return Documents(
        [kind.value for kind in drafts.kinds],
        contents,
        diagnostics=diagnostic_drafts((*noticed, *late)) if late else diagnostics,
        attachments=drafts.attachments,
    )


def recorded_device(request: AnalysisRequest, agents: tuple[Agent, ...], host: PluginHost) -> ResolvedDevice:
    """The device as it is, without the user's ceilings; ``agents`` is empty before anything is recorded."""

    def detect(present: tuple[Agent, ...]) -> DeviceModel | None:
        answer = host.relay.detect_device(present)
        return answer.value if answer else None

    devices = host.catalog.devices()
    try:
        return resolve_device(request.device, agents, tuple(devices), detect)
    except MissingError as error:
        error.cause = error.cause or devices.refused
        raise


def find_device(
    request: AnalysisRequest,
    agents: tuple[Agent, ...],
    host: PluginHost,
    recorded: Sequence[ComputeCeiling | MemoryCeiling] = (),
) -> ResolvedDevice:
    """The device with the ceilings that were recorded, those of plugins, and the user's options applied."""
    resolved = recorded_device(request, agents, host)
    values = request.options.by_name()
    given = [o for o in host.catalog.options() if o.change_device and values.get(o.name) is not None]
    if resolved.model is None:
        return attrs.evolve(resolved, diagnostics=(*resolved.diagnostics, *_without_effect(given)))
    added = [*recorded, *(c.value for c in host.catalog.ceilings(resolved.model))]
    model = with_ceilings(resolved.model, added)
    for option in given:
        if option.change_device is not None:
            model = option.change_device(model, values[option.name])
    return attrs.evolve(resolved, model=model)


def architectures(device: DeviceModel | None, host: PluginHost) -> Callable[[str], Architecture | None]:
    """What the installed plugins know of an instruction set: the device at hand first, then other devices."""

    def known(name: str) -> Architecture | None:
        if device is not None and device.architecture_facts and device.architecture == name:
            return device.architecture_facts
        for model in host.catalog.devices():
            if model.architecture == name and model.architecture_facts is not None:
                return model.architecture_facts
        return None

    return known


def _without_effect(given: Sequence[CommandOption[Any]]) -> tuple[Diagnostic, ...]:
    names = " and ".join(f"--{option.name}" for option in given)
    told = f"{names} changed nothing: there are no ceilings without a known device"
    remedy = "name the device with --device"
    return (Diagnostic("device.override_unused", told, remedy=remedy),) if names else ()


def _all_diagnostics(
    recording: Recording, device: ResolvedDevice, result: AnalysisResult, host: PluginHost
) -> Iterable[Diagnostic]:
    yield from recording.diagnostics
    for trace in recording.traces:
        yield from trace.diagnostics
    if recording.traces:  # a timed process says nothing of a device, and needs none
        yield from device.diagnostics
    yield from result.diagnostics
    yield from host.diagnostics


def _contributors(
    recording: Recording, device: ResolvedDevice, result: AnalysisResult, host: PluginHost
) -> Sequence[str]:
    """ "name version" of the plugins whose readers, device or analyzers were used, sorted."""
    catalog = host.catalog
    used: set[Any] = set(result.providers.values())
    readers = catalog.readers()
    used |= {readers.plugin_of(t.source.reader) for t in recording.traces if t.source.reader in readers}
    if device.model is not None and device.model.name in catalog.devices():
        used.add(catalog.devices().plugin_of(device.model.name))
    return sorted(f"{r.name} {r.version or '?'}" for r in host.records if r.name in used)


def run_directory_of(paths: Sequence[Path]) -> Path | None:
    """The run directory that ``paths`` is, or ``None`` for files, folders and several runs."""
    return paths[0] if len(paths) == 1 and is_run_directory(paths[0]) else None


def analyse_paths(
    paths: Sequence[Path],
    request: AnalysisRequest,
    host: PluginHost,
    *,
    output: Callable[[], Path] | None = None,
    keep: bool = False,
    each_is_a_run: bool = False,
    ranks: bool = False,
) -> tuple[Documents, Path | None]:
    """Documents for ``paths`` and where they were written (``None``: nowhere).

    A single run directory keeps its documents inside. ``output`` gives a place that becomes another run.
    """
    readers = host.catalog.readers().contributions
    recording = load_recording(paths, readers, each_is_a_run=each_is_a_run, ranks=ranks)
    run_directory = run_directory_of(paths)
    documents = analyse(recording, attrs.evolve(request, root=run_directory), host)
    directory = output() if output is not None else run_directory
    if directory is not None:
        if run_directory is None or directory.resolve() != run_directory.resolve():
            write_analysed(directory, recording, {**request.remembered(), "ranks": ranks}, keep=keep)
        else:
            mark_recorded(directory)
        documents.write(directory)
        mark_complete(directory)
    return documents, directory
