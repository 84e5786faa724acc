"""Ask one transformation something, so that what goes wrong in it costs only itself."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

from rpl_core.errors import InterruptedRunError, PluginError, RplError
from rpl_core.plugins.boundary import one_line, plugin_boundary
from rpl_optimize.interfaces.proposer import InstalledTransformation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rpl_core.plugins.catalog import NamedContributions
    from rpl_optimize.interfaces.transformation import KernelSource, Transformation

T = TypeVar("T")


def installed(transformations: NamedContributions[Transformation]) -> tuple[InstalledTransformation, ...]:
    """All transformations of a host, in the order of their plugins."""
    return tuple(InstalledTransformation(c.plugin, c.value) for c in transformations.contributions)


def ask(one: InstalledTransformation, activity: str, call: Callable[[], T]) -> T | PluginError:
    """What ``call`` returns, or what went wrong in it. Raises ``InterruptedRunError`` only.

    Answers have to be looked at inside ``call``: attrs checks no types, and a plugin may return anything.
    """
    where = f"{activity} of transformation {one.transformation.name}"
    try:
        with plugin_boundary(one.plugin, where):
            return call()
    except InterruptedRunError:
        raise
    except PluginError as error:
        return error
    except RplError as error:
        return PluginError(one.plugin, where, one_line(error))


def able_to_read(
    source: KernelSource, transformations: Iterable[InstalledTransformation]
) -> tuple[InstalledTransformation, ...]:
    """Those that handle files of this suffix."""

    def reads(one: InstalledTransformation) -> bool:
        return PurePath(source.path).suffix in one.transformation.suffixes

    return tuple(one for one in transformations if ask(one, "suffixes", partial(reads, one)) is True)
