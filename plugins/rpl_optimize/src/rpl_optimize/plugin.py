"""What rpl-optimize contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.files import config_folder
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_optimize.interfaces.builder import BuildSystem
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 2
#: In the folder of rpl's settings: what `rpl ceilings measure` found.
KEPT_CEILINGS = "ceilings.json"
KEEP_VARIABLES = PluginSetting(
    "plugins.optimize.keep-variables", SettingKind.SECRET, "keys that the programs of candidates get"
)
RPL_SETTINGS = (KEEP_VARIABLES,)


@hookimpl
def rpl_equivalence_checks() -> tuple[EquivalenceCheck, ...]:
    from rpl_optimize.equivalence.checks import OutputFilesCheck, ValidationCommandCheck

    return (ValidationCommandCheck(), OutputFilesCheck())


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_optimize.ranked import RankedProposer

    return (RankedProposer(),)


@hookimpl
def rpl_builders() -> tuple[BuildSystem, ...]:
    from rpl_optimize.build.project_build import ProjectBuilds
    from rpl_optimize.build.project_systems import CMakeBuilds, MakeBuilds, NinjaBuilds, SetupBuilds
    from rpl_optimize.build.systems import CommandBuilds, CompilerBuilds, DatabaseBuilds

    told = (CommandBuilds(), ProjectBuilds(), DatabaseBuilds())
    found = (CMakeBuilds(), NinjaBuilds(), MakeBuilds(), SetupBuilds(), CompilerBuilds())
    return (*told, *found)


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_optimize.session_layout import OptimizeContract

    return (OptimizeContract(),)


@hookimpl
def rpl_ceilings(device: DeviceModel) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    folder = config_folder()
    if folder is None or not (folder / KEPT_CEILINGS).exists():  # before pydantic is imported to read it
        return ()
    from rpl_optimize.ceilings import ceilings_of

    return ceilings_of(device, folder / KEPT_CEILINGS)
