"""Regular expressions of the C library, which is what the capture tool searches names with."""

from __future__ import annotations

import ctypes

from rpl_core.errors import UsageError

_EXTENDED = 1  # REG_EXTENDED of <regex.h>, the same in glibc and musl
#: glibc's regex_t takes 64 bytes on x86-64.
_COMPILED_BYTES = 1024
_MESSAGE_BYTES = 200


def require_expression(text: str) -> str:
    """``text``, or UsageError with what the C library has against it, before the program is started."""
    if "\0" in text:
        raise UsageError("--kernel holds a NUL character")
    library = ctypes.CDLL(None)
    compiled = ctypes.create_string_buffer(_COMPILED_BYTES)
    code = library.regcomp(compiled, text.encode("utf-8", "surrogateescape"), _EXTENDED)
    if code:
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        library.regerror(code, compiled, message, len(message))
        raise UsageError(
            f"--kernel {text!r} is no extended regular expression: {message.value.decode()}",
            next_step="put a backslash before characters such as ( ) [ ] * that stand for themselves",
        )
    library.regfree(compiled)
    return text
