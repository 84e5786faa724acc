"""``rpl replay``: run captured launches again."""

from __future__ import annotations

import click

from rpl_vmreplay.cli.compare import compare
from rpl_vmreplay.cli.full_vm import full_vm
from rpl_vmreplay.cli.reserve_check import reserve_check


@click.group("replay")
def replay() -> None:
    """Run captures of one kernel launch again, alone and as often as you like.

    Those of `rpl isolate`, of the first rocm-perf-lab and of kerncap are taken.

    \b
    rpl replay full-vm captured
    rpl replay compare captured before.hsaco after.hsaco --pairs 20
    """


replay.add_command(compare)
replay.add_command(full_vm)
replay.add_command(reserve_check)
