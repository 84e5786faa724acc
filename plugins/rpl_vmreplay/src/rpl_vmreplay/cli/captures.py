"""What the commands of `rpl replay` share: their one document, the capture they are for, and the replayer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_core.cli.session import Session
    from rpl_core.errors import RplError
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.interfaces.replayer import Replayer

DEFAULT_FOLDER = Path("isolate_capture")
DEFAULT_REPLAYER = "hsa"


class JsonCommand(click.Command):
    """With --json it prints ``failure(error)`` when it fails, be it for words that it does not know."""

    def __init__(self, *words: Any, failure: Callable[[RplError], dict[str, Any]], **attributes: Any) -> None:
        super().__init__(*words, **attributes)
        self._failure = failure

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from rpl_core.errors import UsageError

        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if as_json:
                self._print(ctx, UsageError(error.format_message()))
            raise

    def invoke(self, ctx: click.Context) -> Any:
        from rpl_core.errors import RplError

        try:
            return super().invoke(ctx)
        except RplError as error:
            if ctx.params.get("as_json"):
                self._print(ctx, error)
            raise

    def _print(self, ctx: click.Context, error: RplError) -> None:
        from rpl_core.cli.session import session_of

        session_of(ctx).output.json(self._failure(error))


class JsonPluginOptionsCommand(JsonCommand, PluginOptionsCommand):
    """The same with the options that plugins declare for it."""


def replayer_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Where to run, by the name of a replayer or of the device that it replays on; ``text`` is its help."""
    return click.option("--replayer", "--device", default=None, metavar="NAME", help=text)


def timeout_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How long a kernel may run; ``text`` says for what."""
    limit = click.FloatRange(0, min_open=True)
    return click.option(
        "--kernel-timeout", type=limit, default=60.0, metavar="S", help=f"{text} (default: 60)."
    )


def named_folder(argument: Path | None, option: Path | None) -> Path | None:
    """Raises UsageError when two different ones are named."""
    from rpl_core.errors import UsageError

    if argument is not None and option is not None and argument.absolute() != option.absolute():
        raise UsageError(
            f"CAPTURE is {argument} and --capture-dir is {option}", next_step="name one of them only"
        )
    return argument if argument is not None else option


def whole_capture(folder: Path) -> Capture:
    """The capture, all bytes of which match their hashes. Raises BadDataError or MissingError."""
    from rpl_core.errors import BadDataError
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.wholeness import problems_of

    opened = open_capture(folder)
    if problem := next(problems_of(opened), None):
        raise BadDataError(
            f"{folder} is not a whole capture: {problem}",
            next_step=f"rpl capture verify {folder} names all reasons",
        )
    return opened


def replayer_of(session: Session, name: str) -> Replayer:
    """By its name, or by that of a device that it stands for. Raises as the catalogue does."""
    from rpl_vmreplay.hookspecs import REPLAYERS

    offered = session.host.catalog.of(REPLAYERS)
    for contribution in offered.contributions:
        if name in contribution.value.devices:
            return contribution.value
    return offered.get(name)


def logging_replayer(session: Session, name: str | None = None) -> Replayer:
    """As ``replayer_of``; without a name the first that logs accesses, else the usual one."""
    from rpl_vmreplay.hookspecs import REPLAYERS

    if name is not None:
        return replayer_of(session, name)
    offered = (one.value for one in session.host.catalog.of(REPLAYERS).contributions)
    found = next((one for one in offered if one.logs_accesses), None)
    return found or replayer_of(session, DEFAULT_REPLAYER)
