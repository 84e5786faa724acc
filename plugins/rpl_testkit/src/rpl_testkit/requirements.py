"""What a test needs from outside (data, compilers, programs): skip with a sentence, count, fail in CI.

With ``CI=true`` an absence fails the test, unless ``RPL_ALLOW_SKIP`` (comma list of names, or ``all``) names
it: a build machine that lost its compiler must not look green.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

#: Overrides where the real recordings lie (default: ``../shared/data`` beside the project).
DATA_VARIABLE = "RPL_SHARED_DATA"
ALLOW_VARIABLE = "RPL_ALLOW_SKIP"

_SKIP_TEXT = re.compile(r"needs (?P<name>[\w.+-]+):")


def absent(name: str, reason: str, environment: Mapping[str, str] | None = None) -> NoReturn:
    """Skip the running test because ``name`` is absent, or fail it where absence is not allowed."""
    variables = os.environ if environment is None else environment
    text = f"needs {name}: {reason}"
    allowed = {part.strip() for part in variables.get(ALLOW_VARIABLE, "").split(",")}
    if variables.get("CI", "").lower() == "true" and not allowed & {name, "all"}:
        pytest.fail(f"{text} (with CI=true this fails unless {ALLOW_VARIABLE} names {name!r})", pytrace=False)
    pytest.skip(text)


def require(name: str) -> Path:
    """The path of program ``name``; ends the test when it is absent."""
    found = shutil.which(name)
    if found is None:
        absent(name, "no such program on PATH")
    return Path(found)


def find_data(project: Path) -> Path:
    """The folder of real recordings beside ``project`` or one of its parents; ends the test when absent."""
    override = os.environ.get(DATA_VARIABLE)
    if override is not None:
        places = [Path(override)]
    else:
        places = [folder.parent / "shared" / "data" for folder in (project, *project.parents)]
    for place in places:
        if place.is_dir():
            return place
    absent("data", f"the real recordings are not at {places[0]} (set {DATA_VARIABLE} to their folder)")


def skips_by_need(reasons: Iterable[str]) -> dict[str, int]:
    """How many tests were skipped for which need, most frequent first; other skips are not counted."""
    counts = Counter(match["name"] for reason in reasons if (match := _SKIP_TEXT.search(reason)))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
