"""The page of ``rpl compare --html``: both sides, the answer, a row per item, both rooflines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from rpl_compare.comparison.naming import item_name
from rpl_compare.comparison.text import answer_lines, document_names
from rpl_compare.html.drawings import Forest, Runs, forest_of, forest_scale, runs_of
from rpl_core.errors import RplError
from rpl_core.text import counted, readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from rpl_compare.comparison.compare import Comparison
    from rpl_compare.contract import CompareDocument, ItemPart, OneSidedKernel, SidePart
    from rpl_core.model.recording import Recording
    from rpl_core.plugins.host import PluginHost
    from rpl_measure.side import Side

__all__ = ["compare_page"]

#: Rows of the table; the document holds all (chosen).
_SHOWN = 60
_FACTS = ("Command", "Device", "Host", "Recorded", "Runs", "Origin", "Files")


@frozen
class ItemRow:
    """Figures as fractions and ns; ``css`` is the colour of a kernel."""

    name: str
    css: str | None
    item: ItemPart
    runs: Runs | None
    forest: Forest


def compare_page(
    comparison: Comparison,
    document: CompareDocument,
    recordings: Sequence[Recording],
    host: PluginHost,
    form: str,
) -> str:
    """The whole page. ``recordings`` of BASE and NEW are analysed for their rooflines."""
    from rpl_report.html.page import load_assets, page_environment

    names = document_names((*document.kernels, *document.only_base, *document.only_new), form)
    rooflines, colours, reason = _rooflines(recordings, host, names)
    answer, *reasons = answer_lines(document)
    rows = _rows(document, names, colours)
    facts = [_facts(comparison, part, of) for part, of in zip(_parts(document), recordings, strict=True)]
    return (
        page_environment("rpl_compare.html")
        .get_template("compare.html.j2")
        .render(
            assets=load_assets(),
            document=document,
            title=_title(document),
            answer=answer,
            reasons=[readable(line.strip(), 600) for line in reasons],
            facts=tuple(zip(_FACTS, *facts, strict=True)),
            rows=rows[:_SHOWN],
            left_out=max(0, len(rows) - _SHOWN),
            longest_ns=_longest_ns(rows, document),
            one_sided=_one_sided(document, names),
            rooflines=rooflines,
            reason=reason,
        )
    )


def _parts(document: CompareDocument) -> tuple[SidePart, SidePart]:
    return document.base, document.new


def _title(document: CompareDocument) -> str:
    """Both programs, or the devices where the recordings name no program."""
    called = [
        readable(side.command[0].rpartition("/")[2], 60) if side.command else "" for side in _parts(document)
    ]
    what = called[0] if called[0] == called[1] else f"{called[0] or 'BASE'} and {called[1] or 'NEW'}"
    return f"{what or 'BASE and NEW'} compared on {readable(document.new.device or 'an unknown device', 80)}"


def _facts(comparison: Comparison, part: SidePart, recording: Recording) -> tuple[str, ...]:
    side: Side = comparison.base if part.label == "base" else comparison.new
    manifest = side.manifests[0] if side.manifests else None
    version, collector = part.collector_version or "", part.collector or ""
    tool = version if version.startswith(collector) else f"{collector} {version}"
    recorded = f"{manifest.created_utc} by {tool}" if manifest else ", ".join(part.formats)
    hosts = sorted({p.hostname for trace in recording.traces for p in trace.processes if p.hostname})
    files = list(dict.fromkeys(artefact.path for artefact in part.provenance.artefacts))
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    runs = f"{part.runs}" + (
        f", {counted(part.processes, 'process', 'processes')} each" if part.processes > 1 else ""
    )
    found = (
        shlex.join(part.command) or "not recorded",
        part.device or "not recorded",
        ", ".join(hosts) or "not recorded",
        recorded,
        runs,
        part.origin if part.origin == "measured" else f"{part.origin}: not a measurement of hardware",
        f"{', '.join(files[:3])}{more}" if files else "-",
    )
    return tuple(readable(text, 300) for text in found)


def _rows(
    document: CompareDocument, names: dict[str, str], colours: Mapping[str, str]
) -> tuple[ItemRow, ...]:
    """What decides comes first, as in the text."""
    items = sorted((*document.application, *document.kernels), key=lambda item: not item.gated)
    limit = document.gate.fail_above
    scale = forest_scale((item for item in items if item.gated), limit)
    return tuple(
        ItemRow(
            name=item_name(item.kind, item.name, names),
            css=colours.get(item.name) if item.kind == "kernel" else None,
            item=item,
            runs=runs_of(item),
            forest=forest_of(item, scale, limit),
        )
        for item in items
    )


def _longest_ns(rows: Sequence[ItemRow], document: CompareDocument) -> float:
    """The longest time that the page's tables show: it gives all of them their unit."""
    sides = [side.median_ns for row in rows for side in (row.item.base, row.item.new)]
    runs = [row.runs.last for row in rows if row.runs]
    alone = [kernel.median_ns for kernel in (*document.only_base, *document.only_new)]
    return max((ns for ns in (*sides, *runs, *alone) if ns is not None), default=0.0)


def _one_sided(
    document: CompareDocument, names: dict[str, str]
) -> tuple[tuple[str, tuple[tuple[str, OneSidedKernel], ...]], ...]:
    sides = (("BASE", document.only_base), ("NEW", document.only_new))
    return tuple(
        (side, tuple((names[k.name], k) for k in kernels[:_SHOWN])) for side, kernels in sides if kernels
    )


def _rooflines(
    recordings: Sequence[Recording], host: PluginHost, names: Mapping[str, str]
) -> tuple[tuple[Any, ...], Mapping[str, str], str | None]:
    """A view per side, the colours of kernels, or why there are none."""
    from rpl_report.html.roofline import rooflines_of

    try:
        views, colours = rooflines_of([_documents(recording, host) for recording in recordings], names)
    except RplError as error:
        return (), {}, error.one_line()
    return views, colours, None


def _documents(recording: Recording, host: PluginHost) -> Mapping[str, BaseModel]:
    from rpl_core.pipeline import AnalysisRequest, analyse

    return analyse(recording, AnalysisRequest(), host).by_name()
