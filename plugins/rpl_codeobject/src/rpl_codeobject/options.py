"""Options that name code objects; apart from what reads them, so that `--help` needs no numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpl_core.config import flag
from rpl_core.errors import MissingError
from rpl_core.interfaces.options import CommandOption, OptionForm

_COMMANDS = ("profile", "analyze")


def _code_object(value: Any) -> Path:
    path = Path(value)
    if not path.is_file():
        raise MissingError(f"no code object at {path}", next_step="check the path")
    return path


CODE_OBJECT: CommandOption[tuple[Path, ...]] = CommandOption(
    name="code-object",
    commands=_COMMANDS,
    parse=_code_object,
    default=(),
    help="Executable or code object of the kernels, for packed arithmetic; may be repeated.",
    form=OptionForm.REPEATED,
    metavar="FILE",
)
RECORDED_CODE: CommandOption[bool] = CommandOption(
    name="recorded-code",
    commands=_COMMANDS,
    parse=flag,
    default=False,
    help="Read the code objects beside the recording and those that it names on this machine.",
    form=OptionForm.FLAG,
)
