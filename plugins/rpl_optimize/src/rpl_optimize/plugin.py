"""What rpl-optimize contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_optimize.interfaces.builder import BuildSystem
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 1
KEEP_VARIABLES = PluginSetting(
    "plugins.optimize.keep-variables", SettingKind.SECRET, "keys that the programs of candidates get"
)
RPL_SETTINGS = (KEEP_VARIABLES,)


@hookimpl
def rpl_equivalence_checks() -> tuple[EquivalenceCheck, ...]:
    from rpl_optimize.equivalence.output_files import OutputFilesCheck
    from rpl_optimize.equivalence.validation_command import ValidationCommandCheck

    return (ValidationCommandCheck(), OutputFilesCheck())


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_optimize.transform.ranked import RankedProposer

    return (RankedProposer(),)


@hookimpl
def rpl_builders() -> tuple[BuildSystem, ...]:
    from rpl_optimize.build.database_build import DatabaseBuilds
    from rpl_optimize.build.default_build import CompilerBuilds
    from rpl_optimize.build.template_build import CommandBuilds
    from rpl_optimize.projects.cmake import CMakeBuilds
    from rpl_optimize.projects.extension import NinjaBuilds, SetupBuilds
    from rpl_optimize.projects.makefile import MakeBuilds
    from rpl_optimize.projects.project_build import ProjectBuilds

    told = (CommandBuilds(), ProjectBuilds(), DatabaseBuilds())
    found = (CMakeBuilds(), NinjaBuilds(), MakeBuilds(), SetupBuilds(), CompilerBuilds())
    return (*told, *found)


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_optimize.contracts.kinds import OptimizeContract

    return (OptimizeContract(),)


@hookimpl
def rpl_ceilings(device: DeviceModel) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    from rpl_optimize.ceilings import kept_path

    if not kept_path().exists():  # before the module of what is kept is imported, and pydantic with it
        return ()
    from rpl_optimize.ceilings.kept import ceilings_of

    return ceilings_of(device)
