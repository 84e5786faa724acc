"""What {{ cookiecutter.__distribution }} offers to rpl: read it as a table of contents.

Import the work inside the functions, so that `rpl plugins list` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.reader import Reader

#: The version of rpl's hook contract that this plugin was written for.
RPL_API = 2


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    """`rpl analyze FILE` asks these whether they know the file."""
    from {{ cookiecutter.__module }}.launches_file import LaunchesReader

    return (LaunchesReader(),)
