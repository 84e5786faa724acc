"""What a session with a language model can be told, each option once; the key is never one.

Options travel to the proposer as texts (``ProposalRequest.options``), because a session's ledger keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from rpl_core.cli.command_options import declared, option
from rpl_core.config import number_within, one_of, text, whole_within
from rpl_core.errors import UsageError
from rpl_core.interfaces.options import SettingKind
from rpl_core.values import frozen
from rpl_llm_unroll.interfaces.client import ModelRequest

DEFAULT_TOKEN_BUDGET = 200_000
DEFAULT_CLIENT = "openai"

Form = Literal["standard", "compact", "full-source"]
FORMS: tuple[Form, ...] = ("standard", "compact", "full-source")


def _lines(value: Any) -> frozenset[int]:
    line = whole_within(1, 10**9)
    return frozenset(line(part.strip()) for part in text(value).split(",") if part.strip())


def _path(value: Any) -> Path:
    return Path(text(value))


@frozen
class LlmSettings(ModelRequest):
    """``price_in`` and ``price_out`` are per million tokens, in the currency of ``money_budget``.

    ``samples`` kernels are tried out for each candidate that is measured. ``replay`` answers from a file of
    recorded exchanges; nothing is sent then. ``harmless_lines`` of the
    source may look like secrets.
    """

    client: str = option(
        "--llm-client",
        setting="plugins.llm-unroll.llm-client",
        kind=SettingKind.ENDPOINT,
        parse=text,
        unsaid=DEFAULT_CLIENT,
        metavar="NAME",
        help="Who asks the model: openai, or what plugins bring (default openai).",
    )
    token_budget: int = option(
        "--token-budget",
        setting="plugins.llm-unroll.token-budget",
        kind=SettingKind.VALUE,
        parse=whole_within(1, 10**12),
        unsaid=DEFAULT_TOKEN_BUDGET,
        type=int,
        metavar="N",
        help="Tokens of a session (default 200000).",
    )
    money_budget: float | None = option(
        "--money-budget",
        setting="plugins.llm-unroll.money-budget",
        kind=SettingKind.VALUE,
        parse=number_within(0, 1e9),
        unsaid=None,
        type=float,
        metavar="M",
        help="Money for a session; needs prices.",
    )
    price_in: float | None = option(
        "--price-in",
        setting="plugins.llm-unroll.price-in",
        kind=SettingKind.VALUE,
        parse=number_within(0, 1e6),
        unsaid=None,
        type=float,
        metavar="M",
        help="Price of a million prompt tokens.",
    )
    price_out: float | None = option(
        "--price-out",
        setting="plugins.llm-unroll.price-out",
        kind=SettingKind.VALUE,
        parse=number_within(0, 1e6),
        unsaid=None,
        type=float,
        metavar="M",
        help="Price of a million reply tokens.",
    )
    samples: int = option(
        "--samples",
        setting="plugins.llm-unroll.samples",
        kind=SettingKind.VALUE,
        parse=whole_within(1, 64),
        unsaid=1,
        type=int,
        metavar="N",
        help="Kernels asked for and run shortly per candidate; the fastest is measured (default 1).",
    )
    replay: Path | None = option(
        "--replay-llm",
        parse=_path,
        unsaid=None,
        metavar="FILE",
        help="Take replies from exchanges.jsonl.",
    )
    replay_other_figures: bool = option(
        "--replay-other-figures",
        parse=lambda value: one_of("true", "false")(value) == "true",
        unsaid=False,
        is_flag=True,
        help="Replay even if figures were measured anew since.",
    )
    harmless_lines: frozenset[int] = option(
        "--allow-secret-lines",
        parse=_lines,
        unsaid=frozenset(),
        metavar="N,...",
        help="Lines of the source that only look like secrets.",
    )
    form: Form = "standard"  # --compact, --full-source


#: By the name of the option, the field and what it is declared as.
OPTIONS = {one.name: (field, one) for field, one in declared(LlmSettings).items()}
#: The form of the prompt among the texts.
FORM = "prompt"


def read_settings(options: Mapping[str, str]) -> LlmSettings:
    """The settings. Raises ``UsageError`` for impossible values and for a money budget without prices."""
    unknown = sorted(options.keys() - OPTIONS.keys() - {FORM})
    if unknown:
        raise UsageError(f"the proposer 'llm' has no option {unknown[0]!r}")
    if not options.get("model"):
        raise UsageError("no model is named", next_step="add --model NAME")
    values: dict[str, Any] = {}
    for name, (field, one) in OPTIONS.items():
        if name in options and one.parse is not None:
            values[field] = _parsed(name, one.parse, options[name])
    if FORM in options:
        values["form"] = _parsed(FORM, one_of(*FORMS), options[FORM])
    settings = LlmSettings(**values)
    if settings.money_budget is not None and None in (settings.price_in, settings.price_out):
        raise UsageError(
            "a money budget needs to know what tokens cost",
            next_step="add --price-in and --price-out, per million tokens",
        )
    return settings


def _parsed(name: str, parse: Any, value: str) -> Any:
    from rpl_core.config import parsed

    return parsed(parse, value, "flag", name)
