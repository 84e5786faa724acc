"""Captures of real launches run again in the emulator, and other code objects are compared with them."""

from __future__ import annotations

import pytest

from rpl_vmreplay.interfaces.replayer import ReplayRequest

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]


@pytest.fixture
def block_sums(isolated, hsa_runtime, hsa_program, compared, monkeypatch, native_build):
    """A capture of the kernel of that name."""
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    program = hsa_program("compared_scenarios")
    ran = isolated(hsa_runtime, program, "block_sums", compared(0), kernel="block_sums")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    return ran.capture.folder


def test_a_captured_launch_leaves_what_it_left(block_sums):
    from rpl_emu.replay.replayer import EmulatedReplayer

    replayer = EmulatedReplayer()
    result = replayer.replay(ReplayRequest(block_sums, access_log=True))
    assert result.failure is None
    assert (result.reproduced, result.reproduced_reason) == (True, None)
    assert result.times_ns == ()
    assert result.accesses is not None
    read, written = (
        [one.size for one in ranges] for ranges in (result.accesses.read_first, result.accesses.written)
    )
    assert sorted(read) == [4, 28, 4000]  # what is added to, the arguments, the numbers
    assert sorted(written) == [4, 16]


def test_another_end_state_is_noticed(block_sums, compared):
    """The capture says now that other code had been captured."""
    from rpl_emu.replay.replayer import EmulatedReplayer

    (block_sums / "kernel.hsaco").write_bytes(compared(2).read_bytes())
    result = EmulatedReplayer().replay(ReplayRequest(block_sums))
    assert result.reproduced is False
    assert len(result.differing) == 1
