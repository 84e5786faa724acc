"""The one place where hooks are called: each plugin inside its own boundary, each answer checked.

pluggy's ``manager.hook`` is untyped and stops at the first exception; here every answer is checked, keeps
its plugin's name, and a failure costs only the plugin that caused it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from rpl_core.errors import PluginError, RplError
from rpl_core.plugins.boundary import one_line, plugin_boundary
from rpl_core.plugins.kinds import DEVICES, KINDS, ContributionKind
from rpl_core.plugins.loader import implemented_hooks
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pluggy import PluginManager

    from rpl_core.interfaces.run import RunInfo, RunOutcome
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent
    from rpl_core.plugins.discovery import DiagnosticLog

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
        self._implemented = {name: implemented_hooks(manager, module) for name, module in self._modules}
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
            collected += [
                self._contribution(plugin, v) for v in answer if self._accepts(plugin, kind.hook, kind, v)
            ]
        return tuple(collected)

    def detect_device(self, agents: tuple[Agent, ...]) -> Contribution[DeviceModel] | None:
        """The first plugin's answer; a second, different one is logged."""
        first: Contribution[DeviceModel] | None = None
        for plugin, answer in self._answers("rpl_detect_device", {"agents": agents, "config": self.config}):
            if not self._accepts(plugin, "rpl_detect_device", DEVICES, answer):
                continue
            if first is None:
                first = self._contribution(plugin, answer)
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

    def _contribution(self, plugin: str, value: T) -> Contribution[T]:
        return Contribution(plugin, value, trusted=plugin in self._trusted)

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
