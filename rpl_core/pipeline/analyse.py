"""Analyse a recording with everything that is installed and translate the facts into documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.documents.analysis import analysis_document
from rpl_analysis.documents.dag import dag_document
from rpl_analysis.documents.profile import ProfileFacts, checked_thread_traces, profile_document
from rpl_analysis.documents.roofline import roofline_document, roofline_parts
from rpl_codeobject.code_sources import CodeSources, kernel_code
from rpl_core.devices.overrides import with_overrides
from rpl_core.devices.resolve import ResolvedDevice, resolve_device
from rpl_core.documents.bundle import Documents
from rpl_core.documents.diagnostics import diagnostic_drafts
from rpl_core.documents.provenance import provenance_doc
from rpl_core.interfaces.analyzer import AnalysisOptions
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.pipeline.extensions import extensions
from rpl_core.schedule.execute import AnalysisResult, analyze
from rpl_core.schedule.order import Step

if TYPE_CHECKING:
    from rpl_core.contracts.common import DiagnosticDoc, ProvenanceDoc
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Agent
    from rpl_core.plugins.host import PluginHost


@attrs.frozen
class AnalysisRequest:
    """What the user asked for. ``root`` is the run directory, for paths in the provenance."""

    device: str | None = None
    clock_mhz: float | None = None
    memory_bandwidth_gbps: float | None = None
    options: AnalysisOptions = attrs.field(factory=AnalysisOptions)
    code: CodeSources = attrs.field(factory=CodeSources)
    root: Path | None = None


def recorded_device(request: AnalysisRequest, agents: tuple[Agent, ...], host: PluginHost) -> ResolvedDevice:
    """The device as it is, without the user's ceilings; ``agents`` is empty before anything is recorded."""

    def detect(found: tuple[Agent, ...]) -> DeviceModel | None:
        answer = host.relay.detect_device(found)
        return answer.value if answer else None

    return resolve_device(request.device, agents, tuple(host.catalog.devices()), detect)


def find_device(request: AnalysisRequest, agents: tuple[Agent, ...], host: PluginHost) -> ResolvedDevice:
    """The device of the recording with the user's overrides applied."""
    resolved = recorded_device(request, agents, host)
    if resolved.model is None:
        unused = _unused_overrides(request)
        return attrs.evolve(resolved, diagnostics=(*resolved.diagnostics, *unused))
    model = with_overrides(
        resolved.model,
        clock_mhz=request.clock_mhz,
        memory_bandwidth_gbps=request.memory_bandwidth_gbps,
    )
    return attrs.evolve(resolved, model=model)


def _unused_overrides(request: AnalysisRequest) -> tuple[Diagnostic, ...]:
    given = {
        "--clock-mhz": request.clock_mhz,
        "--memory-bandwidth-gbps": request.memory_bandwidth_gbps,
    }
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return ()
    return (
        Diagnostic(
            "device.override_unused",
            f"{' and '.join(names)} changed nothing: there are no ceilings without a known device",
            remedy="name the device with --device",
        ),
    )


def analyse(recording: Recording, request: AnalysisRequest, host: PluginHost) -> Documents:
    """All four documents for ``recording``."""
    device = find_device(request, recording.gpu_agents, host)
    steps = [Step(c.plugin, c.value) for c in host.catalog.analyzers().contributions]
    # Without a plugin that analyses thread traces, there are none.
    code, code_findings = kernel_code(request.code, recording)
    rules = tuple(host.catalog.rules(device.model))
    given = {"classifier_rules": rules, "kernel_code": code, "att": {}}
    result = analyze(recording, device.model, request.options, steps, given)
    extended, problems = extensions(result)
    diagnostics = diagnostic_drafts(
        (*_all_diagnostics(recording, device, result, host), *code_findings, *problems)
    )
    provenance = provenance_doc(
        recording, device, _contributors(recording, device, result, host), request.root
    )
    return _documents(recording, device, result, extended, provenance, diagnostics)


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
) -> Iterable[str]:
    """ "name version" of the plugins whose readers, device or analyzers were used, sorted."""
    catalog = host.catalog
    used = set(result.providers.values())
    readers = catalog.readers()
    used |= {readers.plugin_of(t.source.reader) for t in recording.traces if t.source.reader in readers}
    if device.model is not None and device.model.name in catalog.devices():
        used.add(catalog.devices().plugin_of(device.model.name))
    return sorted(f"{r.name} {r.version or '?'}" for r in host.records if r.name in used)


def _documents(
    recording: Recording,
    device: ResolvedDevice,
    result: AnalysisResult,
    extended: Mapping[str, Any],
    provenance: ProvenanceDoc,
    diagnostics: tuple[DiagnosticDoc, ...],
) -> Documents:
    facts = result.facts
    times = facts.get("kernel_times") or {}
    graph = facts.get("execution_graph")
    dag = dag_document(graph, provenance=provenance, diagnostics=diagnostics)
    roofline = facts.get("roofline")
    parts = roofline_parts(roofline)
    classifications = facts.get("bottlenecks") or {}
    profile = profile_document(
        ProfileFacts(
            times=times,
            application=facts.get("application_time"),
            occupancy=facts.get("occupancy") or {},
            rooflines=parts,
            dag=dag,
            classifications=classifications,
            thread_traces=checked_thread_traces(facts.get("att") or {}),
            device=device.model,
            device_reason=device.diagnostics[0].fact if device.diagnostics else None,
            wave_size=_wave_size(recording, device),
            incomplete=recording.incomplete,
        ),
        provenance=provenance,
        diagnostics=diagnostics,
    )
    analysis = analysis_document(
        times,
        classifications,
        parts,
        {symbol.name: symbol.criticality_weight for symbol in dag.symbols},
        provenance=provenance,
        diagnostics=diagnostics,
        extensions=extended,
    )
    drafts = {
        "profile": profile,
        "roofline": roofline_document(roofline, provenance=provenance, diagnostics=diagnostics),
        "dag": dag,
        "analysis": analysis,
    }
    return Documents.drafted(drafts, graph.columns if graph is not None else None)


def _wave_size(recording: Recording, device: ResolvedDevice) -> int | None:
    if device.model is not None:
        return device.model.wave_size
    sizes = {agent.wave_size for agent in recording.gpu_agents}
    return sizes.pop() if len(sizes) == 1 else None
