"""Guards on the loop itself: syntax, counting form, nesting, trip count, and what explicit copies need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.loops.counted import NotCounted
from rpl_llm_unroll.syntax.tree import first_error, line_of
from rpl_llm_unroll.unroll_edits import explicit_problem
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_llm_unroll.guards.request import UnrollRequest
    from rpl_llm_unroll.loops.view import LoopView

_STATEMENT_LISTS = ("compound_statement", "preproc_", "case_statement")


def parsed(view: LoopView) -> GuardVerdict:
    """A kernel with a syntax error was perhaps not understood."""
    error = first_error(view.kernel.outer)
    if error is not None:
        return GuardVerdict("parsed", False, "the kernel has text that does not parse", line_of(error))
    return GuardVerdict("parsed", True, "the whole kernel parses")


def counted(view: LoopView) -> GuardVerdict:
    """Only loops that count with one integer are unrolled."""
    if isinstance(view.form, NotCounted):
        return GuardVerdict("counted", False, view.form.reason, view.form.line)
    return GuardVerdict("counted", True, f"counts with {view.form.variable}")


def innermost(view: LoopView) -> GuardVerdict:
    """Copies of an inner loop cost registers and code without running in parallel."""
    inner = view.loop.inner
    if inner:
        reason = "contains another loop, which is the one to unroll"
        return GuardVerdict("innermost", False, reason, line_of(inner[0]))
    return GuardVerdict("innermost", True, "contains no other loop")


def enough_iterations(request: UnrollRequest) -> GuardVerdict:
    """Fewer iterations than copies leave only the remainder."""
    trips = request.view.trips
    if trips is None:
        return GuardVerdict("trip-count", True, "the trip count is not a constant; a remainder is kept")
    fits = trips.runs >= request.factor
    rest = trips.runs % request.factor
    reason = (
        f"{trips.runs} iterations, remainder {rest}"
        if fits
        else (f"{trips.runs} iterations are fewer than {request.factor} copies")
    )
    return GuardVerdict("trip-count", fits, reason, None if fits else request.view.loop.line)


def pragma_form(request: UnrollRequest) -> GuardVerdict:
    """A pragma line needs a place between statements."""
    parent = request.view.loop.node.parent
    if request.form == "pragma" and (parent is None or not parent.type.startswith(_STATEMENT_LISTS)):
        reason = "the loop is a branch or body without braces, where no pragma line can stand"
        return GuardVerdict("pragma-form", False, reason, request.view.loop.line)
    return GuardVerdict("pragma-form", True, "a pragma line can stand before the loop")


def explicit_form(request: UnrollRequest) -> GuardVerdict:
    """Whether copies in the source compute the same; the pragma leaves that to the compiler."""
    if request.form == "pragma":
        return GuardVerdict("explicit-form", True, "the compiler makes the copies")
    problem = explicit_problem(request.view)
    line = None if problem is None else request.view.loop.line
    return GuardVerdict(
        "explicit-form", problem is None, problem or "the body can be repeated as it stands", line
    )
