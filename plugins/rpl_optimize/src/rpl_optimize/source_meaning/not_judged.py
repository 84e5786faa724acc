"""The one way in which judging ends without a judgement."""

from __future__ import annotations


class NotJudgedError(Exception):
    """The compiler can't be asked, or says nothing that could be relied on; the message is the reason."""
