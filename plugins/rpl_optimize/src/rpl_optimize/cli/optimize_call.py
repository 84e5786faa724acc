"""One call of ``rpl optimize``: what a session remembers of it, and what ``--resume`` takes from there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from rpl_core.cli.command_options import settled
from rpl_core.errors import BadDataError, UsageError
from rpl_core.text import MASK, is_masked, masked_text, masked_words
from rpl_core.values import frozen
from rpl_optimize.cli.optimize_options import OptimizeSettings

if TYPE_CHECKING:
    from rpl_core.cli.session import Session

#: Given anew with --resume; everything else is the session's own.
_OF_THIS_CALL = ("resume", "auto_approve", "step_by_step", "debug", "as_json", "time_budget")
#: A longer file is cut off and then no JSON (chosen: command lines end at a few MiB).
_MOST_BYTES = 16 << 20
_NOT_AS_WRITTEN = (
    OSError,
    RecursionError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    click.ClickException,
)


@frozen
class Call:
    """One call of a command. ``flags`` are its options by Python name."""

    words: tuple[str, ...]
    flags: Mapping[str, Any]
    proposer: str
    suffix: str
    proposer_options: Mapping[str, str] = attrs.field(factory=dict)
    command_name: str = "rpl optimize"

    def settings(self, session: Session) -> OptimizeSettings:
        """What the flags say, and where they are silent what is set."""
        return settled(OptimizeSettings, session, self.flags)

    @property
    def command(self) -> str:
        """The command's own name."""
        return self.command_name.removeprefix("rpl ")

    @property
    def plain_options(self) -> dict[str, Any]:
        """All options as the ledger holds them, those of the proposer under ``proposer.``."""
        own = {f"proposer.{name}": value for name, value in self.proposer_options.items()}
        return plain_flags({**self.flags, **own, "suffix": self.suffix})


def plain_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON values; several values of one option become one text for the ledger's reader."""

    def value(given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return shlex.join(map(str, given))
        return str(given) if isinstance(given, Path) else given

    return _unless_kept(flags, {name: value(given) for name, given in flags.items()})


def _unless_kept(flags: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """The options without secrets, unless ``--keep-command`` is among the flags."""
    if flags.get("keep_command"):
        return dict(plain)
    return {name: masked_text(given) if isinstance(given, str) else given for name, given in plain.items()}


def remembered(call: Call) -> Mapping[str, Any]:
    """What ``--resume`` needs of this call."""
    return {
        "words": list(call.words if call.flags.get("keep_command") else masked_words(call.words)),
        "flags": plain_flags(call.flags),
        "proposer": call.proposer,
        "suffix": call.suffix,
        "proposer_options": _unless_kept(call.flags, call.proposer_options),
        "directory": str(Path.cwd()),
        "command_name": call.command_name,
    }


def recalled(root: Path, call: Call, context: click.Context) -> tuple[Call, Call]:
    """The call that began the session as it was, and with what this call says anew.

    Raises ``UsageError`` for what can't be said anew, ``BadDataError`` for a damaged session.
    """
    from rpl_optimize.session_layout import REQUEST

    path = root / REQUEST
    if not path.is_file():
        raise UsageError(f"{root} holds no session", next_step="name a directory that `rpl optimize` made")
    try:
        with path.open("rb") as stream:
            begun, directory = _parsed(stream.read(_MOST_BYTES).decode(), call.flags, context)
    except _NOT_AS_WRITTEN as error:
        raise _damaged(path, error) from None
    if directory != str(Path.cwd()):
        raise UsageError(
            f"the session was started in {directory}, and its paths are relative to it",
            next_step=f"cd {shlex.quote(directory)} and resume there",
        )
    if begun.command_name != call.command_name:
        raise UsageError(
            f"the session was started by `{begun.command_name}`",
            next_step=f"{begun.command_name} --resume {shlex.quote(str(root))}",
        )
    begun = _with_secrets(begun, call.words, root)
    _require_nothing_anew(context)
    anew = {name: call.flags[name] for name in _OF_THIS_CALL}
    if anew["time_budget"] is None:
        anew["time_budget"] = begun.flags["time_budget"]
    return begun, attrs.evolve(begun, flags={**begun.flags, **anew})


def _with_secrets(begun: Call, words: tuple[str, ...], root: Path) -> Call:
    """The call with its command as it was: where secrets were masked, the user says it again."""
    options = {**begun.flags, **begun.proposer_options}
    masked = [name for name, value in options.items() if isinstance(value, str) and MASK in value]
    if masked:
        raise UsageError(
            f"the session's {', '.join(sorted(masked))} held a secret, which was not kept",
            next_step="start a new session with --keep-command",
        )
    if not is_masked(begun.words):
        if words:
            raise UsageError(
                "--resume goes on with the session's own command", next_step="leave the rest out"
            )
        return begun
    if masked_words(words) != begun.words:
        raise UsageError(
            f"the session's command held a secret, which was not kept: {shlex.join(begun.words)}",
            next_step=f"say it again: {begun.command_name} --resume {shlex.quote(str(root))} -- COMMAND",
        )
    return attrs.evolve(begun, words=words)


def _parsed(text: str, defaults: Mapping[str, Any], context: click.Context) -> tuple[Call, str]:
    document = json.loads(text)
    flags = {**defaults, **_typed(dict(document["flags"]), context)}
    words, own = tuple(map(str, document["words"])), dict(document["proposer_options"])
    options = {str(name): str(value) for name, value in own.items()}
    names = str(document["proposer"]), str(document["suffix"])
    begun = Call(words, flags, *names, options, str(document["command_name"]))
    return begun, str(document["directory"])


def _typed(flags: dict[str, Any], context: click.Context) -> dict[str, Any]:
    """The options as the command line would have given them, checked like there."""
    known = {parameter.name: parameter for parameter in context.command.get_params(context)}
    for name, value in flags.items():
        parameter = known.get(name)
        if parameter is None or value is None:
            continue
        given = tuple(shlex.split(value)) if parameter.multiple else value
        flags[name] = parameter.type_cast_value(context, given)
    return flags


def _require_nothing_anew(context: click.Context) -> None:
    from click.core import ParameterSource

    given = [
        parameter.opts[0]
        for parameter in context.command.get_params(context)
        if parameter.name is not None
        and parameter.name not in _OF_THIS_CALL
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        and parameter.param_type_name == "option"
    ]
    if given:
        raise UsageError(
            f"--resume goes on with the session's own options, so {', '.join(given)} can't be given anew",
            next_step="leave it out, or start a new session",
        )


def _damaged(path: Path, error: Exception) -> BadDataError:
    said = " ".join(str(error).split()) or type(error).__name__
    return BadDataError(f"{path} can't be read: {said}", cause="it was changed or is damaged")
