"""The leaf pages of a table B-tree, found through its interior pages.

Layout: https://www.sqlite.org/fileformat2.html, section 1.6. Anything unexpected ends the walk with
``UnsupportedLayoutError``; the caller then reads through SQLite.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import distinct_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column

__all__ = ["PADDING", "PageFile", "UnsupportedLayoutError"]

_INTERIOR, _LEAF = 5, 13
_INTERIOR_HEADER = 12
#: Levels of a tree that SQLite itself follows (BTCURSOR_MAX_DEPTH).
_DEEPEST = 20
# What is computed of a batch at a time should stay in the caches of a core (1 to 4 MiB measured alike).
_BATCH_BYTES = 2 << 20


#: Bytes behind the last page of a batch that can be read, so that windows may begin at any byte of it.
PADDING = 256


class UnsupportedLayoutError(Exception):
    """The table holds something that only SQLite itself should interpret."""


class PageFile:
    """Read access to the pages of a database file that nobody writes."""

    def __init__(self, descriptor: int, page_bytes: int) -> None:
        self._descriptor = descriptor
        self.page_bytes = page_bytes
        self.page_count = os.fstat(descriptor).st_size // page_bytes

    def leaves(self, root: int) -> Int64Column:
        """Page numbers of all leaves below ``root``, in row order."""
        level = np.array([root], np.int64)
        for _ in range(_DEEPEST):
            if not len(level) or level.min() < 1 or level.max() > self.page_count:
                break
            if len(distinct_values(level)) < len(level):
                break  # every page of a tree has one parent
            if self._page(int(level[0]))[0] == _LEAF:
                return level
            level = np.concatenate([self._children(int(page)) for page in level])
        raise UnsupportedLayoutError

    def _page(self, number: int) -> NDArray[np.uint8]:
        start = (number - 1) * self.page_bytes
        page = np.frombuffer(os.pread(self._descriptor, self.page_bytes, start), np.uint8)
        if len(page) != self.page_bytes:
            raise UnsupportedLayoutError
        return page

    def _children(self, number: int) -> Int64Column:
        page = self._page(number)
        if page[0] != _INTERIOR:
            raise UnsupportedLayoutError
        cells = int(page[3:5].view(">u2")[0])
        end = _INTERIOR_HEADER + 2 * cells
        if end > self.page_bytes:
            raise UnsupportedLayoutError
        pointers = page[_INTERIOR_HEADER:end].view(">u2").astype(np.int64)
        if len(pointers) and int(pointers.max()) + 4 > self.page_bytes:
            raise UnsupportedLayoutError
        children = page[pointers[:, None] + np.arange(4)].view(">u4").astype(np.int64).reshape(-1)
        rightmost = page[8:12].view(">u4").astype(np.int64)
        return np.concatenate([children, rightmost])

    def batches(self, leaves: Int64Column) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """The bytes of the leaves, many pages at a time, with padding behind them, and how many pages.

        One buffer serves all batches: take what is needed before asking for the next.
        """
        pages_per_batch = max(_BATCH_BYTES // self.page_bytes, 1)
        buffer = np.zeros(min(pages_per_batch, len(leaves)) * self.page_bytes + PADDING, np.uint8)
        for first in range(0, len(leaves), pages_per_batch):
            pages = leaves[first : first + pages_per_batch]
            self._gather(pages, buffer)
            yield buffer[: len(pages) * self.page_bytes + PADDING], len(pages)

    def _gather(self, pages: Int64Column, buffer: NDArray[np.uint8]) -> None:
        size = self.page_bytes
        breaks = np.flatnonzero(np.diff(pages) != 1) + 1
        for begin, end in zip([0, *breaks.tolist()], [*breaks.tolist(), len(pages)], strict=True):
            target = buffer[begin * size : end * size].data
            if os.preadv(self._descriptor, [target], int(pages[begin] - 1) * size) != len(target):
                raise UnsupportedLayoutError
