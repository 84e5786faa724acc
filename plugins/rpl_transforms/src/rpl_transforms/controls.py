"""The two controls of a kernel: one that does nothing, and one that stores wrong values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, KernelSource
from rpl_transforms.source_file import KernelNode, SourceFile, read_source_file
from rpl_transforms.syntax import first_error, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


# Where a kernel writes to memory that outlives it, as far as its own text shows.


#: Functions that store: name, argument with the place, argument with the value.
_STORING = (
    (re.compile(r"__builtin_nontemporal_store|__builtin_amdgcn_\w*store\w*"), 1, 0),
    (re.compile(r"__st(?:cg|cs|wb|wt)"), 0, 1),
    (re.compile(r"\w*(?:atomicCAS|compare_exchange|compare_and_swap)\w*"), 0, 2),
    (re.compile(r"(?:unsafe)?[aA]tomic[A-Z]\w*|__hip_atomic_\w+|__atomic_\w+|__sync_\w+"), 0, 1),
)
_EXCHANGING = re.compile(r"CAS|Exch|exchange|swap|lock_test_and_set")
_LOADING = re.compile(r"[lL]oad")
_INDICES = ("subscript_argument_list",)
_LOCAL_DECLARATORS = frozenset({"array_declarator"})
_INDIRECT = frozenset({"pointer_declarator", "reference_declarator"})


@frozen(eq=False)
class Store:
    """``value`` is the expression that is stored; with ``counts`` it is a ``++`` or ``--``.

    ``target`` is what is assigned to. ``exchanges``: an atomic exchange, as locks use it.
    """

    value: Node
    target: Node | None = None
    counts: bool = False
    exchanges: bool = False


def find_stores(file: SourceFile, kernel: KernelNode) -> tuple[Store, ...]:
    """In source order; a store inside the value of another one is left out."""
    places = _Places(file, kernel)
    stores: list[Store] = []
    end = 0
    for node in walk(kernel.body):
        store = None if node.has_error or node.start_byte < end else _store(node, places)
        if store is not None:
            stores.append(store)
            end = max(end, store.value.end_byte)
    return tuple(stores)


def _store(node: Node, places: _Places) -> Store | None:
    if node.type == "assignment_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None and places.outlive(left):
            return Store(right, left)
    elif node.type == "update_expression":
        argument, operator = node.child_by_field_name("argument"), node.child_by_field_name("operator")
        if argument is not None and operator is not None and places.outlive(argument):
            return Store(operator, counts=True)
    elif node.type == "call_expression":
        return _storing_call(node, places)
    return None


def _storing_call(node: Node, places: _Places) -> Store | None:
    name = _called_name(node)
    arguments = node.child_by_field_name("arguments")
    if arguments is None or _LOADING.search(name):
        return None
    given = [child for child in arguments.named_children if child.type != "comment"]
    for pattern, place, value in _STORING:
        if pattern.fullmatch(name) and len(given) > max(place, value):
            if places.is_local(given[place]):
                return None
            return Store(given[value], exchanges=_EXCHANGING.search(name) is not None)
    return None


def _called_name(call: Node) -> str:
    function = call.child_by_field_name("function")
    while function is not None and function.type in {"qualified_identifier", "template_function"}:
        function = function.child_by_field_name("name")
    return text_of(function) if function is not None else ""


class _Places:
    """Tells memory that outlives the kernel from what belongs to a thread or a workgroup."""

    def __init__(self, file: SourceFile, kernel: KernelNode) -> None:
        self._file = file
        self._types = file.types | {d.name for d in file.declared if d.template}
        self._references: set[str] = set()
        self._local = set(file.dynamic_lds)
        self._read_declarations(kernel)

    def outlive(self, target: Node) -> bool:
        """Whether assigning to ``target`` reaches such memory."""
        while target.type == "parenthesized_expression" and target.named_children:
            target = target.named_children[0]
        if target.type == "identifier":
            return self._named_memory(text_of(target))
        if self._declares(target) or self.is_local(target):
            return False
        if target.type == "field_expression" and not _follows_pointer(target):
            root = next(iter(_names(target)), "")
            return self._named_memory(root)
        return True

    def is_local(self, place: Node) -> bool:
        return any(name in self._local for name in _names(place))

    def _named_memory(self, name: str) -> bool:
        """A reference, a device variable, or a macro that stands for a place."""
        if name in self._local:
            return False
        macros = self._file.macros.of(name)
        at_file_scope = any(d.name == name for d in self._file.declared)
        return name in self._references or at_file_scope or any(_is_place(text) for text in macros)

    def _declares(self, target: Node) -> bool:
        """``T (*row)[4] = x`` declares, though the parser takes it for an assignment."""
        calls = [n for n in walk(target, skip=_INDICES) if n.type == "call_expression"]
        heads = [n.child_by_field_name("function") for n in calls]
        return any(h is not None and (h.type == "primitive_type" or text_of(h) in self._types) for h in heads)

    def _read_declarations(self, kernel: KernelNode) -> None:
        parameters = kernel.parameters
        if parameters is not None:
            self._references |= {
                n for n, kinds, _ in _declared(parameters) if "reference_declarator" in kinds
            }
        for name, kinds, node in _declared(kernel.body):
            value = node.child_by_field_name("value")
            points_here = bool(kinds & _INDIRECT) and value is not None and self.is_local(value)
            shared = any(text_of(child) == "__shared__" for child in _declaration(node).children)
            if shared or points_here or kinds & _LOCAL_DECLARATORS:
                self._local.add(name)
            elif "reference_declarator" in kinds:
                self._references.add(name)


def _declared(scope: Node) -> list[tuple[str, frozenset[str], Node]]:
    """Names with the kinds of declarator around them and the outermost declarator."""
    found = []
    for node in walk(scope):
        if node.type not in {"declaration", "parameter_declaration"}:
            continue
        for declarator in node.children_by_field_name("declarator"):
            inside = list(
                walk(declarator, skip=("argument_list", "parameter_list", "subscript_argument_list"))
            )
            value = declarator.child_by_field_name("value")
            inside = [n for n in inside if value is None or n.start_byte < value.start_byte]
            name = next((text_of(n) for n in inside if n.type == "identifier"), "")
            found.append((name, frozenset(n.type for n in inside), declarator))
    return found


def _declaration(declarator: Node) -> Node:
    parent = declarator.parent
    return declarator if parent is None else parent


def _names(place: Node) -> list[str]:
    """Identifiers that say where it is: not those of an index."""
    return [text_of(n) for n in walk(place, skip=_INDICES) if n.type == "identifier"]


def _follows_pointer(target: Node) -> bool:
    steps = {"subscript_expression", "pointer_expression", "call_expression"}
    return any(n.type in steps or n.type == "->" for n in walk(target, skip=_INDICES))


def _is_place(replacement: str) -> bool:
    return any(mark in replacement for mark in ("[", "*", "->"))


_INTEGERS = (
    *("char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int"),
    *("long", "unsigned long", "long long", "unsigned long long"),
)
_DEVICE = "__attribute__((device)) static inline"


def _special(kind: str, expression: str) -> str:
    return f"template <> struct Wrong<{kind}> {{ {_DEVICE} {kind} of({kind} v) {{ return {expression}; }} }};"


_LINES = (
    '#pragma clang diagnostic ignored "-Weverything"',  # a user's -Werror must not stop a control
    "namespace rpl_control {",
    "template <typename T> __attribute__((device)) T plain(const volatile T&);",
    f"template <typename T> struct Wrong {{ {_DEVICE} T of(T v) {{",
    "  unsigned char* bytes = reinterpret_cast<unsigned char*>(__builtin_addressof(v));",
    "  for (unsigned i = 0; i < sizeof(T); ++i) bytes[i] ^= 0x40;",
    "  return v; } };",
    _special("bool", "!v"),
    *(_special(kind, f"({kind})(v == 0 ? 1 : v == 1 ? 2 : v / 2)") for kind in _INTEGERS),
    *(
        _special(kind, f"v - v == 0 ? v * ({kind})0.5 + ({kind})0.37 : ({kind})1")
        for kind in ("float", "double")
    ),
    "template <typename T> __attribute__((device)) inline T changed(T v) { return Wrong<T>::of(v); }",
    "}  // namespace rpl_control",
    "#line 1",
    "",
)
#: Goes in front of the whole file, whose lines keep their numbers: the host's code may hold them.
PRELUDE = "\n".join(_LINES).encode()
#: A value made wrong; an initializer list with the type of what it is stored in.
CHANGED = b"::rpl_control::changed(%s)"
PLAIN = b"decltype(::rpl_control::plain(%s))%s"
#: At the beginning of a body: every other thread of every other block does nothing.
SKIP_HALF = (
    b" if ((threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z) & 1u) return;"
)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_CODE = re.compile(
    rb'R"(?P<tag>[^(\s]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def controls_of(source: KernelSource) -> tuple[EditCandidate, ...]:
    """``empty`` and ``broken`` for ``source.kernel``; all kernels of that name are edited.

    None without a kernel's name, for an unknown or empty one, and where its end can't be told for certain.
    """
    if source.kernel is None:
        return ()
    file = read_source_file(source.text)
    kernels = [kernel for kernel in file.kernels if kernel.name == source.kernel]
    if not kernels or not all(_is_whole(kernel) for kernel in kernels):
        return ()
    prelude = _prelude(source.text)
    full = [kernel for kernel in kernels if kernel.body.named_child_count]
    empty = tuple(Edit(kernel.body.start_byte, kernel.body.end_byte, _nothing(kernel)) for kernel in full)
    broken = tuple(edit for kernel in full for edit in _wrong_stores(file, kernel))
    if not full:  # nothing that could be taken away or made wrong
        return ()
    return (
        _candidate("empty", "the kernel does nothing", kernels[0], (prelude, *empty)),
        _candidate("broken", "the kernel stores wrong values", kernels[0], (prelude, *broken)),
    )


def _nothing(kernel: KernelNode) -> bytes:
    return b"{ " + b"\n" * (kernel.body.text or b"").count(b"\n") + b"}"


def _candidate(name: str, summary: str, kernel: KernelNode, edits: tuple[Edit, ...]) -> EditCandidate:
    return EditCandidate(id=name, kernel=kernel.name, line=kernel.line, summary=summary, edits=edits)


def _prelude(text: bytes) -> Edit:
    begin = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    return Edit(begin, begin, PRELUDE)


def _is_whole(kernel: KernelNode) -> bool:
    """Whether the body ends where the tree says, although the parser may not know all that is in it."""
    if first_error(kernel.outer) is None:
        return True
    code = _NOT_CODE.sub(b" ", kernel.body.text or b"")
    return code.startswith(b"{") and code.endswith(b"}") and code.count(b"{") == code.count(b"}")


def _wrong_stores(file: SourceFile, kernel: KernelNode) -> list[Edit]:
    stores = find_stores(file, kernel)
    # A wrong value in a lock or ticket hangs the program instead of changing its results.
    plain = [store for store in stores if not store.exchanges] or stores
    if not plain:  # they are in functions that other kernels may call too
        begin = kernel.body.start_byte + 1
        return [Edit(begin, begin, SKIP_HALF)]
    return [_wrong(store) for store in plain]


def _wrong(store: Store) -> Edit:
    value = store.value
    text = value.text or b""
    if store.counts:
        return Edit(value.start_byte, value.end_byte, b"--" if text == b"++" else b"++")
    if value.type == "initializer_list":
        assert store.target is not None
        text = PLAIN % (text_of(store.target).encode(), text)
    return Edit(value.start_byte, value.end_byte, CHANGED % text)
