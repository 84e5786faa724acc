"""``rpl completion``: completion of commands, options and values in bash, zsh and fish.

Click makes the scripts and completes commands and options; values (devices, kernels of the latest run, keys
of ``--sort``) come from whoever declares the option. What goes wrong while a shell asks completes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from rpl_core.interfaces.options import CommandOption

__all__ = ["completing", "completion", "device_names", "values_of"]

_VARIABLE = "_RPL_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, devices, kernels and more.

    \b
    eval "$(rpl completion bash)"                         in ~/.bashrc
    eval "$(rpl completion zsh)"                          in ~/.zshrc
    rpl completion fish > ~/.config/fish/completions/rpl.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root()
    script = found(root.command, {}, "rpl", _VARIABLE)
    session_of(context).output.raw(script.source_template % script.source_vars())


def completing(names: Callable[[click.Context], Iterable[str]]) -> Any:
    """What click asks for the values of a parameter; ``names`` gives all of them."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            known = sorted(set(names(context)))
        except Exception:  # noqa: BLE001 - a shell that asks for completions can do nothing with an error
            return []
        wanted = begun.lower()
        return [CompletionItem(name) for name in known if name.lower().startswith(wanted)]

    return complete


def device_names(context: click.Context) -> Iterable[str]:
    """Products and families that installed plugins know."""
    models = [c.value for c in session_of(context).plugin_overview.catalog.devices().contributions]
    return [name for model in models for name in (model.name, model.architecture)]


def values_of(option: CommandOption[Any]) -> Any:
    """For an option that a plugin declares: its ``values``, of the run that the command would read."""

    def names(context: click.Context) -> Iterable[str]:
        given = context.params.get("run") or context.params.get("directory")
        place: Path = given or session_of(context).latest_run
        return option.values(place) if option.values else ()

    return completing(names) if option.values else None
