"""Find out before minutes of building and measuring that no model could be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.asking.endpoint import Endpoint
from rpl_llm_unroll.asking.exchange_log import read_exchanges
from rpl_llm_unroll.asking.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping


def require_ready(options: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raises what the first proposal would raise for its options, its key or its replay file."""
    settings = read_settings(options, environment)
    if settings.replay is not None:
        read_exchanges(settings.replay)
    else:
        Endpoint(settings, environment, lambda _line: None)
