"""What the user's compiler can prove of a source before a transformation offers an edit of it.

``KernelSource.reading`` is one of these in a session and in ``rpl transform``. Places are bytes of
``KernelSource.text``. What can't be proven is a refusal with its reason, so that a transformation hands the
verdicts on as its own guards::

    used = source.reading.used_by_element(name_begin)
    loads = source.reading.neighbouring_loads([(begin, end), ...])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_optimize.interfaces.transformation import GuardVerdict

__all__ = [
    "BlockWork",
    "Constant",
    "ElementStore",
    "ElementWork",
    "Launch",
    "SourceReading",
    "Span",
    "Store",
    "TreeReduction",
]


@frozen
class Launch:
    """A launch in a source: its line, and the most work-items in x, y and z; ``None``: not settled there."""

    line: int
    block: tuple[int, int, int] | None


@frozen
class Store:
    """``TARGET = VALUE``: bytes ``[begin, target_end)`` and ``[value_begin, end)`` of the source."""

    begin: int
    target_end: int
    value_begin: int
    end: int


@frozen
class Span:
    """Bytes ``[begin, end)`` of the source."""

    begin: int
    end: int

    def of(self, text: bytes) -> bytes:
        return text[self.begin : self.end]


@frozen
class BlockWork:
    """A kernel whose blocks do their work each for itself.

    ``body`` includes its braces; ``blocks`` are the places of ``blockIdx.x`` in it, ``returns`` those of the
    word ``return``, none of them inside of a loop. Parameters that are ``changed`` have to begin each block's
    work with the value that the launch gave them. ``waits``: its work-items share memory or wait for each
    other, so all have to be done with a block's work before one begins with the next.
    """

    body: Span
    blocks: tuple[Span, ...]
    returns: tuple[Span, ...]
    changed: tuple[str, ...] = ()
    waits: bool = False

    def several(self, count: int) -> tuple[tuple[int, int, bytes], ...]:
        """Begin, end and new text of what has each of the first blocks do the work of ``count`` in turn.

        On the lines that were there: those behind keep their numbers. The rest of the grid ends at once.
        """
        begin, end = self.body.begin + 1, self.body.end - 1
        head = (
            f" const unsigned rpl_blocks = (gridDim.x + {count - 1}u) / {count}u; "
            "if (blockIdx.x >= rpl_blocks) return; "
            f"{''.join(f'const auto rpl_first_{name} = {name}; ' for name in self.changed)}"
            "for (unsigned rpl_block = blockIdx.x; rpl_block < gridDim.x; rpl_block += rpl_blocks"
            # Whoever has nothing more to do with a block comes here, by ``continue`` as well.
            f"{', ::__syncthreads()' if self.waits else ''}) {{"
            # Within its declaration a name still means the parameter: the type is its own, ``const`` as well.
            f"{''.join(f' decltype({name}) {name} = rpl_first_{name};' for name in self.changed)}"
        )
        edits = [
            (begin, begin, head.encode()),
            # A number as ``blockIdx.x`` is one, and no variable that a reference could change.
            *((place.begin, place.end, b"(+rpl_block)") for place in self.blocks),
            *((place.begin, place.end, b"continue") for place in self.returns),
            (end, end, b"} "),
        ]
        return tuple(sorted(edits))


@frozen
class ElementStore:
    """``POINTER[INDEX] = VALUE``, of a number of so many bytes."""

    pointer: str
    target: Span
    value: Span
    element_bytes: int


@frozen
class ElementWork:
    """A kernel that stores elements at the index of its work-item in the grid, and does nothing else.

    ``index`` is the variable that holds ``blockIdx.x * blockDim.x + threadIdx.x``; ``only_subscripts`` says
    that the work uses it under subscripts alone. ``condition`` compares it with one number for all: where it
    holds (``condition_holds``; else fails) the work is done, and for any smaller index, too. ``declarations``
    are the work's own variables, in front of its one store then.
    """

    body: Span
    index: str
    index_type: str
    only_subscripts: bool
    condition: Span | None
    condition_holds: bool
    declarations: tuple[Span, ...]
    stores: tuple[ElementStore, ...]


@frozen
class TreeReduction:
    """A ``for`` that begins at byte ``begin``, in which a block reduces a shared array by halves.

    ``edits`` are begin, end and new text of what hands the last steps from lane to lane: the same operations
    on the same pairs in the same order.
    """

    begin: int
    line: int
    array: str
    edits: tuple[tuple[int, int, bytes], ...]


@frozen
class Constant:
    """An integer with a name: ``#define NAME 16``, ``constexpr int NAME = 16;``.

    Bytes ``[begin, end)`` of the source are its digits, in ``line``. ``refused`` says why it can't be tuned;
    ``changes_launches``: the host takes launches from it, and nothing else.

    ``block.x``, ``block.y`` and ``block.z`` are block sizes without a name, as in
    ``kernel<<<(n + 255) / 256, 256>>>``. ``others`` are the further places of such a one: begin and end of
    the digits, and by how much the number is less there.
    """

    name: str
    line: int
    begin: int
    end: int
    value: int
    changes_launches: bool = False
    refused: str | None = None
    others: tuple[tuple[int, int, int], ...] = ()

    def written(self, value: int) -> tuple[tuple[int, int, bytes], ...]:
        """What the source says with another value: bytes ``[begin, end)`` and the digits in their place."""
        places = ((self.begin, self.end, 0), *self.others)
        return tuple((begin, end, b"%d" % (value - less)) for begin, end, less in places)


class SourceReading(ABC):
    """One source as one compiler reads it for the device, macros expanded and names resolved."""

    @abstractmethod
    def used_by_element(self, declared_at: int, block: tuple[int, ...] | None = None) -> GuardVerdict:
        """Whether nothing depends on where the rows of an array lie.

        ``declared_at`` is where the name of the array variable begins in its declaration, inside a function.
        Every reference to it stands under exactly all of its subscripts and is loaded or stored there: no
        ``sizeof``, no pointer or reference, nothing handed on. All subscripts but the first are proven to
        lie below their extents. ``block`` says how many work-items every launch has at most in x, y and z.
        Guard ``used-by-element``.
        """

    @abstractmethod
    def neighbouring_loads(self, places: Sequence[tuple[int, int]]) -> GuardVerdict:
        """Whether the expressions at ``places`` load one element after the other, and do nothing else.

        Each is the whole value of a variable of its own, declared by one statement after the other, and says
        ``POINTER[INDEX]``, then ``POINTER[INDEX + 1]`` and so on. The pointer is a parameter of the function
        itself to constant elements, and the elements' addresses follow each other: no index wraps around.
        Indices are of local variables and numbers alone: no call, assignment, macro or ``volatile``.
        Guard ``neighbouring-loads``.
        """

    @abstractmethod
    def launches(self, kernel: str) -> tuple[Launch, ...] | str:
        """All launches of a kernel in the file, or why they are not known.

        Constants are worked out as the compiler resolves them: ``constexpr`` variables, template arguments,
        ``dim3`` variables that are never changed. Functions of HIP that launch what they are given count. A
        kernel whose address is taken otherwise is one whose launches are not known.
        """

    @abstractmethod
    def streamed_stores(self, kernel: str) -> tuple[Store, ...] | str:
        """Stores of a kernel that only hand results out, or why there is none.

        Each is a statement ``PARAMETER[INDEX] = VALUE`` to a number, and the kernel does nothing else with
        that pointer parameter, in no instance of a template. What stores the same is
        ``__builtin_nontemporal_store(VALUE, &PARAMETER[INDEX])``.
        """

    @abstractmethod
    def block_work(self, kernel: str) -> BlockWork | str:
        """Where a kernel names its block, if one block can do the work of several in turn, or why it can't.

        In every instance of a template: nothing is kept beyond a block's work but parameters, and whoever is
        called is looked into and asks for no index of its own. Barriers are proven to be such that every
        work-item comes to each; nothing else that work-items do together is known.
        """

    @abstractmethod
    def element_work(self, kernel: str) -> ElementWork | str:
        """The parts of a kernel that stores ``P[i] = VALUE`` for its own ``i`` alone, or why it is none.

        As ``block_work``; no parameter changes, and of what it stores to it reads no other element.
        """

    @abstractmethod
    def tree_reductions(self, kernel: str) -> tuple[TreeReduction, ...] | str:
        """Loops ``for (s = N; s > 0; s /= 2)`` of ``if (t < s) A[t] = F(A[t], A[t + s]);``, or why there is
        none.

        In every instance of a template: ``t`` is ``threadIdx.x``, all work-items take each step, a barrier
        stands between two, and ``F`` does nothing but compute. The edit leaves the same bits in ``A``.
        """

    @abstractmethod
    def separate_pointers(self, kernel: str) -> tuple[str, ...] | str:
        """Pointer parameters by which a kernel reaches what no other pointer reaches, or why none is known.

        Every launch in the file gives each pointer parameter a variable of its own that nothing is written to
        but the address of an allocation (``hipMalloc`` and its kin), and the kernel, whoever it calls
        included, makes no pointer of anything else. Where work-items wait for each other, those are left out
        that the kernel stores by. Launches of other files are not looked for.
        """

    @abstractmethod
    def compiled(self, text: bytes, architecture: str) -> bytes | str:
        """The code object that the user's compiler makes of ``text`` in place of the source, or why none.

        By the options of the build; ``architecture`` is used where they name none.
        """

    @abstractmethod
    def macros(self) -> frozenset[str] | None:
        """The names of all macros of the unit, so that new text can avoid them; ``None``: not known."""

    @abstractmethod
    def constants(self, kernel: str) -> tuple[Constant, ...] | str:
        """Constants of the file that ``kernel`` or its launches depend on, or why they are not known.

        Those that can't be tuned have the reason. Each is judged with another value in its place, as an edit
        that declares ``TunedConstants`` is.
        """
