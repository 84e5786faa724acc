"""Draft the documents of an analysis, put sections of plugins in, check all against their contracts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rpl_core.documents.drafts import Draft, check_draft
from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.document import DocumentKind, DocumentSection
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.schedule import MOST_INVENTED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContext
    from rpl_core.plugins.relay import Contribution

T = TypeVar("T")
_ENVELOPE = ("schema_version", "provenance", "diagnostics", "sections")


@frozen
class Drafts:
    """Drafts by name in the order of ``kinds``, files beside them, and what went wrong."""

    kinds: tuple[Contribution[DocumentKind], ...]
    drafts: Mapping[str, Mapping[str, Any]]
    attachments: Mapping[str, bytes | None]
    problems: tuple[Diagnostic, ...]


def kinds_of(contributions: Iterable[Contribution[Any]]) -> tuple[Contribution[DocumentKind], ...]:
    """The documents among what plugins offer."""
    return tuple(c for c in contributions if isinstance(c.value, DocumentKind))


def _in_order(kinds: Iterable[Contribution[DocumentKind]]) -> Sequence[Contribution[DocumentKind]]:
    """Each behind those that it comes ``after``."""
    left = list(kinds)
    ordered: list[Contribution[DocumentKind]] = []
    while left:
        waiting = {c.value.name for c in left}
        ready = [c for c in left if not waiting.intersection(c.value.after) - {c.value.name}]
        for one in ready or left[:1]:  # of a circle the first goes first
            ordered.append(one)
            left.remove(one)
    return ordered


def sections_of(contributions: Iterable[Contribution[Any]]) -> tuple[Contribution[DocumentSection], ...]:
    return tuple(c for c in contributions if isinstance(c.value, DocumentSection))


def draft_all(context: DocumentContext, contributions: Sequence[Contribution[Any]]) -> Drafts:
    """Every document and section; one that fails costs itself and is reported."""
    problems: list[Diagnostic] = []
    kinds = kinds_of(contributions)
    drafts: dict[str, Mapping[str, Any]] = {}
    attachments: dict[str, bytes | None] = {}
    for kind in _in_order(kinds):
        with_drafts = attrs.evolve(context, drafts=MappingProxyType(drafts))
        draft = _guarded(kind, "document", problems, _draft, kind.value, with_drafts)
        if draft is not None:
            drafts[kind.value.name] = draft
            beside = _guarded(kind, "document", problems, _attachments, kind.value, with_drafts)
            attachments |= beside or {}
    by_name = {kind.value.name: kind.value for kind in kinds}
    for section in sections_of(contributions):
        owner = by_name.get(section.value.document)
        if owner is None:
            problems.append(_homeless(section))
        if owner is None or owner.name not in drafts:
            continue  # it failed and was reported
        filled = _guarded(section, "section", problems, _with_section, section.value, owner, drafts, context)
        drafts[owner.name] = filled or drafts[owner.name]
    return Drafts(kinds, drafts, attachments, tuple(problems))


def _draft(kind: DocumentKind, context: DocumentContext) -> Mapping[str, Any]:
    draft: object = kind.draft(context)
    if not isinstance(draft, Mapping):
        raise TypeError(f"a mapping of fields was expected, not {type(draft).__name__}")
    return draft if isinstance(draft, Draft) else Draft(draft)


def _attachments(kind: DocumentKind, context: DocumentContext) -> Mapping[str, bytes | None]:
    beside = kind.attachments(context)
    for name, content in beside.items():
        if not isinstance(name, str) or not name or Path(name).name != name or name.endswith(".json"):
            raise ValueError(f"{name!r} is no name of a file beside the document")
        if content is not None and not isinstance(content, bytes):
            raise TypeError(f"bytes were expected for {name}, not {type(content).__name__}")
    return beside


def _with_section(
    section: DocumentSection,
    owner: DocumentKind,
    drafts: Mapping[str, Mapping[str, Any]],
    context: DocumentContext,
) -> Mapping[str, Any]:
    context = attrs.evolve(context, drafts=MappingProxyType(drafts))
    block, kernels = section.draft(context), section.kernels(context)
    if block is None and not kernels:
        return drafts[owner.name]
    draft = drafts[owner.name]
    known = {kernel["name"] for kernel in draft.get("kernels", ()) if isinstance(kernel, Mapping)}
    if len(invented := kernels.keys() - known) > MOST_INVENTED:
        raise RplError(f"it gave blocks of {len(invented)} kernels that the document {owner.name} has not")
    if section.field in _ENVELOPE or {**draft.get("sections", {}), **draft}.get(section.field) is not None:
        raise RplError(f"the document {owner.name} has its own {section.field!r}")
    blocks = {name: _plain(section, part) for name, part in kernels.items()}
    return Draft(owner.with_section(draft, section.field, _plain(section, block), blocks))


def _homeless(section: Contribution[DocumentSection]) -> Diagnostic:
    return Diagnostic(
        "document.failed",
        f"the section {section.value.name!r} of plugin {section.plugin!r} is left out: "
        f"no installed plugin offers the document {section.value.document!r}",
        severity=Severity.WARNING,
        where=f"plugin {section.plugin}",
        remedy="install the plugin that offers it, or report the name to the plugin's author",
    )


def _plain(section: DocumentSection, block: Any) -> Any:
    """A block as JSON holds it. Raises ``RplError`` for one that is not of the section's model."""
    if block is None:
        return None
    if isinstance(block, tuple):
        return tuple(_plain(section, part) for part in block)
    if not isinstance(block, section.model()):
        raise RplError(f"it gave {type(block).__name__} where {section.model().__name__} was promised")
    plain: dict[str, Any] = block.model_dump(mode="json", warnings="error")
    json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
    return plain


def check_all(
    drafts: Drafts, envelope: Mapping[str, Any]
) -> tuple[dict[str, Mapping[str, Any]], tuple[Diagnostic, ...]]:
    """Complete contents by name; a draft that breaks its contract is left out and reported."""
    problems: list[Diagnostic] = []
    contents: dict[str, Mapping[str, Any]] = {}
    for kind in drafts.kinds:
        name = kind.value.name
        if name in drafts.drafts:
            whole = {**envelope, **drafts.drafts[name]}
            content = _guarded(kind, "document", problems, _checked, kind.value, whole)
            if content is not None:
                contents[name] = content
    return contents, tuple(problems)


def _checked(kind: DocumentKind, draft: Mapping[str, Any]) -> Mapping[str, Any]:
    return check_draft(kind.shape(), draft)


def _guarded(
    offered: Contribution[Any], noun: str, problems: list[Diagnostic], work: Callable[..., T], *arguments: Any
) -> T | None:
    """``work(*arguments)``, or ``None`` and a problem that names the plugin."""
    what = f"{noun} {offered.value.name!r}"
    try:
        with plugin_boundary(offered.plugin, what):
            return work(*arguments)
    except PluginError as error:
        show_traceback(error)
        problem = error.problem
    except RplError as error:
        problem = error.one_line()
    problems.append(
        Diagnostic(
            "document.failed",
            f"the {what} of plugin {offered.plugin!r} is left out: {problem}",
            severity=Severity.ERROR,
            where=f"plugin {offered.plugin}",
            remedy="run with RPL_TRACEBACK=1 and report it to the plugin's author",
        )
    )
    return None
