"""The plugin host: all candidates with their fate; hooks are called here, each inside its boundary."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
import pluggy
from pluggy import HookImpl, HookimplOpts, PluginManager, PluginValidationError, Result
from stevedore.driver import DriverManager

from rpl_core import RPL_API, hookspecs
from rpl_core.errors import MissingError, PluginError, RplError
from rpl_core.hookspecs import PROJECT
from rpl_core.interfaces.options import PluginSetting, SettingKind
from rpl_core.plugins.boundary import one_line, plugin_boundary, traceback_of
from rpl_core.plugins.catalog import DEVICES, KINDS, OPTIONS, Catalog, ContributionKind
from rpl_core.plugins.discovery import (
    GROUP,
    Candidate,
    DiagnosticLog,
    PluginOrigin,
    PluginRecord,
    PluginSelection,
    PluginStatus,
    conflicts,
    discover,
)
from rpl_core.plugins.trial import why_unusable
from rpl_core.process_start import is_ctrl_c
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import RunInfo, RunOutcome
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Agent
    from rpl_core.plugins.entry_points import InstalledEntry

T = TypeVar("T")


@frozen
class Contribution(Generic[T]):
    """Something a plugin offered, with the plugin's name.

    ``trusted``: it is this project's own. What strangers give is looked at before anything relies on it.
    """

    plugin: str
    value: T
    trusted: bool = attrs.field(default=False, kw_only=True, eq=False)


class HookRelay:
    """Calls hooks in the order of plugin names.

    ``requested`` are plugins that the user asked for by name: their failures are raised as ``PluginError``.
    Failures of all others go to ``log``. ``config`` are the resolved settings, ``kinds`` all kinds there are,
    ``trusted`` this project's own plugins, whose contributions are taken as they are.
    """

    def __init__(
        self,
        manager: PluginManager,
        log: DiagnosticLog,
        requested: frozenset[str],
        config: Mapping[str, Any] = MappingProxyType({}),
        kinds: Sequence[ContributionKind[Any]] = KINDS,
        trusted: frozenset[str] = frozenset(),
    ) -> None:
        self._manager = manager
        self._log = log
        self._requested = requested
        self.config = MappingProxyType(dict(config))
        self._kinds = tuple(kinds)
        self._trusted = trusted
        self._modules = sorted(manager.list_name_plugin())
        self._implemented = {name: _implemented_hooks(manager, module) for name, module in self._modules}
        self.failures: list[PluginError] = []

    def run_started(self, run: RunInfo) -> None:
        self._notify("rpl_run_started", run=run)

    def run_finished(self, run: RunInfo, outcome: RunOutcome) -> None:
        self._notify("rpl_run_finished", run=run, outcome=outcome)

    def collect(
        self, kind: ContributionKind[T], *, only: str | None = None, **arguments: Any
    ) -> tuple[Contribution[T], ...]:
        """Every acceptable contribution of ``kind``, of one plugin with ``only``."""
        collected: list[Contribution[T]] = []
        for plugin, answer in self._answers(kind.hook, {**arguments, "config": self.config}, only):
            if type(answer) is not tuple:  # iterating over a class of its own runs the plugin's code
                problem = f"returned {type(answer).__name__} where a tuple was expected"
                self._reject(plugin, kind.hook, problem)
                continue
            trusted = plugin in self._trusted
            collected += [
                Contribution(plugin, value, trusted=trusted)
                for value in answer
                if trusted or self._accepts(plugin, kind.hook, kind, value)
            ]
        return tuple(collected)

    def detect_device(self, agents: tuple[Agent, ...]) -> Contribution[DeviceModel] | None:
        """The first plugin's answer; a second, different one is logged."""
        first: Contribution[DeviceModel] | None = None
        for plugin, answer in self._answers("rpl_detect_device", {"agents": agents, "config": self.config}):
            if not self._accepts(plugin, "rpl_detect_device", DEVICES, answer):
                continue
            if first is None:
                first = Contribution(plugin, answer, trusted=plugin in self._trusted)
            elif answer != first.value:
                self._disagreement(first, Contribution(plugin, answer))
        return first

    def contributions_of(self, plugin: str) -> Iterator[tuple[ContributionKind[Any], Any]]:
        """Everything one plugin offers when the device is unknown, in the order of the hooks.

        For inspection: failures are only logged, even those of a requested plugin, and nobody is trusted.
        """
        inspecting = HookRelay(self._manager, self._log, frozenset(), self.config, self._kinds)
        for kind in self._kinds:
            for contribution in inspecting.collect(kind, only=plugin, **dict.fromkeys(kind.asked)):
                yield kind, contribution.value

    def _notify(self, hook: str, **arguments: Any) -> None:
        for plugin, answer in self._answers(hook, {**arguments, "config": self.config}):
            self._reject(plugin, hook, f"returned {type(answer).__name__} where nothing was expected")

    def _answers(
        self, hook: str, arguments: Mapping[str, Any], only: str | None = None
    ) -> Iterator[tuple[str, Any]]:
        """What each plugin returned, ``None`` left out; failures are logged or raised."""
        for plugin, hooks in self._implemented.items():
            if (only is not None and plugin != only) or hook not in hooks:
                continue
            others = [other for name, other in self._modules if name != plugin]
            answers: list[Any] = []
            try:
                with plugin_boundary(plugin, hook):
                    answers = self._manager.subset_hook_caller(hook, others)(**arguments)
            except PluginError as error:
                self._failed(error)
            except RplError as error:
                self._failed(PluginError(plugin, hook, one_line(error)))
            for answer in reversed(answers):  # pluggy asks the last one first
                yield plugin, answer

    def _accepts(self, plugin: str, hook: str, kind: ContributionKind[Any], item: Any) -> bool:
        if plugin in self._trusted:
            return True
        try:
            with plugin_boundary(plugin, hook):
                violation = kind.violation(item)
        except (PluginError, RplError) as error:
            violation = one_line(error)
        if violation is not None:
            self._reject(plugin, hook, violation)
        return violation is None

    def _reject(self, plugin: str, hook: str, problem: str) -> None:
        self._failed(PluginError(plugin, hook, problem))

    def _failed(self, error: PluginError) -> None:
        self.failures.append(error)
        if error.plugin in self._requested:
            raise error
        self._log.failure(error)

    def _disagreement(self, first: Contribution[DeviceModel], second: Contribution[DeviceModel]) -> None:
        self._log.warn(
            "plugin.device_disagreement",
            f"plugin {first.plugin!r} recognises {first.value.name} but plugin {second.plugin!r} recognises "
            f"{second.value.name}; {first.value.name} is used",
            where=f"plugin {second.plugin}",
            remedy="choose with --device, or disable one of the plugins",
        )


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


class _Manager(pluggy.PluginManager):
    """Asks no further about names of a module that can't bear a mark: they took half of the loading."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> HookimplOpts | None:
        if isinstance(plugin, ModuleType):
            found = vars(plugin).get(name)
            if not isinstance(found, (FunctionType, MethodType, classmethod, staticmethod)) or not vars(
                found
            ):
                return None
        return super().parse_hookimpl_opts(plugin, name)


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
    manager = _Manager(PROJECT)
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


# A plugin's module: imported through stevedore, its API number checked, registered with pluggy.
#
# stevedore 5 re-raises ``AssertionError``, lets ``SystemExit`` pass, resolves name clashes on its own and
# keeps a cache in the user's home; hence one driver per plugin over one given entry point, inside our own
# boundary. pluggy checks argument names. Checked here besides: misspelt hooks, forgotten markers, and what
# would let a plugin escape the documented order or never receive an argument.

#: What a module calls the settings that it reads itself (``PluginSetting``).
STATED = "RPL_SETTINGS"
#: Written out, a longer one would fill the line (chosen).
_MOST_API = 1_000_000
_ORDERING_OPTIONS = ("tryfirst", "trylast", "wrapper", "hookwrapper")

if TYPE_CHECKING:
    _Driver = DriverManager[ModuleType]
else:
    _Driver = DriverManager  # older stevedore is not generic at run time


class _OneEntryPoint(_Driver):
    """A driver manager that knows one entry point instead of asking (and writing) stevedore's cache."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self._only = entry_point
        super().__init__(entry_point.group, entry_point.name)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._only]


def _load_and_register(candidate: Candidate, manager: pluggy.PluginManager) -> PluginRecord:
    """The fate of ``candidate``; never raises except for Ctrl-C."""
    if problem := candidate.malformed():
        return _record(candidate, PluginStatus.INVALID, reason=problem)
    if held := why_unusable(candidate.distribution, candidate.version, candidate.target):
        return _record(candidate, PluginStatus.BROKEN, reason=held)
    try:
        with redirect_stdout(sys.stderr):
            if candidate.is_development and (here := str(Path.cwd())) not in sys.path:
                # A console script does not search the working directory; ``-p module`` is an explicit wish.
                sys.path.append(here)
            # Anything that the entry point names: only a module has the ``RPL_API`` that is asked for below.
            module: Any = _OneEntryPoint(EntryPoint(candidate.name, candidate.target, GROUP)).driver
            facts = vars(module)
            api, stated = facts.get("RPL_API"), facts.get(STATED, ())
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        return _record(candidate, PluginStatus.BROKEN, reason=one_line(error), traceback=traceback_of(error))
    if api is None:
        reason = f"the module states no RPL_API; this rpl offers RPL_API = {RPL_API}"
        return _record(candidate, PluginStatus.INCOMPATIBLE, reason=reason)
    if type(api) is not int or not 0 <= api <= _MOST_API:
        reason = "RPL_API is not a whole number that any rpl could offer"
        return _record(candidate, PluginStatus.INCOMPATIBLE, reason=reason)
    if api != RPL_API:
        reason = f"written for RPL_API = {api}; this rpl offers {RPL_API}"
        if api < RPL_API:
            reason += "; what to change: `rpl docs plugins/migration`"
        return _record(candidate, PluginStatus.INCOMPATIBLE, reason=reason, api=api)
    if type(stated) is not tuple or not all(type(setting) is PluginSetting for setting in stated):
        reason = f"{STATED} is no tuple of PluginSetting"
        return _record(candidate, PluginStatus.INVALID, reason=reason, api=api)
    refused = _register(manager, module, candidate.name)
    if refused is not None:
        return _record(candidate, PluginStatus.INVALID, reason=refused, api=api)
    return _record(candidate, PluginStatus.LOADED, api=api, hooks=_implemented_hooks(manager, module))


def _register(manager: PluginManager, module: ModuleType, name: str) -> str | None:
    """Register ``module`` as ``name``; returns the reason when it was refused and is not registered."""
    other = manager.get_name(module)
    if other is not None:
        return f"the same module is already registered as {other!r}"
    try:
        reason = _contract_violation(manager, module)
        if reason is not None:
            return reason
        manager.register(module, name=name)
        reason = _unknown_hook(manager, module)
    except PluginValidationError as error:
        reason = " ".join(str(error).split())
    except Exception as error:  # noqa: BLE001 - the plugin boundary: module attributes may be anything
        reason = one_line(error)
    if reason is not None and manager.has_plugin(name):
        manager.unregister(name=name)
    return reason


def _implemented_hooks(manager: PluginManager, module: object) -> tuple[str, ...]:
    """The names of the known hooks that a registered module implements, sorted."""
    callers = manager.get_hookcallers(module) or []
    return tuple(sorted(caller.name for caller in callers if caller.has_spec()))


def _spec_names(manager: PluginManager) -> tuple[str, ...]:
    """All hooks that have a spec, sorted."""
    return tuple(sorted(n for n, c in vars(manager.hook).items() if not n.startswith("_") and c.has_spec()))


def _contract_violation(manager: PluginManager, module: ModuleType) -> str | None:
    known = _spec_names(manager)
    for attribute in sorted(dir(module)):
        options: Any = manager.parse_hookimpl_opts(module, attribute)
        function = getattr(module, attribute, None)
        if options is None:
            if attribute in known and inspect.isfunction(function):
                return f"{attribute} is not marked with @hookimpl, so it would never be called"
            continue
        ordering = next((option for option in _ORDERING_OPTIONS if options.get(option)), None)
        reason = (
            _signature_violation(function)
            if ordering is None
            else f"{ordering}=True is not supported: plugins are called in the order of their names"
        )
        if reason is not None:
            return f"{options.get('specname') or attribute}: {reason}"
    return None


def _signature_violation(function: Any) -> str | None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "hooks are called synchronously, but this one is async"
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            return f"argument {parameter.name!r} is not a plain parameter, so it would never be passed"
        if parameter.default is not inspect.Parameter.empty:
            return f"argument {parameter.name!r} has a default, so it would never be passed"
    return None


def _unknown_hook(manager: PluginManager, module: ModuleType) -> str | None:
    """What ``check_pending`` finds in the plugin just registered, with a guess at what was meant."""
    try:
        manager.check_pending()
    except PluginValidationError:
        callers = manager.get_hookcallers(module) or []
        unknown = [
            caller.name
            for caller in callers
            if not caller.has_spec() and not all(impl.optionalhook for impl in caller.get_hookimpls())
        ]
        from difflib import get_close_matches

        hook = min(unknown)
        similar = get_close_matches(hook, _spec_names(manager), n=1)
        return f"unknown hook {hook}" + (f"; did you mean {similar[0]}?" if similar else "")
    return None


# ``RPL_TRACE_PLUGINS``: every hook call on stderr.


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
