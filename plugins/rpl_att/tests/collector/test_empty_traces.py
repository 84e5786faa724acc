"""Which decoded traces count as empty, and where a next recording should look, for every kind of folder."""

from __future__ import annotations

import json
from itertools import product

import pytest

from rpl_att.collector import better_target, is_empty

#: What stands in ``code.json`` -> whether the trace holds no instruction. Damaged is not empty.
CODES = {
    '{"code": null}': True,
    '{"code": []}': True,
    "{}": True,
    "[]": True,
    '{"code": [["s_nop 0", 0, 1]]}': False,
    '{"code": [': False,
    "\0": False,
}


@pytest.mark.parametrize("content", CODES)
def test_empty_is_what_holds_no_instruction(tmp_path, content):
    (tmp_path / "code.json").write_text(content)
    assert is_empty(tmp_path) is CODES[content]


def test_the_busiest_place_of_the_first_folder_that_shows_any(tmp_path):
    """Folders in all orders: damaged ones and those without waves are passed over."""

    def event(cu: int, start: int, time: int) -> list[int]:
        return [time, cu, 0, 0, start, 5]

    contents = {
        "damaged": "[",
        "quiet": json.dumps({"0": [], "dispatches": {}}),
        "one": json.dumps({"3": [event(2, 1, 8), event(2, 0, 16)], "dispatches": {"5": "k"}}),
        "two": json.dumps(
            {
                "1": [event(4, 1, 8)],
                "2": [event(6, 1, 8), event(6, 0, 9), event(6, 1, 10)],
                "dispatches": {"5": "k"},
            }
        ),
        "nothing": None,
    }
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "filenames.json").write_text("{}")
        if content is not None:
            (tmp_path / name / "occupancy.json").write_text(content)
    places = {"one": (2, 1 << 3), "two": (6, 1 << 2)}
    for names in product(contents, repeat=2):
        found = better_target(tuple(tmp_path / name for name in names))
        expected = next((places[name] for name in names if name in places), None)
        assert (None if found is None else (found.cu, found.shader_engine_mask)) == expected, names
    assert better_target(()) is None
