"""What {{ cookiecutter.__distribution }} offers to rpl: read it as a table of contents.

Import the work inside the functions, so that `rpl plugins list` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent

#: The version of rpl's hook contract that this plugin was written for.
RPL_API = 2


@hookimpl
def rpl_device_models() -> tuple[DeviceModel, ...]:
    """`--device` takes these."""
    from rpl_amdgpu.models import device_models

    from {{ cookiecutter.__module }}.products import FAMILY

    return device_models(FAMILY)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """The product behind recorded agents."""
    from rpl_amdgpu.detection import detect_device

    from {{ cookiecutter.__module }}.products import FAMILY

    return detect_device(FAMILY, agents)
