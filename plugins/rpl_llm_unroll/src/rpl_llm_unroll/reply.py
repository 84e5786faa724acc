"""A model's reply, taken as data: which kernels it holds, and what keeps them from being compiled."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Literal

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import Edit, GuardVerdict
from rpl_optimize.source_meaning.front_end import line_directive
from rpl_transforms.source_file import KernelNode, SourceFile, find_kernels, function_name
from rpl_transforms.syntax import declared_names, first_error, line_of, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


@frozen(eq=False)
class Target:
    """The kernel of ``file`` that a reply may replace."""

    file: SourceFile
    kernel: KernelNode

    @property
    def text(self) -> str:
        """The kernel with its template head; bytes that are not UTF-8 are replaced."""
        return self.file.text[self.kernel.outer.start_byte : self.kernel.outer.end_byte].decode(
            "utf-8", "replace"
        )

    @property
    def head(self) -> str:
        """Everything before the body."""
        return self.file.text[self.kernel.outer.start_byte : self.kernel.body.start_byte].decode(
            "utf-8", "replace"
        )


@frozen
class Problem:
    """Why a reply is not used: one sentence that the model is told, without its own text in full."""

    reason: str


@frozen
class SoundReply:
    """``edit`` replaces exactly the kernel's bytes; ``digest`` is of the new kernel's tokens."""

    edit: Edit
    guards: tuple[GuardVerdict, ...]
    digest: str


# Split C++ text into tokens the way a compiler does, as a second opinion beside the parse tree.
#
# A parser recovers from what it does not understand; this does not. Text with trigraphs, new line splices
# and the like was refused before.

Kind = Literal["word", "number", "string", "char", "directive", "sign"]
_SPLICE = re.compile(r"\\[ \t]*\n")
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\v\f]+)
      |(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=mark)"
                 |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      |(?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
      |(?P<word>[^\W\d]\w*)
      |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_REST_OF_LINE = re.compile(r"[^\n]*")


@frozen
class Token:
    """``line`` counts from 1 in the text that was split."""

    kind: Kind
    text: str
    line: int


Tokens = tuple[Token, ...]


def split_tokens(text: str) -> tuple[Token, ...] | Problem:
    """Tokens without comments and layout; a directive is one token up to the end of its line."""
    text = _SPLICE.sub("", text.replace("\r\n", "\n"))
    tokens: list[Token] = []
    position, line, fresh = 0, 1, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind, piece = str(match.lastgroup), match.group()
        if kind == "sign" and piece == "#" and fresh:
            match = _REST_OF_LINE.match(text, position)
            assert match is not None
            kind, piece = "directive", match.group()
        if kind == "sign" and (problem := _broken(text, position, line)) is not None:
            return problem
        if kind not in {"space", "comment"}:
            tokens.append(Token(kind, piece, line))  # type: ignore[arg-type]
        fresh = "\n" in piece or (fresh and kind in {"space", "comment"})
        line += piece.count("\n")
        position = match.end()
    return tuple(tokens)


def _broken(text: str, position: int, line: int) -> Problem | None:
    if text.startswith("/*", position):
        return Problem(f"the comment that begins in line {line} of the block is not closed")
    if text[position] in "\"'":
        return Problem(f"a string or character in line {line} of the block is not closed")
    return None


# Turn a reply into one edit of the kernel, or into the problem that stands against it.
#
# A reply is data. Nothing of it reaches a compiler before every check here has passed: one kernel of the
# same head, nothing beside it, nothing that acts while it is compiled. What the kernel means is judged by
# the compiler, for this edit as for every other one (``rpl_optimize.source_meaning``).

# Whether a block holds the one kernel and nothing else, by parse tree and by tokens.


def kernel_in(block: str, target: Target) -> KernelNode | Problem:
    """The kernel of ``block``; its name is the target's and nothing but comments stands beside it."""
    root = parse(block.encode())
    kernels = find_kernels(root, target.file.macros)
    name = target.kernel.name
    if not kernels:
        return Problem(f"the block does not define the kernel {name}, or it does not parse")
    if len(kernels) > 1:
        shown = ", ".join(kernel.name[:60] for kernel in kernels[:4])
        return Problem(f"the block defines {len(kernels)} kernels ({shown}); send {name} alone")
    if kernels[0].name != name:
        return Problem(f"the block defines the kernel {kernels[0].name[:60]!r}, not {name!r}")
    for node in root.children:
        if node.type != "comment" and node.id != kernels[0].outer.id:
            return Problem(f"line {line_of(node)} of the block has {_what(node)} outside of the kernel")
    return kernels[0]


def syntax_problem(kernel: KernelNode, target: Target) -> Problem | None:
    """The first syntax error, unless the original does not parse either."""
    error = first_error(kernel.outer)
    if error is None or first_error(target.kernel.outer) is not None:
        return None
    return Problem(f"the kernel does not parse at line {line_of(error)} of the block")


def whole_kernel_problem(new: tuple[Token, ...], target: Target) -> Problem | None:
    """What the tokens of a block say against its being one kernel with the target's head."""
    head = split_tokens(target.head)
    if isinstance(head, Problem):
        return Problem(f"the original kernel can't be split into tokens: {head.reason}")
    texts, wanted = [token.text for token in new], [token.text for token in head]
    if texts[: len(wanted)] != wanted:
        at = next((i for i, (a, b) in enumerate(zip(texts, wanted)) if a != b), len(texts))  # noqa: B905 - lengths may differ
        found, lost = " ".join(texts[at : at + 6])[:80], " ".join(wanted[at : at + 6])[:80]
        return Problem(
            f"the head of the kernel must stay as it is: {lost or 'nothing'!r} became {found or 'nothing'!r}"
        )
    return _one_body(new[len(wanted) :])


def use_problem(kernel: KernelNode, target: Target) -> Problem | None:
    """A body that does nothing, or that no longer looks at a parameter."""
    if not any(n.is_named and n.type != "comment" for n in kernel.body.children):
        return Problem("the kernel's body is empty")
    old, new = _names_used(target.kernel), _names_used(kernel)
    parameters = target.kernel.parameters
    declared = declared_names(parameters) if parameters is not None else ()
    for parameter in declared:
        if parameter.name in old and parameter.name not in new:
            return Problem(f"the parameter {parameter.name} is no longer used")
    return None


def _one_body(tokens: tuple[Token, ...]) -> Problem | None:
    depth = 0
    for number, token in enumerate(tokens):
        if token.kind == "sign" and token.text in "{}":
            depth += 1 if token.text == "{" else -1
        if depth <= 0:
            if number + 1 == len(tokens) and token.text == "}":
                return None
            where = tokens[min(number + 1, len(tokens) - 1)].line
            return Problem(f"line {where} of the block goes on behind the end of the kernel")
    return Problem("the braces of the kernel do not balance")


def _names_used(kernel: KernelNode) -> set[str]:
    return {text_of(n) for n in walk(kernel.body) if n.type in {"identifier", "type_identifier"}}


def _what(node: Node) -> str:
    if node.type == "function_definition":
        return f"the function {function_name(node)[:60]!r}"
    if node.type.startswith("preproc_"):
        return f"the directive {' '.join(text_of(node).split())[:60]!r}"
    return "text" if node.is_error else f"something else ({node.type.replace('_', ' ')})"


# Find the fenced code blocks of a reply, by CommonMark's rules with any indentation.


_OPENING = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)")
#: What some models write before they answer. It is no part of the answer.
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


@frozen
class FencedBlock:
    """``line`` is where the opening fence stands in the reply, from 1."""

    language: str
    text: str
    line: int


def the_block(reply: str) -> FencedBlock | Problem:
    """The one fenced block of ``reply``, with nothing but white space around it.

    A leading ``<think>`` part is no part of the answer and is passed over.
    """
    text = _THINKING.sub("", reply.replace("\r\n", "\n"), count=1)
    if not text.strip():
        return Problem("the reply is empty")
    fenced = find_blocks(text)
    if isinstance(fenced, Problem):
        return fenced
    blocks, prose = fenced
    return _only(blocks, prose)


def _only(blocks: list[FencedBlock], prose: int | None) -> FencedBlock | Problem:
    """The block, if there is exactly one and no text beside it; ``prose`` is the first line of such text."""
    if not blocks:
        return Problem("the reply has no fenced code block")
    if len(blocks) > 1:
        lines = ", ".join(str(block.line) for block in blocks)
        return Problem(
            f"the reply has {len(blocks)} fenced code blocks (at lines {lines}); send exactly one, no drafts"
        )
    if not blocks[0].text.strip():
        return Problem("the fenced code block is empty")
    if prose is not None:
        return Problem(f"the reply has text outside of its code block (line {prose}); send the block alone")
    return blocks[0]


def find_blocks(text: str) -> tuple[list[FencedBlock], int | None] | Problem:
    """All blocks, and the first line with text outside of them."""
    blocks: list[FencedBlock] = []
    prose: int | None = None
    opening: re.Match[str] | None = None
    begin = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _OPENING.fullmatch(line)
        if opening is None:
            if match is not None and _opens(match):
                opening, begin, lines = match, number, []
            elif line.strip() and prose is None:
                prose = number
        elif match is not None and _closes(match, opening["fence"]):
            blocks.append(FencedBlock(opening["info"].strip(), _outdented(lines, opening["indent"]), begin))
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        return Problem(f"the fenced code block that begins at line {begin} is not closed")
    return blocks, prose


def _opens(match: re.Match[str]) -> bool:
    # ```code``` within one line is a code span.
    return match["fence"][0] == "~" or "`" not in match["info"]


def _closes(match: re.Match[str], opening: str) -> bool:
    fence: str = match["fence"]
    return fence[0] == opening[0] and len(fence) >= len(opening) and not match["info"].strip()


def _outdented(lines: list[str], indent: str) -> str:
    """Lines of an indented block, each without as much of the fence's indentation as it has."""
    size = len(indent)
    kept = [line[min(size, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    return "".join(f"{line}\n" for line in kept)


# Guards on the text of a new kernel before any compiler sees it: on its characters, then on its
# tokens.


#: Pragmas that only ask for unrolling, whole lines. Clang's "Extensions for loop hint optimizations".
_UNROLL_PRAGMA = re.compile(
    r"#[ \t]*pragma[ \t]+(?:nounroll|unroll(?:[ \t]*\(?[ \t]*\w+[ \t]*\)?)?"
    r"|clang[ \t]+loop(?:[ \t]+(?:unroll(?:_count)?)[ \t]*\([ \t]*\w+[ \t]*\))+)[ \t]*(?://[^\n]*)?"
)
_SPEAKING = re.compile(r"asm|__asm|__asm__|_Pragma|__pragma|__has_include\w*|__has_embed|import|module")
#: Control and format characters (bidirectional marks, zero-width signs), private use and surrogates.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_SPLICED_LINE = re.compile(r"^.*\\[ \t]*$", re.MULTILINE)
#: [lex.trigraph], [lex.digraph] and [lex.charset] of C++; ``<::`` is no digraph.
_SPELLINGS = {
    "a trigraph": re.compile(r"\?\?[=/'()!<>-]"),
    "a digraph": re.compile(r"%:|<%|%>|<:(?!:)|(?<!:):>"),
    "a universal character name": re.compile(r"\\[uUN]"),
}


def token_verdicts(new: Tokens, old: Tokens) -> tuple[GuardVerdict, ...]:
    """One verdict per guard; ``old`` are the original kernel's tokens."""
    return (_directives(new, old), _words(new, old))


def _directives(new: Tokens, old: Tokens) -> GuardVerdict:
    known = Counter(" ".join(t.text.split()) for t in old if t.kind == "directive")
    for token in new:
        if token.kind != "directive" or _UNROLL_PRAGMA.fullmatch(token.text.rstrip()):
            continue
        text = " ".join(token.text.split())
        known[text] -= 1
        if known[text] < 0:
            return _refused("directives", token, f"the directive {text[:60]!r} was added")
    return GuardVerdict("directives", True, "no directive was added but those that ask for unrolling")


def _words(new: Tokens, old: Tokens) -> GuardVerdict:
    known = Counter(token.text for token in old if token.kind == "word")
    for token in new:
        if token.kind == "word" and _SPEAKING.fullmatch(token.text):
            known[token.text] -= 1
            if known[token.text] < 0:
                return _refused("words", token, f"{token.text} was added, which speaks to the compiler")
    return GuardVerdict("words", True, "no assembly and no pragma was added")


def _refused(guard: str, token: Token, reason: str) -> GuardVerdict:
    return GuardVerdict(guard, False, f"line {token.line} of the block: {reason}", token.line)


def character_problem(text: str, original: str) -> Problem | None:
    """The first character or spelling in ``text`` that may not be there and is not in ``original`` either."""
    for position, character in enumerate(text):
        if character not in "\n\t" and unicodedata.category(character) in _HIDDEN:
            line = text.count("\n", 0, position) + 1
            return Problem(f"line {line} of the block has the invisible character U+{ord(character):04X}")
    known = Counter(line.strip() for line in _SPLICED_LINE.findall(original.replace("\r\n", "\n")))
    for spliced in _SPLICED_LINE.findall(text):
        known[spliced.strip()] -= 1
        if known[spliced.strip()] < 0:
            return Problem("a line of the block ends in a backslash, which joins it with the next")
    for what, pattern in _SPELLINGS.items():
        if len(pattern.findall(text)) > len(pattern.findall(original)):
            return Problem(f"the block has {what}")
    return None


#: No kernel that a person would read is longer (chosen).
MAX_REPLY_BYTES = 512 << 10
MAX_KERNEL_BYTES = 128 << 10


def judge_reply(reply: str, target: Target) -> SoundReply | Problem:
    """Never raises for any reply."""
    if len(reply.encode("utf-8", "surrogatepass")) > MAX_REPLY_BYTES:
        return Problem(f"the reply is longer than {MAX_REPLY_BYTES >> 10} KiB")
    block = the_block(reply)
    if isinstance(block, Problem):
        return block
    limit = max(MAX_KERNEL_BYTES, 2 * len(target.text))
    if len(block.text) > limit:
        return Problem(f"the block is longer than {limit >> 10} KiB")
    return character_problem(block.text, target.text) or _judge_kernel(block.text, target)


def _judge_kernel(block: str, target: Target) -> SoundReply | Problem:
    kernel = kernel_in(block, target)
    if isinstance(kernel, Problem):
        return kernel
    new, old = split_tokens(block), split_tokens(target.text)
    if isinstance(new, Problem):
        return new
    if isinstance(old, Problem):
        return Problem(f"the original kernel can't be split into tokens: {old.reason}")
    verdicts = token_verdicts(new, old)
    problem = whole_kernel_problem(new, target) or _first_refusal(verdicts) or syntax_problem(kernel, target)
    if problem is not None:
        return problem
    if [t.text for t in new] == [t.text for t in old]:
        return Problem("the kernel is the same as before but for layout and comments")
    return use_problem(kernel, target) or SoundReply(_edit(block, kernel, target), verdicts, _digest(new))


def _first_refusal(verdicts: tuple[GuardVerdict, ...]) -> Problem | None:
    refused = next((verdict for verdict in verdicts if not verdict.passed), None)
    return None if refused is None else Problem(f"guard {refused.guard}: {refused.reason}")


def _edit(block: str, kernel: KernelNode, target: Target) -> Edit:
    """The new kernel without the comments around it, in the line endings of the old one.

    Where it has more or fewer lines, a ``#line`` keeps the numbers of those behind it: ``assert`` shows them.
    """
    outer, whole = target.kernel.outer, target.file.text
    text = block.encode()[kernel.outer.start_byte : kernel.outer.end_byte]
    old = whole[outer.start_byte : outer.end_byte]
    if old.count(b"\r\n") * 2 > old.count(b"\n"):
        text = text.replace(b"\n", b"\r\n")
    alone = whole[outer.end_byte :].partition(b"\n")[0].strip() == b""
    if alone and text.count(b"\n") != old.count(b"\n"):
        text += line_directive(whole, outer.end_byte)
    return Edit(outer.start_byte, outer.end_byte, text)


def _digest(tokens: tuple[Token, ...]) -> str:
    return hashlib.sha256("\0".join(token.text for token in tokens).encode()).hexdigest()
