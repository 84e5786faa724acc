"""Good, bad and malicious replies: each becomes one edit of the kernel, or a problem and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import rpl_testkit
from rpl_llm_unroll import reply
from rpl_llm_unroll.reply import Problem, SoundReply, judge_reply
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.transform import apply_edits

from .sources import GOOD, KERNEL, SOURCE, fenced, target

_BODY = GOOD.index("__shared__")


def inside(text: str, kernel: str = GOOD) -> str:
    """A reply with ``text`` at the beginning of the kernel's body."""
    at = kernel.index("{\n") + 2
    return fenced(kernel[:at] + text + "\n" + kernel[at:])


GOOD_REPLIES = {
    "cpp": fenced(GOOD),
    "c++": fenced(GOOD, language="c++"),
    "hip": fenced(GOOD, language="hip"),
    "cuda": fenced(GOOD, language="cuda title=x"),
    "no language": fenced(GOOD, language=""),
    "tildes": fenced(GOOD, fence="~~~", language="cpp"),
    "longer fence": fenced(GOOD, fence="`````"),
    "CRLF": fenced(GOOD).replace("\n", "\r\n"),
    "no line feed at the end": fenced(GOOD).rstrip("\n"),
    "indented in a list": "\n".join("   " + line for line in fenced(GOOD).split("\n")),
    "thinking first": f"<think>\n{fenced('int draft;')}\n</think>\n{fenced(GOOD)}",
    "a comment in front": fenced(f"// faster\n/* much */\n{GOOD}"),
    "a comment behind": fenced(f"{GOOD} // end"),
    "head in another layout": fenced(GOOD.replace("(T* __restrict__ out, ", "(T* __restrict__ out,\n    ")),
    "unicode in a comment": inside("// schnöde 2 × 2"),
    "fence signs in a comment": inside("// ``` is a fence"),
    "braces in comments": inside("/* }}} */ // {{{"),
    "a barrier more": inside("__syncthreads();"),
    "barrier by the file's macro": fenced(GOOD.replace("__syncthreads()", "SYNC()")),
    "clang's loop pragma": fenced(GOOD.replace("#pragma unroll 4", "#pragma clang loop unroll_count(4)")),
    "a device builtin": inside("int lane = __builtin_amdgcn_mbcnt_lo(~0u, 0u); (void)lane;"),
    "a lambda": inside("auto twice = [](float x) { return 2 * x; }; (void)twice(1.0f);"),
    "digits in groups": inside("int big = 1'000'000; (void)big;"),
}

BAD_REPLIES = {
    # shape of the reply
    "empty": ("", "the reply is empty"),
    "blank": (" \n\t\n", "the reply is empty"),
    "prose before": (f"Here it is.\n\n{fenced(GOOD)}", "text outside of its code block (line 1)"),
    "prose after": (f"{fenced(GOOD)}\nIt unrolls `k`.", "text outside of its code block"),
    "prose only": ("I would unroll the loop.", "no fenced code block"),
    "code without a fence": (GOOD, "no fenced code block"),
    "inline code only": (f"```{GOOD.splitlines()[0]}```", "no fenced code block"),
    "thinking only": (f"<think>{fenced(GOOD)}</think>", "the reply is empty"),
    "empty block": (fenced(""), "block is empty"),
    "two blocks": (fenced(GOOD) + fenced(GOOD), "2 fenced code blocks"),
    "a draft first": (fenced("__global__ void draft() {}") + "Better:\n" + fenced(GOOD), "2 fenced"),
    "not closed": (f"```cpp\n{GOOD}\n", "is not closed"),
    "closed by the other fence": (f"```cpp\n{GOOD}\n~~~\n", "is not closed"),
    "closed by a shorter fence": (f"````cpp\n{GOOD}\n```\n", "is not closed"),
    "fence inside the code": (fenced(GOOD.replace("  __syncthreads", "```\n  __syncthreads")), "not closed"),
    "block in a block": (f"```\n```cpp\n{GOOD}\n```\n", "outside of the kernel"),
    "JSON": ('{"kernel": "..."}', "no fenced code block"),
    # the block is not the kernel
    "prose inside": (fenced(f"Here is the kernel:\n{GOOD}"), "line 1 of the block"),
    "prose behind": (fenced(f"{GOOD}\nThis is faster."), "of the block"),
    "another name": (fenced(GOOD.replace("blend", "blend_fast")), "'blend_fast', not 'blend'"),
    "name as a part": (fenced(GOOD.replace("void blend(", "void blend_blend(")), "not 'blend'"),
    "name in a comment only": (fenced(GOOD.replace("void blend(", "void /* blend( */ x(")), "not 'blend'"),
    "no kernel": (fenced("void blend(float* out) { out[0] = 1; }"), "does not define the kernel"),
    "body only": (fenced(GOOD[_BODY:]), "does not define the kernel"),
    "only the loop": (fenced("for (int k = 0; k < K; ++k) out[i] += k;"), "does not define the kernel"),
    "declaration only": (fenced(GOOD[: GOOD.index(" {\n")] + ";"), "does not define the kernel"),
    "places left out": (inside("..."), "of the block"),
    "cut off": (fenced(GOOD[:-60]), "does not define the kernel"),
    "a brace too many": (fenced(GOOD + "\n}"), "of the block"),
    "a brace too few": (fenced(GOOD[:-1]), "do not balance"),
    "same as before": (fenced(KERNEL), "same as before"),
    "same but for layout": (fenced(KERNEL.replace("  ", "\t\t") + "\n// faster"), "same as before"),
    "empty body": (fenced(GOOD[: GOOD.index("{\n") + 1] + "\n}"), "body is empty"),
    "a parameter forgotten": (fenced(GOOD.replace("if (n > 7) atomicAdd", "atomicAdd")), "parameter n"),
    # the head
    "parameter type": (fenced(GOOD.replace("int n)", "long n)")), "head of the kernel"),
    "parameter order": (fenced(GOOD.replace("const T* in, int n", "int n, const T* in")), "head of the"),
    "default argument": (fenced(GOOD.replace("int n)", "int n = 1)")), "head of the kernel"),
    "restrict dropped": (fenced(GOOD.replace("__restrict__ ", "")), "head of the kernel"),
    "launch bounds": (fenced(GOOD.replace("(256)", "(1024)")), "head of the kernel"),
    "launch bounds dropped": (fenced(GOOD.replace("__launch_bounds__(256) ", "")), "head of the kernel"),
    "template": (fenced(GOOD.replace("int K>", "int K = 8>")), "head of the kernel"),
    "template dropped": (fenced(GOOD.split("\n", 1)[1]), "head of the kernel"),
    "static in front": (fenced(GOOD.replace("__global__", "static __global__")), "head of the kernel"),
    "attribute in the head": (
        fenced(GOOD.replace("__global__", "__global__ __attribute__((annotate(1)))")),
        "head of the kernel",
    ),
    # other things in the block
    "include": (fenced(f'#include "/etc/passwd"\n{GOOD}'), "outside of the kernel"),
    "include of a header": (fenced(f"#include <hip/hip_runtime.h>\n\n{GOOD}"), "outside of the kernel"),
    "a macro": (fenced(f"#define TILE 8\n{GOOD}"), "outside of the kernel"),
    "a device function": (fenced(f"__device__ int f() {{ return 1; }}\n{GOOD}"), "the function 'f'"),
    "host code": (fenced(f"{GOOD}\nint main() {{ return 1; }}"), "the function 'main'"),
    "a constructor": (
        fenced(f"__attribute__((constructor)) void run() {{}}\n{GOOD}"),
        "the function 'run'",
    ),
    "a global object": (fenced(f"{GOOD}\nstatic int run = f();"), "outside of the kernel"),
    "another kernel": (fenced(f"{GOOD}\n__global__ void other(float* o) {{}}"), "defines 2 kernels"),
    "the whole file": (fenced(SOURCE.decode()), "defines 2 kernels"),
    "a namespace around": (fenced(f"namespace x {{\n{GOOD}\n}}"), "outside of the kernel"),
    "extern C around": (fenced(f'extern "C" {{\n{GOOD}\n}}'), "outside of the kernel"),
    # what talks to the compiler
    "include inside": (inside('#include "/etc/passwd"'), "guard directives"),
    "include_next": (inside("#include_next <x>"), "guard directives"),
    "embed": (inside('#embed "/etc/passwd"'), "guard directives"),
    "import of a file": (inside('import "/etc/passwd";'), "guard words"),
    "line": (inside('#line 1 "/etc/passwd"'), "guard directives"),
    "define inside": (inside("#define out in"), "guard directives"),
    "undef inside": (inside("#undef TILE"), "guard directives"),
    "conditional code": (inside("#if __has_include(<x>)\n#endif"), "guard directives"),
    "error directive": (inside("#error x"), "guard directives"),
    "plugin pragma": (inside("#pragma clang __debug parser_crash"), "guard directives"),
    "another loop pragma": (inside("#pragma clang loop vectorize(enable)"), "guard directives"),
    "pragma with more behind": (inside("#pragma unroll 4 /* \n */"), "guard directives"),
    "directive behind a comment": (inside("/* x */ #include <x>"), "guard directives"),
    "_Pragma": (inside('_Pragma("clang fp contract(fast)")'), "guard words"),
    "__pragma": (inside("__pragma(x);"), "guard words"),
    "asm": (inside('asm volatile("s_nop 0");'), "guard words"),
    "__asm__": (inside('__asm__(".incbin \\"/etc/passwd\\"");'), "guard words"),
    "has_include in an expression": (inside("int x = __has_include(<x>);"), "guard words"),
    # what only the compiler sees
    "line splice": (inside("// comment \\\n asm(1);"), "ends in a backslash"),
    "line splice with a blank": (inside("#pragma unroll \\ \n 4"), "ends in a backslash"),
    "spliced directive": (inside("#inc\\\nlude <x>"), "ends in a backslash"),
    "trigraph": (inside("??=include <x>"), "a trigraph"),
    "trigraph splice": (inside("// harmless ??/\nasm(1);"), "a trigraph"),
    "digraph directive": (inside("%:include <x>"), "a digraph"),
    "digraph braces": (inside("<% int y; %>"), "a digraph"),
    "universal character": (inside("\\u0061sm(1);"), "a universal character name"),
    "named character": (inside("\\N{LATIN SMALL LETTER A}sm(1);"), "a universal character name"),
    "NUL byte": (inside("int x\0;"), "U+0000"),
    "byte-order mark": (fenced(f"\ufeff{GOOD}"), "U+FEFF"),
    "bidirectional override": (inside("/* \u202e } \u2066 if (false) { */"), "U+202E"),
    "zero-width space": (inside("int a\u200bb;"), "U+200B"),
    "vertical tab": (inside("int a;\v"), "U+000B"),
    "carriage return alone": (inside("// x\rasm(1);"), "U+000D"),
    "line separator": (inside("// x\u2028asm(1);"), "U+2028"),
    "no-break space": (inside("int\u00a0x = 1;"), "of the block"),
    "stray sign": (inside("int x = 1 @ 2;"), "of the block"),
    # comments and braces
    "comment not closed": (fenced(GOOD[:-1] + "/* }"), "of the block"),
    "comment that swallows the file": (fenced(f"{GOOD} /*"), "of the block"),
    "function hidden behind a comment": (
        fenced(f"{GOOD} /* **/ void run() {{}} /* */"),
        "the function 'run'",
    ),
    "function hidden by a fake end": (
        fenced(GOOD.replace("  if (n > 7)", "} void run(float* out, float* tile, int n) {\n  if (n > 7)")),
        "the function 'run'",
    ),
    "string not closed": (inside('const char* s = "x;'), "of the block"),
    "attribute word": (inside("int x __attribute__((annotate(2))); (void)x;"), "does not parse"),
    "macro that is a pragma": (inside("DO_PRAGMA(clang x)"), "does not parse"),
    # size
    "giant reply": ("x" * (reply.MAX_REPLY_BYTES + 1), "longer than 512 KiB"),
    "giant block": (inside("// " + "x" * reply.MAX_KERNEL_BYTES), "longer than 128 KiB"),
}

#: One kernel each, so that only the compiler can tell what is wrong with it.
MEANT_BADLY = {
    "attribute on a statement": inside("[[clang::noinline]] f();"),
    "host call": inside("hipDeviceSynchronize();"),
    "printf": inside("printf(0);"),
    "system": inside("system(0);"),
    "heap": inside("float* p = new float[4];"),
    "trap": inside("if (n < 0) __builtin_trap();"),
    "assumption": inside("__builtin_assume(n == 64);"),
    "unreachable": inside("if (n != 64) __builtin_unreachable();"),
    "extern declaration": inside("extern int other_data;"),
    "friend": inside("struct S { friend void f(); };"),
    "unknown builtin": inside("__builtin_ia32_pause();"),
    "wave state": inside("__builtin_amdgcn_s_setreg(1, 2);"),
    "the file's own asm macro": inside("HALT;"),
    "barrier gone": fenced(GOOD.replace("  __syncthreads();\n", "")),
    "barrier in a comment": fenced(GOOD.replace("__syncthreads();", "// __syncthreads();")),
    "barrier weakened": fenced(GOOD.replace("__syncthreads()", "__builtin_amdgcn_s_barrier()")),
    "barrier under a condition": fenced(GOOD.replace("__syncthreads();", "if (n > 1) __syncthreads();")),
    "barrier under &&": fenced(GOOD.replace("__syncthreads();", "n > 1 && (__syncthreads(), true);")),
    "atomic gone": fenced(GOOD.replace("atomicAdd(out, tile[0])", "out[0] += tile[0]")),
    "atomic changed": fenced(GOOD.replace("atomicAdd(", "atomicExch(")),
}


@pytest.fixture(scope="module")
def blend():
    return target(SOURCE.replace(b"#define SYNC", b'#define HALT asm("s_endpgm")\n#define SYNC'))


@pytest.mark.parametrize("name", GOOD_REPLIES)
def test_a_good_reply_replaces_the_kernel_and_nothing_else(name, blend):
    judged = judge_reply(GOOD_REPLIES[name], blend)
    assert isinstance(judged, SoundReply), judged
    before, after = blend.file.text, apply_edits(blend.file.text, (judged.edit,))
    begin, end = before.index(KERNEL.encode()), before.index(KERNEL.encode()) + len(KERNEL)
    assert (judged.edit.begin, judged.edit.end) == (begin, end)
    assert (after[:begin], after[begin + len(judged.edit.replacement) :]) == (before[:begin], before[end:])
    kernel, line, number = judged.edit.replacement.partition(b"\n#line ")
    assert (kernel[:10], kernel[-1:], bool(line)) == (b"template <", b"}", b"\n" in line)
    assert not line or int(number) == before.count(b"\n", 0, end) + 2
    assert all(guard.passed for guard in judged.guards)


@pytest.mark.parametrize("name", BAD_REPLIES)
def test_a_bad_reply_is_one_problem(name, blend):
    reply, reason = BAD_REPLIES[name]
    judged = judge_reply(reply, blend)
    assert isinstance(judged, Problem), f"{name} got through"
    assert reason in judged.reason
    assert "\n" not in judged.reason
    assert len(judged.reason) < 400


def test_the_table_is_long_enough():
    assert len(BAD_REPLIES) + len(MEANT_BADLY) > 100


def test_the_line_endings_of_the_file_are_kept():
    dos = target(SOURCE.replace(b"\n", b"\r\n"))
    judged = judge_reply(fenced(GOOD), dos)
    assert isinstance(judged, SoundReply), judged
    assert judged.edit.replacement == GOOD.encode().replace(b"\n", b"\r\n") + b"\r\n#line 18"


def test_what_the_original_has_may_stay():
    odd = KERNEL.replace(
        "  int i =", '  const char* s = "x";\n  asm volatile("s_nop 0");\n#define A \\\n  1\n  int i ='
    )
    odd_target = target(SOURCE.replace(KERNEL.encode(), odd.encode()))
    good = odd.replace("for (int k", "#pragma unroll 4\n  for (int k")
    assert isinstance(judge_reply(fenced(good), odd_target), SoundReply)
    assert isinstance(judge_reply(fenced(good.replace("A \\", "B \\")), odd_target), Problem)
    twice = good.replace('asm volatile("s_nop 0");', 'asm volatile("s_nop 0"); asm volatile("s_nop 0");')
    assert "guard words" in judge_reply(fenced(twice), odd_target).reason


@pytest.fixture(scope="module")
def judges():
    """The judge of this file's tests, which reads the source once."""
    return {}


@pytest.fixture
def meaning(rpl_require, tmp_path_factory, judges):
    """What the compiler says of a reply about ``blend``, with an instance of it."""
    headers = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
    words = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-I", str(headers))
    source = tmp_path_factory.mktemp("meaning") / "blend.hip"
    macros = b'#define HALT asm("s_endpgm")\n#define DO_PRAGMA(x) _Pragma(#x)\n#define SYNC'
    whole = SOURCE.replace(b"#define SYNC", macros).replace(
        b"\n__global__ void other",
        b"\ntemplate __global__ void blend<float, 8>(float*, const float*, int);\n__global__ void other",
    )
    source.write_bytes(whole)
    front_end = FrontEnd((str(rpl_require("clang++-22")), *words), source, source, source.parent)
    judge, about = judges.setdefault("blend", MeaningJudge(front_end, whole)), target(whole)

    def ask(reply: str) -> tuple[str, ...]:
        sound = judge_reply(reply, about)
        assert isinstance(sound, SoundReply), sound
        verdicts = judge.judge(apply_edits(whole, (sound.edit,))).verdicts
        return tuple(verdict.guard for verdict in verdicts if not verdict.passed)

    return ask


@pytest.mark.clang
def test_a_good_reply_means_the_same(meaning):
    assert meaning(fenced(GOOD)) == ()


_QUICK = ("barrier under a condition", "the file's own asm macro", "atomic changed")
_CASES = [pytest.param(n, marks=() if n in _QUICK else pytest.mark.long) for n in MEANT_BADLY]


@pytest.mark.clang
@pytest.mark.parametrize("name", _CASES)
def test_what_only_the_compiler_sees_is_refused_by_it(meaning, name):
    assert meaning(MEANT_BADLY[name]) != ()


def test_deep_nesting_ends_in_a_problem():
    assert isinstance(judge_reply(inside("(" * 20_000), target()), Problem)
    assert isinstance(judge_reply(inside("{" * 20_000), target()), Problem)
