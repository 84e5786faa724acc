"""What all tests of this repository share: fixed seeds, and signals as a terminal gives them.

The fixtures come from rpl_testkit.pytest_plugin, which pytest finds by rpl-testkit's entry point.
"""

from __future__ import annotations

import signal

from hypothesis import settings
from hypothesis.internal.conjecture import providers

#: The same examples in every run: a change that breaks nothing can't fail. `tools/fuzz` draws others.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("random", derandomize=False, database=None, deadline=None)
settings.load_profile("fixed")
# The library also draws constants from the modules of the project that are loaded, so that the examples
# would depend on which tests ran before in the same process.
providers._get_local_constants = providers.Constants


def pytest_sessionstart() -> None:
    """Started by `nohup` or in the background, signals that tests send to themselves would be ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
