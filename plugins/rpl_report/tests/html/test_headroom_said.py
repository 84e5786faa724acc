"""What the page says of a kernel's headroom: the share and where it is known from, or why there is none."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest

from rpl_report.html.kernels import _headroom


@pytest.mark.parametrize(
    ("fraction", "source", "reason"),
    list(product((None, 0.0, 0.25, 1.0), (None, "", "the roofline"), (None, "", "no counters"))),
)
def test_a_share_has_its_source_and_an_unknown_one_its_reason(fraction, source, reason):
    label = SimpleNamespace(headroom_fraction=fraction, headroom_source=source, headroom_reason=reason)
    said = _headroom(label)
    if fraction is None:
        assert said == (f"unknown ({reason})" if reason else "")
        return
    share, _, where = said.partition(" (")
    assert float(share.split()[0].rstrip("%")) == pytest.approx(100 * fraction)
    assert where == f"{source or 'source unknown'})"


def test_nothing_is_said_of_a_kernel_without_a_label():
    assert _headroom(None) == ""
