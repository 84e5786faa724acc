"""The head of the page: what was profiled, how far to trust it, the first figures, where all come from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import between
from rpl_core.text.safety import readable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.documents import device_names
from rpl_report.html.figures import count, duration, factor, share

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_analysis.contracts.dag import DagDocument, DominantWorkPart
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_core.interfaces.renderer import RenderRequest
    from rpl_report.html.kernel_identity import KernelNames

_ORIGINS = {
    "synthetic": "A test or demonstration wrote this recording. Nothing here is a measurement.",
    "modelled": "Computed by an emulator or a formula, not measured on hardware.",
}
#: Programs whose own name says little (chosen).
_INTERPRETERS = ("python", "bash", "sh", "perl", "julia", "mpirun", "srun", "torchrun")
#: How the product of an architecture begins that several have (rpl_core.devices.common_model).
_SEVERAL_PRODUCTS = "one of "


@frozen
class Figure:
    """One headline figure with the sentence that says what it is."""

    label: str
    value: str
    note: str


@frozen
class Head:
    title: str
    facts: tuple[str, ...]
    origin: str | None  # set when it is not "measured"
    origin_text: str | None
    incomplete: str | None
    figures: tuple[Figure, ...]


def head_of(profile: ProfileDocument, dag: DagDocument, names: KernelNames, request: RenderRequest) -> Head:
    what = _traced_kernels(profile, names) or _application(profile, request)
    title = f"{what} on {_device(profile) or 'an unknown device'}"
    origin = profile.provenance.origin if profile.provenance else None
    return Head(
        title=readable(title, 120),
        facts=(*_of_run(request), *_run_facts(profile)),
        origin=origin if origin != "measured" else None,
        origin_text=_ORIGINS.get(origin or ""),
        incomplete=readable(profile.incomplete, 400) if profile.incomplete else None,
        figures=tuple(_figures(profile, dag, names)),
    )


def _application(profile: ProfileDocument, request: RenderRequest) -> str:
    """The program that ran; without a command the files that hold it."""
    if request.command:
        return _program(request.command)
    if request.files:
        return request.files
    artefacts = profile.provenance.artefacts if profile.provenance else ()
    names = list(dict.fromkeys(PurePath(artefact.path).name for artefact in artefacts))
    return f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}" if names else "A recording"


def _program(command: tuple[str, ...]) -> str:
    """Its name; of what an interpreter runs the script, or the option that names it."""
    first = PurePath(command[0]).name or "a program"
    if not first.startswith(_INTERPRETERS) or len(command) == 1:
        return first
    options = [word for word in command[1:3] if word in ("-m", "-c")]
    if options:
        return " ".join((first, *command[1:3]))
    script = next((word for word in command[1:] if not word.startswith("-")), None)
    return PurePath(script).name if script else first


def _of_run(request: RenderRequest) -> tuple[str, ...]:
    """The command and the time, which tell two reports of one program apart."""
    facts = [f"command: {shlex.join(request.command)}"] if request.command else []
    facts += [request.recorded] if request.recorded else []
    return tuple(readable(fact, 160) for fact in facts)


def _traced_kernels(profile: ProfileDocument, shown: KernelNames) -> str:
    """What a recording without dispatches is of, if its thread traces name their kernels."""
    names = [str(part["kernel"]) for part in profile.untimed_thread_traces if part.get("kernel")]
    if not names or profile.kernels:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Thread trace of {shown.short(names[0])}{more}"


def _device(profile: ProfileDocument) -> str | None:
    """Its product, else its family: an architecture of several products, or what a thread trace says."""
    known = device_names(profile)
    if known == profile.gpu.product and known and known.startswith(_SEVERAL_PRODUCTS):
        return f"a {profile.gpu.architecture} GPU"
    return known


def _run_facts(profile: ProfileDocument) -> list[str]:
    gpu, facts = profile.gpu, []
    if profile.range:
        facts.append(readable(f"only the work of the ranges {profile.range!r}", 160))
    if gpu.architecture:
        facts.append(readable(gpu.architecture, 160))
    if gpu.compute_units:
        facts.append(f"{gpu.compute_units} compute units")
    if gpu.clock_mhz:
        facts.append(f"{gpu.clock_mhz:.10g} MHz")
    if gpu.partition:
        facts.append(readable(gpu.partition, 160))
    if profile.launches:
        number = len(profile.kernels)
        kernels = counted(number, "kernel", shown=count(number))
        dispatches = counted(profile.launches, "dispatch", "dispatches", shown=count(profile.launches))
        facts.append(f"{dispatches} of {kernels} per run")
    if profile.stability.runs:
        runs = profile.stability.runs
        facts.append("one timing run" if runs == 1 else f"{runs} timing runs")
    return facts


def _figures(profile: ProfileDocument, dag: DagDocument, names: KernelNames) -> list[Figure]:
    figures = [_runtime(profile)]
    if dag.status == "available":
        path = dag.critical_path_ns or 0
        of_makespan = share(path / dag.makespan_ns) if dag.makespan_ns else "-"
        figures.append(Figure("Makespan", duration(dag.makespan_ns), "first begin to last end on the GPU"))
        figures.append(
            Figure("Critical path", duration(path), f"{of_makespan} of the makespan is on it as work")
        )
        domain = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
        if domain is not None and domain.makespan_ns:
            figures.append(
                Figure(
                    "GPU idle time",
                    share(domain.idle_ns / domain.makespan_ns),
                    f"{duration(domain.idle_ns)} in which nothing recorded ran",
                )
            )
        if dag.dominant_work:
            figures.append(_ceiling(dag, dag.dominant_work, names))
    return figures


def _ceiling(dag: DagDocument, work: DominantWorkPart, names: KernelNames) -> Figure:
    """What the application gains at most from the work that dominates the path."""
    least, most = work.application_ceiling, work.application_ceiling_at_most
    value = factor(least)
    if not dag.order_known:
        value = between(value, factor(most))
    elif dag.sync_info == "none":
        value = f"at most {value}"
    doubt = "; no API calls are recorded: every gap stays as it was" if dag.sync_info == "none" else ""
    if not dag.order_known:
        doubt = "; which streams waited for which is not recorded"
    note = f"the whole application, if {names.work(work.name, work.kind)} cost nothing{doubt}"
    return Figure("Speed-up ceiling", value, note)


def _runtime(profile: ProfileDocument) -> Figure:
    if profile.runtime_ms is None:
        return Figure("Kernel time", "unknown", readable(profile.runtime_reason or "", 160))
    if not profile.launches:  # a time without a GPU trace is none of kernels
        return Figure(
            "Process time", duration(profile.runtime_ms * 1e6), readable(profile.runtime_source or "", 160)
        )
    note = "sum over all dispatches"
    if profile.runtime_exactness == "estimate" and profile.runtime_range_ms:
        low, high = profile.runtime_range_ms
        note = f"estimate from counter passes: {between(duration(low * 1e6), duration(high * 1e6))}"
    elif profile.stability.cv is not None:
        note += f", mean of runs, CV {share(profile.stability.cv, 2)} ({profile.stability.classification})"
    return Figure("Kernel time", duration(profile.runtime_ms * 1e6), note)


#: Rows of each table (chosen); the documents hold all.
_ROWS_SHOWN = 200


@frozen
class ArtefactRow:
    path: str
    role: str
    format: str
    origin: str
    sha256: str


@frozen
class DiagnosticRow:
    severity: str
    code: str
    fact: str
    cause: str
    remedy: str
    where: str


@frozen
class ProvenanceView:
    facts: tuple[tuple[str, str], ...]
    artefacts: tuple[ArtefactRow, ...]
    artefacts_left_out: int
    diagnostics: tuple[DiagnosticRow, ...]
    diagnostics_left_out: int
    warnings: int


def provenance_view(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> ProvenanceView:
    provenance, diagnostics = profile.provenance, profile.diagnostics
    artefacts = provenance.artefacts if provenance else ()
    return ProvenanceView(
        facts=tuple(_provenance_facts(profile, documents)),
        artefacts=tuple(
            ArtefactRow(
                path=readable(artefact.path, 300),
                role=artefact.role,
                format=readable(artefact.format, 80),
                origin=artefact.origin,
                sha256=readable(artefact.sha256 or "not computed", 64),
            )
            for artefact in artefacts[:_ROWS_SHOWN]
        ),
        artefacts_left_out=max(0, len(artefacts) - _ROWS_SHOWN),
        diagnostics=tuple(_diagnostic(entry) for entry in diagnostics[:_ROWS_SHOWN]),
        diagnostics_left_out=max(0, len(diagnostics) - _ROWS_SHOWN),
        warnings=sum(1 for entry in diagnostics if entry.severity != "info"),
    )


def _provenance_facts(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> list[tuple[str, str]]:
    provenance = profile.provenance
    facts = [
        ("Documents", ", ".join(f"{name}.json {_version(doc)}" for name, doc in sorted(documents.items())))
    ]
    facts.append(("Time from", readable(profile.runtime_source or profile.runtime_reason or "unknown", 300)))
    if provenance is None:
        return facts
    facts.append(("Computed by", f"{provenance.tool} {provenance.tool_version or ''}".strip()))
    facts.append(("Origin", provenance.origin or "unknown"))
    device = provenance.device or "none"
    facts.append(
        ("Device model", f"{device} ({provenance.device_source})" if provenance.device_source else device)
    )
    if provenance.overrides:
        facts.append(("Overridden", ", ".join(provenance.overrides)))
    facts.append(("Plugins", ", ".join(provenance.plugins) or "none"))
    facts += [("Remark", remark) for remark in provenance.remarks]
    return [(label, readable(text, 600)) for label, text in facts]


def _version(document: BaseModel) -> str:
    return str(getattr(document, "schema_version", "?"))


def _diagnostic(entry: DiagnosticDoc) -> DiagnosticRow:
    return DiagnosticRow(
        severity=entry.severity,
        code=readable(entry.code, 80),
        fact=readable(entry.fact, 600),
        cause=readable(entry.cause or "", 600),
        remedy=readable(entry.remedy or "", 600),
        where=readable(entry.where or "", 300),
    )
