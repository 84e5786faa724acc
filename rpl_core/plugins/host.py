"""The plugin host: all candidates with their fate, and the loaded ones ready to be asked."""

from __future__ import annotations

import sys
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs
import pluggy

from rpl_core import hookspecs
from rpl_core.errors import MissingError, PluginError
from rpl_core.interfaces.options import SettingKind
from rpl_core.markers import PROJECT
from rpl_core.plugins.boundary import one_line, plugin_boundary
from rpl_core.plugins.catalog import Catalog
from rpl_core.plugins.discovery import (
    Candidate,
    DiagnosticLog,
    PluginOrigin,
    PluginRecord,
    PluginStatus,
    conflicts,
    discover,
)
from rpl_core.plugins.kinds import KINDS, OPTIONS, ContributionKind
from rpl_core.plugins.loader import STATED, NotLoaded, implemented_hooks, load, register
from rpl_core.plugins.relay import HookRelay
from rpl_core.plugins.trial import why_unusable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from pluggy import HookImpl, PluginManager, Result

    from rpl_core.interfaces.options import PluginSetting
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.plugins.entry_points import InstalledEntry
    from rpl_core.plugins.selection import PluginSelection

_SHOWN_ITEMS = 8  # of a traced answer


class PluginHost:
    """What is installed (``records``), and what it offers (``relay``, ``catalog``).

    ``settings`` are those that the loaded plugins state in ``RPL_SETTINGS``.
    """

    def __init__(
        self,
        records: tuple[PluginRecord, ...],
        relay: HookRelay,
        log: DiagnosticLog,
        requested_failures: tuple[PluginError, ...] = (),
        settings: tuple[PluginSetting, ...] = (),
    ) -> None:
        self.records = records
        self.settings = settings
        self.relay = relay
        self.catalog = Catalog(relay, log)
        self._log = log
        self._requested_failures = requested_failures

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that went wrong with plugins so far, in the order it was noticed."""
        return self._log.entries

    def record(self, name: str) -> tuple[PluginRecord, ...]:
        """All records called ``name`` (several in a conflict); ``MissingError`` when there is none."""
        found = tuple(record for record in self.records if record.name == name)
        if not found:
            known = ", ".join(dict.fromkeys(record.name for record in self.records))
            raise MissingError(
                f"no plugin named {name!r}; known: {known}", next_step="see `rpl plugins list`"
            )
        return found

    def require_requested(self) -> None:
        """Raise ``PluginError`` when a plugin named with ``-p`` did not load or take its settings."""
        if self._requested_failures:
            raise self._requested_failures[0]


def create_host(
    selection: PluginSelection,
    *,
    config: Mapping[str, Any],
    doubtful: Mapping[str, Any] = MappingProxyType({}),
) -> PluginHost:
    """Find, load and register plugins, then hand them ``config``. Never raises because of a plugin.

    ``doubtful`` settings join it as far as plugins say of them that they name nothing that is run or asked.
    """
    log = DiagnosticLog()
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    if selection.trace:
        trace_hook_calls(manager)
    installed = discover(selection.modules)
    for problem in installed.problems:
        log.warn("plugin.metadata", problem, where="installed packages")
    _report_unknown_names(selection, installed.candidates, log)
    wanted = [spec for spec in installed.specs if selection.allows(spec.distribution)]
    owned = [_add_owned_specs(manager, spec, log) for spec in wanted]
    records = _settle_all(selection, installed.candidates, manager)
    for record in records:
        _report(record, log)
    requested = frozenset(r.name for r in records if r.origin is PluginOrigin.DEVELOPMENT)
    kinds = (*KINDS, *(kind for kinds in owned for kind in kinds))
    settled = zip(installed.candidates, records, strict=True)
    trusted = frozenset(c.name for c, r in settled if c.is_trusted and r.status is PluginStatus.LOADED)
    loaded = {name: module for name, module in manager.list_name_plugin() if module is not None}
    settings = tuple(setting for name in sorted(loaded) for setting in getattr(loaded[name], STATED, ()))
    if doubtful:
        harmless = {setting.name for setting in settings if setting.kind is SettingKind.VALUE}
        offered = HookRelay(manager, log, frozenset(), config, kinds, trusted).collect(OPTIONS)
        harmless |= {o.value.name for o in offered if o.value.kind is SettingKind.VALUE}
        config = {**{name: value for name, value in doubtful.items() if name in harmless}, **config}
    relay = HookRelay(manager, log, requested, config, kinds, trusted)
    failures = [PluginError(r.name, "loading", r.reason) for r in records if r.name in requested and r.reason]
    return PluginHost(records, relay, log, tuple(failures), settings)


def _add_owned_specs(
    manager: pluggy.PluginManager, entry: InstalledEntry, log: DiagnosticLog
) -> tuple[ContributionKind[Any], ...]:
    """Add the hook specs that a distribution owns; the kinds of contribution behind them."""
    try:
        with plugin_boundary(entry.distribution, f"its hook specs ({entry.value})"):
            if held := why_unusable(entry.distribution, entry.version, entry.value):
                raise ImportError(held)
            specs = import_module(entry.value)
            manager.add_hookspecs(specs)
            kinds: tuple[ContributionKind[Any], ...] = tuple(specs.KINDS)
            return kinds
    except PluginError as error:
        log.failure(error)
        return ()


def _settle_all(
    selection: PluginSelection, candidates: tuple[Candidate, ...], manager: pluggy.PluginManager
) -> tuple[PluginRecord, ...]:
    unwanted = {c: reason for c in candidates if (reason := selection.refusal(c)) is not None}
    clashing = conflicts(c for c in candidates if c not in unwanted)
    records = []
    for candidate in candidates:
        if candidate in unwanted:
            records.append(_record(candidate, PluginStatus.DISABLED, reason=unwanted[candidate]))
        elif candidate in clashing:
            records.append(_record(candidate, PluginStatus.CONFLICT, reason=clashing[candidate]))
        else:
            records.append(_load_and_register(candidate, manager))
    return tuple(records)


def _load_and_register(candidate: Candidate, manager: pluggy.PluginManager) -> PluginRecord:
    outcome = load(candidate)
    if isinstance(outcome, NotLoaded):
        return _record(
            candidate, outcome.status, reason=outcome.reason, api=outcome.api, traceback=outcome.traceback
        )
    module: ModuleType = outcome.module
    reason = register(manager, module, candidate.name)
    if reason is not None:
        return _record(candidate, PluginStatus.INVALID, reason=reason, api=outcome.api)
    return _record(candidate, PluginStatus.LOADED, api=outcome.api, hooks=implemented_hooks(manager, module))


def _record(candidate: Candidate, status: PluginStatus, **facts: Any) -> PluginRecord:
    return PluginRecord(**attrs.asdict(candidate), status=status, **facts)


def _report(record: PluginRecord, log: DiagnosticLog) -> None:
    if record.status in {PluginStatus.LOADED, PluginStatus.DISABLED}:
        return
    log.warn(
        f"plugin.{record.status.value}",
        f"plugin {record.name!r} is {record.status.value}: {record.reason}",
        where=f"plugin {record.name}",
        remedy=f"run `rpl plugins info {record.name}`",
    )


def _report_unknown_names(
    selection: PluginSelection, candidates: tuple[Candidate, ...], log: DiagnosticLog
) -> None:
    for name in selection.unknown_names(candidates):
        log.warn(
            "plugin.unknown_name",
            f"no plugin or distribution named {name!r} is installed, so there is nothing to disable",
            where="configuration",
            remedy="see `rpl plugins list`",
        )


def trace_hook_calls(manager: PluginManager) -> None:
    """Print each call, the plugin that answers it, and a summary of the answer, one line each."""
    manager.add_hookcall_monitoring(_before, _after)


def _before(hook_name: str, hook_impls: Sequence[HookImpl], kwargs: Mapping[str, object]) -> None:
    arguments = ", ".join(f"{name}={type(value).__name__}" for name, value in sorted(kwargs.items()))
    for implementation in hook_impls:
        _print(f"call {hook_name}({arguments}) in {implementation.plugin_name}")


def _after(
    outcome: Result[Any], hook_name: str, hook_impls: Sequence[HookImpl], _arguments: Mapping[str, object]
) -> None:
    names = ", ".join(implementation.plugin_name for implementation in hook_impls)
    if outcome.exception is not None:
        _print(f"raised {hook_name} in {names}: {one_line(outcome.exception)}")
        return
    for answer in outcome.get_result():
        _print(f"answer {hook_name} from {names}: {_summary(answer)}")


def _summary(answer: Any) -> str:
    if not isinstance(answer, tuple):
        return type(answer).__name__
    shown = ", ".join(_label(item) for item in answer[:_SHOWN_ITEMS])
    return f"{len(answer)} of {shown}{', ...' * (len(answer) > _SHOWN_ITEMS)}" if answer else "empty tuple"


def _label(item: Any) -> str:
    name = getattr(item, "name", None) or getattr(item, "id", None)
    return f"{type(item).__name__} {name}" if isinstance(name, str) else type(item).__name__


def _print(text: str) -> None:
    printable = "".join(c if c.isprintable() else "?" for c in text)
    print(f"rpl-hook: {printable}", file=sys.stderr)
