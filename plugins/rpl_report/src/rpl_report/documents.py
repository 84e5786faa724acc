"""What the reports draw: the documents, also where some are missing, and the sections that plugins add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rpl_core.errors import MissingError, PluginError, RplError
from rpl_core.interfaces.section import (
    Block,
    Claim,
    Paragraph,
    ReportSection,
    SectionOf,
    SectionRequest,
    Table,
)
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import GpuTimePart, ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_core.plugins.host import Contribution


@frozen
class ReportDocuments:
    """What every report draws. Documents that are missing say so in their reason."""

    profile: ProfileDocument
    roofline: RooflineDocument
    dag: DagDocument
    analysis: AnalysisDocument

    def longest_ns(self) -> tuple[float | None, ...]:
        """The times of which the largest gives the report its unit."""
        runtime = self.profile.runtime_ms
        return (None if runtime is None else runtime * 1e6, self.dag.makespan_ns)

    def shown_names(self, form: str = "short") -> dict[str, str]:
        """How kernels and copies are called, by recorded name: the same in every section."""
        from rpl_analysis.text import shown_names

        symbols = {kernel.name: kernel.symbol for kernel in self.profile.kernels if kernel.symbol}
        of_graph = [forecast.name for forecast in self.dag.forecasts]
        of_graph += [step.dominant_symbol for step in self.dag.dominance if step.dominant_symbol]
        of_graph += [self.dag.dominant_symbol] if self.dag.dominant_symbol else []
        traced = [str(part["kernel"]) for part in self.profile.untimed_thread_traces if part.get("kernel")]
        of_profile = [kernel.name for kernel in self.profile.kernels]
        return shown_names((*of_profile, *of_graph, *traced), form, symbols)


def report_documents(documents: Mapping[str, Any]) -> ReportDocuments:
    """The documents by their types. Raises ``MissingError`` without profile.json, which names the kernels."""
    profile = documents.get("profile")
    if profile is None:
        raise MissingError(
            "there is no profile.json to report",
            cause="the plugin that makes it is not installed, or it failed",
            next_step="pip install rpl-analysis, then analyse the run again",
        )
    if not documents.keys() >= {"roofline", "dag", "analysis"}:
        documents = {**_absent(profile.schema_version), **documents}
    return ReportDocuments(profile, documents["roofline"], documents["dag"], documents["analysis"])


def _absent(version: str) -> Mapping[str, Any]:
    """What stands for documents that nobody made."""
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.roofline import RooflineDocument

    absent: dict[str, Any] = {"schema_version": version, "status": "unavailable"}
    return {
        "roofline": RooflineDocument.model_validate({**absent, "reason": "there is no roofline.json"}),
        "dag": DagDocument(**{**absent, "reason": "there is no dag.json"}),
        "analysis": AnalysisDocument(schema_version=version),
    }


class LazyDocuments(Mapping[str, Any]):
    """Documents by name, each read when somebody looks at it."""

    def __init__(self, names: Sequence[str], read: Callable[[str], BaseModel]) -> None:
        self._names = tuple(names)
        self._read = read
        self._models: dict[str, BaseModel] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._models:
            self._models[name] = self._read(name)
        return self._models[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def stored_document(directory: Path, name: str, contributions: Sequence[Contribution[Any]]) -> Any:
    """One document of ``directory``. Raises ``MissingError`` where it, or what knows it, is not there."""
    from rpl_analysis.documents.load import load_document
    from rpl_core.documents import kinds_of

    kind = next((kind.value for kind in kinds_of(contributions) if kind.value.name == name), None)
    if kind is None:
        raise MissingError(f"no installed plugin knows {name}.json", next_step="pip install rpl-analysis")
    return load_document(directory, kind, [contribution.value for contribution in contributions])


def stored_documents(directory: Path, contributions: Sequence[Contribution[Any]]) -> LazyDocuments:
    """The documents in ``directory`` that the installed plugins know."""
    from rpl_core.documents import kinds_of

    known = [kind.value.name for kind in kinds_of(contributions)]
    names = [name for name in known if (directory / f"{name}.json").is_file()]
    return LazyDocuments(names, lambda name: stored_document(directory, name, contributions))


def device_names(profile: ProfileDocument) -> str | None:
    """Such as "8 x PRODUCT (GPU 2 to 9)"; ``None`` where nothing names a device."""
    device = profile.gpu.product or profile.gpu.architecture or _traced_family(profile)
    gpus = profile.ranks.gpus if profile.ranks else ()
    if len(gpus) < 2:
        return device
    groups: dict[str, list[GpuTimePart]] = {}
    for gpu in gpus:
        groups.setdefault(gpu.product or gpu.architecture or device or "unknown GPU", []).append(gpu)
    left_out = profile.ranks.gpus_left_out if profile.ranks else 0
    named = [f"{len(group)} x {name} ({_numbers(group)})" for name, group in groups.items()]
    return ", ".join([*named, *([f"and {left_out} more"] if left_out else [])])


def _traced_family(profile: ProfileDocument) -> str | None:
    """What thread traces say of the GPU where nothing else does."""
    architectures = (part.get("architecture") for part in profile.untimed_thread_traces)
    family = next((name for name in architectures if name), None)
    return f"a {family} GPU" if family else None


def _numbers(gpus: Sequence[GpuTimePart]) -> str:
    machines = len({gpu.node for gpu in gpus})
    if machines > 1:
        return f"on {counted(machines, 'machine')}"
    numbers = sorted(gpu.agent for gpu in gpus if gpu.agent is not None)
    if not numbers:
        return "not numbered"
    gapless = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"GPU {numbers[0]} to {numbers[-1]}" if gapless else f"GPU {', '.join(map(str, numbers))}"


# The sections that plugins add: asked one by one, so that one that fails costs only itself.


@frozen
class AnsweredSection:
    """What a section answered: ``own`` is drawn by the plugin; with a ``problem`` there is nothing else."""

    name: str
    title: str
    own: str | None = None
    blocks: tuple[Block, ...] = ()
    problem: str | None = None


def text_sections(sections: Iterable[SectionOf], request: SectionRequest) -> Iterator[AnsweredSection]:
    """For the text report; sections that have nothing to say are left out."""
    return _answered(sections, lambda section: _html_or_blocks(section, section.text(request), request))


def html_sections(sections: Iterable[SectionOf], request: SectionRequest) -> Iterator[AnsweredSection]:
    """For the HTML report."""
    return _answered(sections, lambda section: _html_or_blocks(section, section.html(request), request))


def explained_sections(
    sections: Iterable[SectionOf], request: SectionRequest, kernel: str
) -> Iterator[AnsweredSection]:
    """For ``rpl explain``: what plugins have to say about one kernel."""
    return _answered(sections, lambda section: (None, section.explain(request, kernel)))


def claims_of(sections: Iterable[SectionOf], request: SectionRequest) -> tuple[Claim, ...]:
    """What plugins add to the verdict; one that fails adds nothing: its section says how it failed."""
    claims: list[Claim] = []
    for entry in sections:
        with suppress(RplError), plugin_boundary(entry.plugin, f"the section {entry.section.name!r}"):
            given = entry.section.claims(request)
            if not all(isinstance(claim, Claim) for claim in given):
                raise TypeError(f"claims were expected, not {given!r:.60}")
            claims += given
    return tuple(claims)


def _html_or_blocks(
    section: ReportSection, html: str | None, request: SectionRequest
) -> tuple[str | None, Any]:
    return html, section.blocks(request) if html is None else ()


def _answered(
    sections: Iterable[SectionOf], ask: Callable[[ReportSection], tuple[str | None, Any]]
) -> Iterator[AnsweredSection]:
    for entry in sections:
        section = entry.section
        try:
            with plugin_boundary(entry.plugin, f"the section {section.name!r}"):
                html, blocks = ask(section)
                # What no report can draw is refused here, so that the plugin is named.
                if html is not None and not isinstance(html, str):
                    raise TypeError(f"text or None was expected, not {type(html).__name__}")
                (html or "").encode()  # halves of surrogate pairs can't be written
                if not isinstance(blocks, (tuple, list)):
                    raise TypeError(f"a tuple of blocks was expected, not {type(blocks).__name__}")
                for block in blocks:
                    if isinstance(block, Table):
                        _check_table(block)
                    elif not isinstance(block, Paragraph) or not isinstance(block.text, str):
                        raise TypeError(f"a Paragraph of text or a Table was expected, not {block!r:.60}")
                    else:
                        block.text.encode()
        except PluginError as error:
            show_traceback(error)
            yield AnsweredSection(section.name, section.title, problem=error.fact)
        except RplError as error:
            yield AnsweredSection(
                section.name, section.title, problem=f"plugin {entry.plugin!r}: {error.one_line()}"
            )
        else:
            if html or blocks:
                yield AnsweredSection(section.name, section.title, html, tuple(blocks))


def _check_table(table: Table) -> None:
    if not table.columns or not all(isinstance(column, str) for column in table.columns):
        raise TypeError("a table needs columns with text")
    for row in table.rows:
        if len(row) != len(table.columns) or not all(isinstance(cell, str) for cell in row):
            raise TypeError(f"a row must hold {counted(len(table.columns), 'text')}, not {row!r:.60}")
        "".join(row).encode()
