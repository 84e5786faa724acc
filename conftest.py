"""What all tests of this repository share: fixed seeds, no settings of their user, signals as of a terminal.

The fixtures come from rpl_testkit.pytest_plugin, which pytest finds by rpl-testkit's entry point.
"""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from rpl_core.plugins import entry_points

#: The same examples in every run: a change that breaks nothing can't fail. `tools/fuzz` draws others.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("random", derandomize=False, database=None, deadline=None)
settings.load_profile("fixed")
# The library also draws constants from the modules of the project that are loaded, so that the examples
# would depend on which tests ran before in the same process.
providers._get_local_constants = providers.Constants


def pytest_sessionstart() -> None:
    """Started by `nohup` or in the background, signals that tests send to themselves would be ignored."""
    gc.disable()  # until all tests are collected: nothing of them is garbage
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def pytest_collection_finish() -> None:
    """Else each full collection walks over the objects of eight thousand tests: a quarter of all time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ceilings that were measured on the GPU of a developer are theirs, not those of the tests.

    Nor does pip ask the index for a newer pip in each fresh environment: minutes, if nobody answers.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        # Each of the many plugins that tests install would be imported in a child first.
        environment.setenv("RPL_IMPORT_LIMIT_S", "0")
        environment.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        yield


@pytest.fixture(scope="session", autouse=True)
def installed_packages_are_read_once() -> Iterator[None]:
    """Thousands of commands in one process would each read what all packages of the environment say."""
    read, known = entry_points._entries, dict[Any, Any]()

    def entries(distribution: Any, groups: tuple[str, ...], problems: list[str]) -> Any:
        place = getattr(distribution, "_path", None)
        if not str(place).startswith(sys.prefix):
            return read(distribution, groups, problems)
        key = (str(place), groups, tuple(sys.path))  # another path may hold a copy that counts instead
        if key not in known:
            known[key] = tuple(read(distribution, groups, problems))
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_points, "_entries", entries)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """No test looks at a disk after a power failure, and some thousands of syncs take a minute."""
    connect = sqlite3.connect

    def connect_unsynced(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(database, *arguments, **options)
        if not options.get("uri"):  # those only read
            connection.execute("PRAGMA synchronous = OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        patch.setattr(sqlite3, "connect", connect_unsynced)
        yield
