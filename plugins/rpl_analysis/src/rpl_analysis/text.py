"""How kernels, work and figures read in tables and sentences about a document, the same everywhere.

Names: in the form that the user asked for, short forms that stay apart, tables that fit a width. Figures: few
digits, the unit beside them, a dash for the unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rpl_core.text import format_table, printable, readable, shorten

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import SpeedupForecastPart
    from rpl_analysis.contracts.profile import OccupancyPart
    from rpl_core.model.trace import Trace

#: Names of other things than kernels stay as they are.
_MANGLED = "_Z"


def shown_names(
    names: Iterable[str], form: str = "short", symbols: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Recorded name -> printable name in ``form``: "short", "full" (demangled) or "mangled".

    ``symbols`` are linker's names as far as they are known. Different names read differently in every form;
    short ones depend on all of ``names``: give those of a whole document.
    """
    recorded = list(dict.fromkeys(names))
    if form == "mangled":
        known = symbols or {}
        return {name: readable(known.get(name, name)) for name in recorded}
    try:
        from rpl_codeobject.kernel_names import short_names
    except ModuleNotFoundError:  # rpl-codeobject was taken away: the rest still shows something
        return {name: readable(name) for name in recorded}
    full = _demangled(recorded)
    if form == "full":
        return {name: readable(full[name]) for name in recorded}
    short = short_names(full.values())
    return {name: readable(short[full[name]] or full[name]) for name in recorded}


def _demangled(names: list[str]) -> dict[str, str]:
    """By recorded name; a name whose demangled form is recorded too, or taken, stays as it is."""
    mangled = [name for name in names if name.startswith(_MANGLED)]
    if not mangled:
        return {name: name for name in names}
    from rpl_codeobject.demangle import demangled

    shown = demangled(mangled)
    taken = set(names)
    full = {}
    for name in names:
        text = shown.get(name, name)
        full[name] = name if text in taken else text
        taken.add(full[name])
    return full


def names_like(part: str, names: Sequence[str]) -> list[str]:
    """The recorded names that ``part`` can mean: a whole name in any form, else a part of one."""
    shown = shown_names(names)
    return (
        [name for name in names if name == part]
        or [name for name in names if shown[name] == part]
        or [name for name in names if part in name or part in shown[name]]
    )


def linker_names(traces: Iterable[Trace]) -> dict[str, str]:
    """Recorded name -> linker's name, where there is one that differs."""
    symbols_of: dict[str, set[str]] = {}
    for kernel in (kernel for trace in traces for kernel in trace.kernels):
        if kernel.symbol and kernel.symbol != kernel.name:
            symbols_of.setdefault(kernel.name, set()).add(kernel.symbol)
    return {name: symbols.pop() for name, symbols in symbols_of.items() if len(symbols) == 1}


# Short forms of long names that stay apart: generated kernels often differ in their middle only.

#: Names below this width have no room for a third piece.
_LEAST_WIDTH = 12
#: A piece begins up to so many characters before the difference, at the beginning of a word (chosen).
_WORD = 8


def shorten_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Every name cut to ``width`` characters, different names differently (from 12 on).

    Names whose ends look alike show the place where they differ in between:
    ``Cijk_Ali…MT64x64…_WG32_8_1`` and ``Cijk_Ali…MT96x64…_WG32_8_1``. Those that one place does not tell
    apart end in a number. The answer depends on the set of names alone, not on their order.
    """
    shown = {name: shorten(name, width) for name in names}
    if width < _LEAST_WIDTH:
        return shown
    often = Counter(shown.values())
    head, tail = _ends(width)
    same_ends: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, short in shown.items():
        if often[short] > 1:
            same_ends[name[:head], name[-tail:]].append(name)
    for group in same_ends.values():
        shown.update(_apart(group, width))
    return _numbered(shown, width)


def named_few(names: Sequence[str], *, most: int = 3, width: int = 80) -> str:
    """The first of several names in a sentence, short enough to be read and still different."""
    few = list(names[:most])
    short = shorten_apart(few, width)
    return "; ".join([*(short[name] for name in few), *(["..."] if len(names) > most else [])])


def _apart(group: Sequence[str], width: int) -> dict[str, str]:
    """Names that look alike, with the first difference shown; those that still do, with their next one."""
    waiting, shown = [list(group)], {}
    while waiting:
        names = waiting.pop()
        place = _first_difference(min(names), max(names))
        pieces: dict[str, list[str]] = defaultdict(list)
        for name in names:
            pieces[_around(name, place, width)].append(name)
        for short, same in pieces.items():
            if len(same) == 1 or len(pieces) == 1:
                shown.update(dict.fromkeys(same, short))
            else:
                waiting.append(same)
    return shown


def _first_difference(left: str, right: str) -> int:
    """Where two names part; the first and the last of several in order part where all of them do."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _numbered(shown: dict[str, str], width: int) -> dict[str, str]:
    """What reads alike all the same gets numbers, in the order of the full names."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(shown):
        alike[shown[name]].append(name)
    for short, names in alike.items():
        for number, name in enumerate(names if len(names) > 1 else (), 1):
            mark = f"#{number}"
            shown[name] = short[: width - len(mark)] + mark
    return shown


def _around(name: str, place: int, width: int) -> str:
    """``name`` as its beginning, what stands at ``place``, and its end; ``width`` characters."""
    head, tail = _ends(width)
    middle = width - 2 - head - tail
    begin = max(_word_begin(name, place, min(_WORD, middle // 2)), head)
    if begin + middle >= len(name) - tail:
        return f"{name[: width - 1 - (len(name) - begin)]}…{name[begin:]}" if begin else name
    return f"{name[:head]}…{name[begin : begin + middle]}…{name[-tail:]}"


def _ends(width: int) -> tuple[int, int]:
    """Characters of the first and of the last of three pieces."""
    return (width - 2) // 3, (width - 2) // 4


def _word_begin(name: str, place: int, nearest: int) -> int:
    """Where the word at ``place`` begins, if that is at most ``nearest`` characters before."""
    for begin in range(place, max(place - nearest, 0), -1):
        if not name[begin - 1].isalnum():
            return begin
    return max(place - 2, 0)


# Tables that fit a width: they give way in their first column, then lose columns.

_BETWEEN = 2
_LEAST_NAME = 20


def fit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Sequence[str] = (),
    droppable: Sequence[str] = (),
    longest_name: int | None = None,
) -> tuple[str, tuple[str, ...]]:
    """An aligned table of at most ``width`` characters, and the columns that it lost, in their order.

    The first column holds names, which are cut to ``longest_name`` characters and further down to 20, such
    that different names stay apart. If that does not do, the columns ``droppable`` go, one after the other.
    """
    columns_left = list(range(len(columns)))
    for dropped in (None, *droppable):
        if dropped is not None:
            columns_left.remove(next(i for i in reversed(columns_left) if columns[i] == dropped))
        room = width - sum(_width(columns, rows, i) + _BETWEEN for i in columns_left[1:])
        if room >= min(_LEAST_NAME, _width(columns, rows, 0)):
            break
    room = min(max(room, _LEAST_NAME), longest_name or room)
    short = shorten_apart((printable(row[0]) for row in rows), room)
    cells = [[short[printable(row[0])], *(row[i] for i in columns_left[1:])] for row in rows]
    table = format_table([columns[i] for i in columns_left], cells, right=right)
    return table, tuple(columns[i] for i in range(len(columns)) if i not in columns_left)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]], index: int) -> int:
    return max(len(printable(row[index])) for row in (columns, *rows))


# Figures.

UNKNOWN = "-"

#: Units of time with their size in ns, the largest first.
_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
#: The unit of the screen that is being made; ``None``: each duration has its own.
_SCREEN_UNIT: ContextVar[tuple[str, float] | None] = ContextVar("rpl_screen_unit", default=None)


@contextmanager
def one_unit(*times_ns: float | None) -> Iterator[None]:
    """All durations that are shown meanwhile have one unit, so that a screen's figures compare at a glance.

    It is that of the largest of ``times_ns``, but never seconds: beside a run of minutes stand kernels of
    microseconds.
    """
    token = _SCREEN_UNIT.set(_unit_of_time(max((time or 0.0 for time in times_ns), default=0.0), _UNITS[1:]))
    try:
        yield
    finally:
        _SCREEN_UNIT.reset(token)


def in_unit(value_ns: float) -> tuple[float, str]:
    """A duration in the unit of the screen, or in the one that keeps it between 1 and 1000."""
    unit, size = _SCREEN_UNIT.get() or _unit_of_time(abs(value_ns), _UNITS)
    return value_ns / size, unit


def _unit_of_time(largest_ns: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    return next((unit for unit in units if largest_ns >= unit[1]), units[-1])


def milliseconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{_digits(value)} ms"


def duration_ns(value: float | None) -> str:
    """A duration as ``in_unit`` says."""
    if value is None:
        return UNKNOWN
    shown, unit = in_unit(value)
    return f"{_digits(shown)} {unit}"


#: Units that are things, and so have a plural.
_THINGS = ("wave", "lane", "conflict", "cycle", "request", "launch")


def unit_of(value: float, unit: str | None) -> str:
    """As it stands behind the figure: "1 wave", "1,216 waves"; a share has none."""
    if unit not in _THINGS or value == 1:
        return unit or ""
    return f"{unit}es" if unit == "launch" else f"{unit}s"


def between(*ends: str) -> str:
    """A range of which the ends are shown; one end where they read alike."""
    return " to ".join(dict.fromkeys(ends))


def times_as_fast(recorded_ns: int, gain_ns: int) -> str:
    """The speed-up by a gain, such as "1.250x"; no limit where nothing is left."""
    left = recorded_ns - gain_ns
    return f"{recorded_ns / left:.3f}x" if left > 0 else "no limit"


def faster_application(answer: SpeedupForecastPart) -> str:
    """The speed-up of the application, with both ends where the order of streams is unknown."""
    most = answer.application_gain_at_most_ns
    ends = (answer.application_gain_ns,) if most is None else (answer.application_gain_ns, most)
    recorded = answer.application_ns + answer.application_gain_ns
    return between(*(times_as_fast(recorded, gain) for gain in ends))


def percent(value: float | None, digits: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}%}"


def occupancy_share(occupancy: OccupancyPart) -> str:
    """In percent; both ends where the wave size of the kernel is unknown."""
    if occupancy.theoretical is None and occupancy.theoretical_range is not None:
        low, high = occupancy.theoretical_range
        return f"{low * 100:.0f}-{percent(high, 0)}"
    return percent(occupancy.theoretical, 0)


def number(value: float | None) -> str:
    return UNKNOWN if value is None else _digits(value)


def work_name(name: str, kind: str) -> str:
    """A kernel by its name, a copy direction (``MEMORY_COPY_HOST_TO_DEVICE``) in words."""
    return name.replace("_", " ").lower() if kind == "copy" else name


def _digits(value: float) -> str:
    """Four digits, but never an exponent for a large figure or a few ns in ms: 12,346 and 0.00002."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.6f}".rstrip("0") if 1e-6 <= abs(value) < 1e-4 else f"{value:.4g}"


def marked(value: float | None, exactness: str | None, upper: float | None = None) -> str:
    """A figure with its exactness: ">=" before a lower bound, "~" before an estimate, an interval as one."""
    if value is None:
        return UNKNOWN
    if upper is not None:
        return f"{number(value)} to {number(upper)}"
    return f"{_mark(exactness)}{number(value)}"


def with_unit(value: float, unit: str | None, exactness: str | None, upper: float | None = None) -> str:
    """A figure of any quantity with its exactness and unit, a share in percent."""
    if unit != "fraction":
        return f"{marked(value, exactness, upper)} {unit_of(value, unit)}".rstrip()
    return f"{_mark(exactness)}{percent(value)}" if upper is None else between(percent(value), percent(upper))


def _mark(exactness: str | None) -> str:
    """What stands before one figure for its exactness; nothing before an exact one."""
    return {"lower_bound": ">=", "interval": ">=", "estimate": "~"}.get(exactness or "", "")
