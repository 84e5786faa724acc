"""What functions do together with others, and in which order: read off their syntax trees.

An *event* is what can't be left out, added or moved without changing what work-items do together: calls,
atomic operations, volatile accesses, assembly, objects that come and go (their constructors and destructors
may do any of it), and jumps. Each stands below a *path*: the control statements around it, heads included.
Which calls matter is known only when the whole unit was read (``effects``).

What stands in an operand that nobody evaluates (``decltype``, ``sizeof``, an unselected ``_Generic``) does
not happen. So the path goes through every part of the tree that is not known to be evaluated
(``_EVALUATED``): an event there equals none that is done, and one that was there before equals itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from rpl_core.values import frozen
from rpl_optimize.source_meaning.syntax_dump import Node

Path = tuple[str, ...]

FUNCTIONS = frozenset(
    ("FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl")
)
_UNRESOLVED = frozenset(
    ("RecoveryExpr", "UnresolvedLookupExpr", "UnresolvedMemberExpr", "CXXDependentScopeMemberExpr")
)
_UNRESOLVED_TOO = frozenset(("DependentScopeDeclRefExpr", "CXXUnresolvedConstructExpr", "TypoExpr"))
#: Parts of a tree that run their parts, each once or below a path of its own. What is missing here costs only
#: edits that move an effect into it: dependent forms of templates, types, local classes, ``typeid``.
_EVALUATED = frozenset(
    (
        *("CompoundStmt", "DeclStmt", "IfStmt", "SwitchStmt", "CaseStmt", "DefaultStmt", "LabelStmt"),
        *(
            "ForStmt",
            "WhileStmt",
            "DoStmt",
            "CXXForRangeStmt",
            "ReturnStmt",
            "AttributedStmt",
            "CXXThrowExpr",
        ),
        *(
            "GCCAsmStmt",
            "MSAsmStmt",
            "IndirectGotoStmt",
            "CXXCtorInitializer",
            "VarDecl",
            "DecompositionDecl",
        ),
        *("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "UserDefinedLiteral"),
        *("CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXInheritedCtorInitExpr", "CXXDefaultArgExpr"),
        *("CXXDefaultInitExpr", "CXXBindTemporaryExpr", "MaterializeTemporaryExpr", "ExprWithCleanups"),
        *("CXXNewExpr", "CXXDeleteExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr", "CXXConstCastExpr"),
        *("CXXReinterpretCastExpr", "CXXDynamicCastExpr", "CXXAddrspaceCastExpr", "BuiltinBitCastExpr"),
        *(
            "CStyleCastExpr",
            "ImplicitCastExpr",
            "ParenExpr",
            "ConstantExpr",
            "UnaryOperator",
            "BinaryOperator",
        ),
        *("CompoundAssignOperator", "ConditionalOperator", "BinaryConditionalOperator", "ArraySubscriptExpr"),
        *("MemberExpr", "DeclRefExpr", "InitListExpr", "CXXParenListInitExpr", "ParenListExpr", "LambdaExpr"),
        *("StmtExpr", "AtomicExpr", "CompoundLiteralExpr", "ConvertVectorExpr", "ShuffleVectorExpr"),
        *("ExtVectorElementExpr", "VAArgExpr", "SubstNonTypeTemplateParmExpr", "CXXPseudoDestructorExpr"),
    )
)
#: Builtins that evaluate what they are given. Others may look at its type or form only
#: (``__builtin_constant_p``, ``__builtin_object_size``, ``__builtin_assume``, ``__noop``).
_EVALUATES = re.compile(
    r"__(?:builtin_(?:amdgcn_(?!is_invocable|processor_is)|r600_|nontemporal_|elementwise_|reduce_|mem|str|expect"
    r"|addressof|launder"
    r"|assume_aligned|(?:add|sub|mul)_overflow|[su](?:add|sub|mul)l*_overflow|popcount|clz|ctz|ffs|bswap"
    r"|bitreverse|rotate|bit_cast|isnan|isinf|isfinite|isnormal|signbit|fpclassify|trap|unreachable"
    r"|readcyclecounter"
    r"|f?abs|a?sin|a?cos|a?tan|pow|exp|log|sqrt|cbrt|hypot|fma|floor|ceil|trunc|round|rint|nearbyint|fmin|fmax"
    r"|fmod|copysign|ldexp|frexp|labs|llabs|printf)\w*"
    r"|(?:sync|atomic|c11_atomic|hip_atomic|scoped_atomic|opencl_atomic)_(?!\w*lock_free)\w+)"
)
_JUMPS = frozenset(
    (
        *("ReturnStmt", "BreakStmt", "ContinueStmt", "GotoStmt", "IndirectGotoStmt", "LabelStmt"),
        *("CaseStmt", "DefaultStmt", "CXXThrowExpr", "CoreturnStmt"),
    )
)
_LOOPS = {"ForStmt": "for", "WhileStmt": "while", "DoStmt": "do", "CXXForRangeStmt": "range-for"}
_CALLS = frozenset(("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "UserDefinedLiteral"))
_TRANSPARENT = frozenset(("ImplicitCastExpr", "ParenExpr", "ConstantExpr", "CStyleCastExpr", "UnaryOperator"))
_GLVALUES = frozenset(
    ("DeclRefExpr", "MemberExpr", "ArraySubscriptExpr", "UnaryOperator", "CXXStaticCastExpr")
)
#: Attributes that bound the work-items of a block, as clang calls HIP's and CUDA's launch bounds.
BLOCK_BOUNDS = frozenset(("AMDGPUFlatWorkGroupSizeAttr", "CUDALaunchBoundsAttr"))
_LITERALS = frozenset(("IntegerLiteral", "StringLiteral", "CXXBoolLiteralExpr", "CharacterLiteral"))
#: Not part of the meaning: addresses, places, and what other uses of a declaration leave behind.
DROPPED = frozenset(
    (
        *("id", "loc", "range", "isUsed", "isReferenced", "mangledName", "previousDecl", "temp", "declId"),
        *("parentDeclContextId", "referencedMemberDecl", "typeAliasDeclId", "definitionData"),
        *(
            "foundReferencedDecl",
            "hadMultipleCandidates",
            "targetLabelDeclId",
            "TemplateInstantiationPattern",
        ),
    )
)
_PLACE_IN_NAME = re.compile(r"(\((?:lambda|unnamed|anonymous)[^()]*?) at [^()]*\)")


@frozen
class Access:
    """A load or a store of what others may touch too: a shared variable or what a parameter points to."""

    root: str
    mode: Literal["load", "store"]
    shared: bool


Accesses = Callable[[Node], Iterable[Access]]


@frozen
class Event:
    """``callee`` is the id of a declaration, ``type_name`` that of a class whose members run."""

    path: Path
    label: str
    callee: str | None = None
    type_name: str | None = None
    begin: int | None = None  # of assembly: where its text stands
    jump: bool = False
    access: Access | None = None


def canonical(node: Any, *, types: bool = True) -> Any:
    """A tree as plain values that are equal for equal meaning; loop hints are no part of it."""
    if isinstance(node, list):
        return [canonical(entry, types=types) for entry in node]
    if not isinstance(node, dict):
        return _PLACE_IN_NAME.sub(r"\1)", node) if isinstance(node, str) else node
    if node.get("kind") == "AttributedStmt":
        kept = [n for n in node["inner"] if n.get("kind") != "LoopHintAttr"]
        if len(kept) == 1:
            return canonical(kept[0], types=types)
        node = {**node, "inner": kept}
    return {
        key: canonical(value, types=types)
        for key, value in node.items()
        if key not in DROPPED and (types or not key.lower().endswith("type"))
    }


def digest(value: Any) -> str:
    """A short name of a value of ``canonical``."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def events_of(function: Node, accesses: Accesses | None = None) -> Iterator[Event]:
    """Events of one function's own text in order; functions declared inside have their own.

    With ``accesses`` also what it says of each node, for ``accessed_between``.
    """
    waiting: list[tuple[Node, Path]] = [(child, ()) for child in reversed(children(function))]
    while waiting:
        node, path = waiting.pop()
        kind = node.get("kind", "")
        if accesses is not None and not (path and path[-1].startswith(_UNKNOWN)):
            yield from (Event(path, "access", access=one) for one in accesses(node))
        if kind == "FunctionDecl" or node.get("storageClass") == "extern":
            yield Event(path, f"declares {node.get('name')}")  # of the file, from inside a body
        if kind in FUNCTIONS or kind.endswith("Attr"):
            continue
        if node.get("nonOdrUseReason") == "unevaluated":
            path = (*path, f"{_UNKNOWN} operand")
        yield from _own_events(node, kind, path)
        waiting.extend(reversed(list(_below(node, kind, path))))


def _own_events(node: Node, kind: str, path: Path) -> Iterator[Event]:
    if kind in _CALLS:
        yield _call(node, path)
    elif kind in _REFERENCES:
        yield from _REFERENCES[kind](node, path)
    elif kind in _UNRESOLVED or kind in _UNRESOLVED_TOO:
        yield Event(path, f"unresolved {kind}")
    elif kind in _JUMPS:
        yield Event(path, kind, jump=True)
    if kind in _GLVALUES and _is_volatile(node):
        yield Event(path, "volatile access")


def _call(node: Node, path: Path) -> Event:
    """By the declaration that is called; the constants among its arguments belong to it."""
    callee, *arguments = children(node) or [{}]
    given = [canonical(_constant(argument)) for argument in arguments]
    told = "" if not any(given) else f" {digest(given)}"
    stripped = _stripped(callee)
    reference = stripped.get("referencedDecl", {})
    if stripped.get("kind") == "MemberExpr":
        return Event(path, f"call{told}", callee=stripped.get("referencedMemberDecl"))
    if reference.get("kind") in FUNCTIONS:
        return Event(path, f"call{told}", callee=reference["id"])
    if stripped.get("kind") == "CXXPseudoDestructorExpr":
        return Event(path, "pseudo-destructor", type_name="")
    return Event(path, f"call of a value{told}")


def _reference(node: Node, path: Path) -> Iterator[Event]:
    """A function that is named, called here or not: who has its address may call it."""
    reference = node.get("referencedDecl", {})
    if reference.get("kind") in FUNCTIONS:
        yield Event(path, "names", callee=reference["id"])


def _construction(node: Node, path: Path) -> Iterator[Event]:
    yield Event(path, "constructs", type_name=type_name(node))


def _variable(node: Node, path: Path) -> Iterator[Event]:
    yield Event(path, "declares", type_name=type_name(node))


def _temporary(node: Node, path: Path) -> Iterator[Event]:
    yield Event(path, "destroys", callee=node.get("dtor", {}).get("id"))


def _atomic(node: Node, path: Path) -> Iterator[Event]:
    given = [canonical(_constant(argument)) for argument in children(node)]
    yield Event(path, f"{node.get('name', 'atomic operation')} {digest(given)}")


def _allocation(node: Node, path: Path) -> Iterator[Event]:
    for key in ("operatorNewDecl", "operatorDeleteDecl"):
        if key in node:
            yield Event(path, key, callee=node[key]["id"])


def _assembly(node: Node, path: Path) -> Iterator[Event]:
    begin = node.get("range", {}).get("begin", {})
    yield Event(path, "assembly", begin=begin.get("expansionLoc", begin).get("offset", 0))


#: What the path says of parts that are not known to be evaluated.
_UNKNOWN = "unevaluated"

_REFERENCES: dict[str, Callable[[Node, Path], Iterator[Event]]] = {
    "DeclRefExpr": _reference,
    "CXXConstructExpr": _construction,
    "CXXTemporaryObjectExpr": _construction,
    "CXXInheritedCtorInitExpr": _construction,
    "VarDecl": _variable,
    "CXXBindTemporaryExpr": _temporary,
    "AtomicExpr": _atomic,
    "CXXNewExpr": _allocation,
    "CXXDeleteExpr": _allocation,
    "GCCAsmStmt": _assembly,
    "MSAsmStmt": _assembly,
}


def _below(node: Node, kind: str, path: Path) -> Iterator[tuple[Node, Path]]:
    """Parts with their paths: what depends on a condition lies below it, and so does a loop's head."""
    parts = children(node)
    if kind in _LOOPS:
        body = parts[0] if kind == "DoStmt" else parts[-1]
        head = [part for part in parts if part is not body]
        inside = (*path, f"{_LOOPS[kind]} {digest(canonical(head))}")
        yield from ((part, inside if part is body else (*inside, "head")) for part in parts)
    elif kind in {"IfStmt", "SwitchStmt", "ConditionalOperator", "BinaryConditionalOperator"}:
        yield from _branches(node, kind, parts, path)
    elif kind == "BinaryOperator" and node.get("opcode") in {"&&", "||"}:
        yield parts[0], path
        yield parts[1], (*path, f"{node['opcode']} {digest(canonical(parts[0]))}")
    elif kind == "CaseStmt":
        yield parts[-1], (*path, f"case {digest(canonical(parts[:-1]))}")
    elif kind == "LambdaExpr":  # its body is printed twice; the class has it as a function
        yield from ((part, path) for part in parts if part.get("kind") != "CompoundStmt")
    elif kind in _CALLS:
        yield from _arguments(parts, path)
    elif kind == "GenericSelectionExpr":
        chosen = [part for part in parts if part.get("selected")]
        yield from ((inner, path) for part in chosen for inner in children(part))
        yield from ((part, (*path, _UNKNOWN)) for part in parts if part not in chosen)
    elif kind in _EVALUATED:
        yield from ((part, path) for part in parts)
    else:
        yield from ((part, (*path, f"{_UNKNOWN} {kind}")) for part in parts)


def _branches(node: Node, kind: str, parts: list[Node], path: Path) -> Iterator[tuple[Node, Path]]:
    count = 2 if node.get("hasElse") or kind.endswith("Operator") else 1
    head, branches = parts[:-count], parts[-count:]
    name = f"{'switch' if kind == 'SwitchStmt' else 'if'} {digest(canonical(head))}"
    yield from ((part, path) for part in head)
    for branch, word in zip(branches, ("", " else")):  # noqa: B905 - one branch or two
        yield branch, (*path, name + word)


def _arguments(parts: list[Node], path: Path) -> Iterator[tuple[Node, Path]]:
    """A function that is called is no argument; the object of a method and a pointer are looked at."""
    builtin = _builtin(parts[0]) if parts else None
    if builtin is not None and _EVALUATES.fullmatch(builtin) is None:
        path = (*path, f"{_UNKNOWN} {builtin}")
    for number, part in enumerate(parts):
        found = _stripped(part) if number == 0 else part
        if number == 0 and found.get("referencedDecl", {}).get("kind") in FUNCTIONS:
            continue
        yield found, path


def _builtin(callee: Node) -> str | None:
    """The name of a builtin that is called, if it is one that may do as it likes with its arguments."""
    name = str(_stripped(callee).get("referencedDecl", {}).get("name", ""))
    known = callee.get("castKind") == "BuiltinFnToFnPtr" or name.startswith(
        ("__builtin_", "__noop", "__assume")
    )
    return name if known else None


def children(node: Node) -> list[Node]:
    return [child for child in node.get("inner", ()) if isinstance(child, dict)]


def is_kernel(function: Node) -> bool:
    return any(child.get("kind") == "CUDAGlobalAttr" for child in children(function))


def body_of(function: Node) -> Node | None:
    """The block of a function that is defined here."""
    return next((child for child in children(function) if child.get("kind") == "CompoundStmt"), None)


def without_parentheses(node: Node) -> Node:
    while node.get("kind") == "ParenExpr":
        (node,) = children(node)
    return node


def _stripped(node: Node) -> Node:
    while node.get("kind") in _TRANSPARENT and (inner := children(node)):
        node = inner[0]
    return node


def _constant(node: Node) -> Node:
    stripped = _stripped(node)
    return stripped if stripped.get("kind") in _LITERALS else {}


def type_name(node: Node) -> str:
    """The type of an expression or variable, without the names that stand for it."""
    found = node.get("type", {})
    return str(found.get("desugaredQualType", found.get("qualType", "")))


def _is_volatile(node: Node) -> bool:
    """Whether the object itself is volatile, not what it points to."""
    if node.get("valueCategory") == "prvalue":
        return False
    return "volatile" in re.split(r"[*&]", type_name(node))[-1].split("(")[0].split()
