"""What {{ cookiecutter.__distribution }} offers to rpl: read it as a table of contents.

Import the work inside the functions, so that `rpl plugins list` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.doctor import DoctorCheck

#: The version of rpl's hook contract that this plugin was written for.
RPL_API = 2


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    """`rpl doctor` runs these."""
    from {{ cookiecutter.__module }}.free_space import FreeSpaceCheck

    return (FreeSpaceCheck(),)
