"""Protobuf messages by the million: one message laid out by the library, its numbers stamped in as columns.

A varint may be longer than it needs to be (protobuf.dev, "Encoding": readers take up to 10 bytes), so all
messages of a kind get the same length, and numpy fills in what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rpl_core.text.table import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["placeholder", "stamp_messages", "varint_width"]

_BITS = 7


class Serialisable(Protocol):
    """A protobuf message."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name


def varint_width(largest: int) -> int:
    """Bytes of a varint that holds values up to ``largest`` (>= 0).

    At least 2: a placeholder of one byte could occur anywhere in a message.
    """
    return max(2, -(-largest.bit_length() // _BITS))


def placeholder(width: int, number: int) -> int:
    """A value whose varint takes ``width`` bytes and that nothing else has; ``number`` is 1 to 31."""
    return (1 << (_BITS * width)) - 1 - number


def stamp_messages(
    prototype: Serialisable, columns: Mapping[tuple[int, int], NDArray[np.integer]]
) -> NDArray[np.uint8]:
    """Serialised copies of ``prototype``, shape (n, bytes), with its placeholders replaced.

    ``columns`` maps (width, number) of a placeholder to its values (n,), which must not be negative. Raises
    ``ValueError`` for a placeholder that the prototype does not hold exactly once.
    """
    raw = prototype.SerializeToString()
    count = len(next(iter(columns.values())))
    messages = np.broadcast_to(np.frombuffer(raw, dtype=np.uint8), (count, len(raw))).copy()
    for (width, number), values in columns.items():
        wanted = _varint(placeholder(width, number))
        if raw.count(wanted) != 1:
            raise ValueError(
                f"placeholder {number} of {width} bytes occurs {counted(raw.count(wanted), 'time')}"
            )
        at = raw.index(wanted)
        _stamp(messages[:, at : at + width], values)
    stamped: NDArray[np.uint8] = messages
    return stamped


def _stamp(place: NDArray[np.uint8], values: NDArray[np.integer]) -> None:
    width = place.shape[1]
    left = values.astype(np.uint64)
    for i in range(width):
        place[:, i] = (left & np.uint64(0x7F)).astype(np.uint8) | np.uint8(0x80 if i < width - 1 else 0)
        left >>= np.uint64(_BITS)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= _BITS
    out.append(value)
    return bytes(out)
