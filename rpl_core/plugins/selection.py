"""Which plugins the user wants: disabled names, the only allowed distributions, modules under development."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rpl_core.plugins.entry_points import ONLY_VARIABLE, normalized, only_distributions
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_core.plugins.discovery import Candidate, PluginRecord

#: "1" shows every hook call on stderr.
TRACE_VARIABLE = "RPL_TRACE_PLUGINS"


@frozen
class PluginSelection:
    """``disabled`` holds plugin or distribution names and always wins.

    ``modules`` are dotted modules under development; a failure of one of them is fatal, because the user
    asked for it by name. ``only_distributions`` is ``None`` for "whatever is installed".
    """

    modules: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    only_distributions: frozenset[str] | None = None
    trace: bool = False

    @classmethod
    def from_environment(
        cls,
        *,
        modules: Iterable[str] = (),
        disabled: Iterable[str] = (),
        trace: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> PluginSelection:
        """Flags and resolved settings, completed by ``RPL_LOAD_PLUGINS`` and ``RPL_TRACE_PLUGINS``.

        ``disabled`` comes from the configuration, which knows ``RPL_PLUGINS_DISABLED``.
        """
        variables = os.environ if environment is None else environment
        return cls(
            modules=tuple(dict.fromkeys(modules)),
            disabled=tuple(dict.fromkeys(disabled)),
            only_distributions=only_distributions(variables),
            trace=trace or variables.get(TRACE_VARIABLE, "0") not in {"", "0"},
        )

    def refusal(self, candidate: Candidate) -> str | None:
        """Why ``candidate`` is not to be imported, or ``None``."""
        for name in self.disabled:
            if name == candidate.name or _same_distribution(name, candidate.distribution):
                return f"disabled by name ({name})"
        if self.only_distributions is None or candidate.is_builtin or candidate.is_development:
            return None
        if normalized(candidate.distribution or "") in self.only_distributions:
            return None
        return f"{ONLY_VARIABLE} does not name {candidate.distribution}"

    def allows(self, distribution: str) -> bool:
        """Whether anything of ``distribution`` may be imported."""
        return self.only_distributions is None or normalized(distribution) in self.only_distributions

    def unknown_names(self, candidates: Iterable[Candidate | PluginRecord]) -> tuple[str, ...]:
        """Disabled names that match no plugin: probably a typing error."""
        known = tuple(candidates)
        return tuple(
            name
            for name in self.disabled
            if not any(name == c.name or _same_distribution(name, c.distribution) for c in known)
        )


def _same_distribution(name: str, distribution: str | None) -> bool:
    return distribution is not None and normalized(name) == normalized(distribution)
