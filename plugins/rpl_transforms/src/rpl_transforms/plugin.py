"""What this distribution offers to rpl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Rule
    from rpl_optimize.interfaces.transformation import Transformation

RPL_API = 2
_DISTINCT = PluginSetting(
    "plugins.transforms.distinct-pointers", SettingKind.VALUE, "kernels whose pointers never overlap"
)
RPL_SETTINGS = (_DISTINCT,)


@hookimpl
def rpl_transformations(config: Mapping[str, Any]) -> tuple[Transformation, ...]:
    from rpl_transforms.coarsening import Coarsening, WideElements
    from rpl_transforms.lds_padding import LdsPadding
    from rpl_transforms.nontemporal import NontemporalStores
    from rpl_transforms.promises import Restrict, ThreadsPerBlock, WavesPerUnit
    from rpl_transforms.resource_screen import ScreenOfSource
    from rpl_transforms.shuffles import ShuffledReductions
    from rpl_transforms.unroll import Unroll
    from rpl_transforms.vector_loads import VectorLoads

    distinct = config.get(_DISTINCT.name)
    screens = ScreenOfSource()
    promises = (ThreadsPerBlock(), WavesPerUnit(screens), Restrict(kernels_of(distinct)))
    return (
        Unroll(screens),
        *promises,
        VectorLoads(),
        LdsPadding(),
        NontemporalStores(),
        WideElements(),
        Coarsening(),
        ShuffledReductions(),
    )


@hookimpl
def rpl_classifier_rules() -> tuple[Rule, ...]:
    from rpl_transforms.evidence import BANK_CONFLICT_RULE

    return (BANK_CONFLICT_RULE,)


def kernels_of(setting: object) -> frozenset[str]:
    """Names of kernels from a setting: a list, or one text with commas."""
    names = setting.split(",") if isinstance(setting, str) else setting
    if not isinstance(names, (list, tuple)):
        return frozenset()
    return frozenset(str(name).strip() for name in names) - {""}
