"""`rpl selftest` end to end over the profiler's stand-in: what is right is confirmed, planted faults are not."""

from __future__ import annotations

import json

import pytest


def outcomes(lines):
    return {name: line["outcome"] for name, line in lines.items()}


def test_a_machine_where_all_is_right(machine):
    lines, document = machine.selftest(exit_code=75)
    print(json.dumps(document, indent=1))
