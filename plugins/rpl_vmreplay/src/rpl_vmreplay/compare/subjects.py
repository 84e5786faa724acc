"""The two code objects of a comparison: for the captured GPU, with the captured kernel, of one layout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.compare.judge import Subjects
from rpl_vmreplay.replay.captured_code import takes_launch

if TYPE_CHECKING:
    from rpl_codeobject.values import CodeObject


def subjects_of(capture: Capture, a: Path, b: Path, folder: Path) -> Subjects:
    """Files may be code objects, bundles or programs that hold some; what is run is written to ``folder``.

    Raises BadDataError for another layout of arguments, limits that the captured launch breaks and what
    can't be read.
    """
    from rpl_codeobject.comparing import Severity, compare_code_objects

    name = capture.kernel_name
    codes = [_code_of(path, name, capture) for path in (a, b)]
    diff = compare_code_objects([codes[0]], [codes[1]], kernel=name)
    breaking = diff.of(Severity.BREAKING)
    before, after = (one.kernel(name) for one in codes)
    assert before is not None
    assert after is not None
    if breaking := tuple(one for one in breaking if not takes_launch(capture, one.what, before, after)):
        first = breaking[0]
        raise BadDataError(
            f"{b} has another launch interface of {name} than {a}: {first.what} is {first.after or 'absent'} "
            f"instead of {first.before or 'absent'}",
            cause=first.reason,
            next_step="`rpl abi-diff` shows all differences",
        )
    places = [folder / "a.hsaco", folder / "b.hsaco"]
    for place, code in zip(places, codes, strict=True):
        place.write_bytes(code.elf)
    return Subjects(places[0], places[1], codes[0], name)


def _code_of(path: Path, name: str, capture: Capture) -> CodeObject:
    from rpl_codeobject.reading.read import read_code_objects

    found = [one for one in read_code_objects(path) if one.kernel(name) is not None]
    fitting = [one for one in found if one.architecture in capture.dispatch.isa_name]
    if not fitting:
        where = f"for {capture.dispatch.isa_name}" if found else "in it"
        raise BadDataError(
            f"{path} has no kernel {name} {where}", next_step="`rpl abi-diff` lists its kernels"
        )
    return fitting[0]
