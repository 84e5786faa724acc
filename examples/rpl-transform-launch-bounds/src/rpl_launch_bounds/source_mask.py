"""Blank out what is not code, so that searching finds code only and offsets stay true."""

from __future__ import annotations

import re

_NOT_CODE = re.compile(
    rb"""
      //(?:\\\r?\n|[^\n])*                    # line comment, possibly continued
    | /\*.*?(?:\*/|\Z)                        # block comment
    | R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"   # raw string
    | "(?:\\.|[^"\\\n])*(?:"|$)               # string
    | '(?:\\.|[^'\\\n]){1,8}'                 # character; not the ' in 1'000'000
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIRECTIVE = re.compile(rb"^[ \t]*\#(?:\\\r?\n|[^\n])*", re.MULTILINE)


def without_comments(text: bytes) -> bytes:
    """``text`` with comments and literals replaced by blanks of equal length; line feeds stay."""
    return _NOT_CODE.sub(_blank, text)


def code_only(text: bytes) -> bytes:
    """``text`` without comments, literals and preprocessor directives (macros are nobody's code yet)."""
    return _DIRECTIVE.sub(_blank, without_comments(text))


def _blank(match: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", match[0])
