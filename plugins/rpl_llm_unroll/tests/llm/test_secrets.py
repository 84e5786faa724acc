"""What looks like a secret is found by line and kind; what kernels are full of is not."""

from __future__ import annotations

import pytest

from rpl_llm_unroll.exchange import find_secrets

_RANDOM = "9f8a7b6c5d4e3f2a1b0c9f8a7b6c5d4e"
SECRETS = {
    '// key of the service: "sk-proj-abcdefGHIJ0123456789klmnop"': "OpenAI",
    "sk-abcdefghijklmnopqrst0123": "OpenAI",
    "// AWS AKIAIOSFODNN7EXAMPLE": "AWS",
    'auto t = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";': "GitHub",
    "github_pat_11ABCDEFG0abcdefghijklmnopqrstuvwxyz0123456789": "GitHub",
    "glpat-abcdefghij0123456789": "GitLab",
    "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": "SendGrid",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH": "Hugging Face",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv": "Google",
    "xoxb-123456789012-abcdefghij": "Slack",
    "sk_live_abcdefghijklmnop0123": "Stripe",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789": "package index",
    "-----BEGIN RSA PRIVATE KEY-----": "private key",
    "-----BEGIN OPENSSH PRIVATE KEY-----": "private key",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk": "JSON Web Token",
    "// curl -H 'Authorization: Bearer abcdef0123456789abcdef'": "authorization",
    "// https://user:hunter2@example.com/x": "Basic Auth",
    '#define PASSWORD "hunter2hunter2"': "assigned",
    f'std::string token = "{_RANDOM}";': "assigned",
    f'const char* API_KEY{{"{_RANDOM}"}};': "assigned",
    f'login("x", secret="{_RANDOM}")': "assigned",
    f'{{"access_key": "{_RANDOM}"}}': "assigned",
    f"// api_key={_RANDOM}": "assigned",
    f'// key = "{_RANDOM}"': "assigned",
}
HARMLESS = (
    "int key = threadIdx.x * 4 + keys[i];",
    "float token_weight = weights[token];",
    "const uint64_t secret = 0x9E3779B97F4A7C15ull;",
    "const int password = hash(key_buffer, 0xDEADBEEF);",
    "template <typename Key> void f(Key key = Key());",
    "key = static_cast<unsigned long>(value_of_key_at_position);",
    "token = next_token_of_this_very_long_sequence_name;",
    'printf("token = %d\\n", token);',
    'const char* h = "d41d8cd98f00b204e9800998ecf8427e";',
    'char pad[] = "xxxxxxxxxxxxxxxx";',
    'auto key = "%s_%s_%s_%s";',
    'const char* key = "hidden_layer_size";',
    'lookup(key, "expert_token_counts");',
    "__global__ __launch_bounds__(256) void blend(float* __restrict__ out, const float* in, int n) {",
    "  v_lshl_add_u64 v[6:7], v[2:3], 2, s[4:5]",
    "// see https://example.com:8080/a@b",
    "#include <rocm-core/rocm_version.h>",
)


@pytest.mark.parametrize("line", SECRETS)
def test_a_secret_is_found(line):
    (found,) = find_secrets(f"int x;\n{line}\nint y;")
    assert found.line == 2
    assert SECRETS[line] in found.kind


@pytest.mark.parametrize("line", HARMLESS)
def test_code_is_no_secret(line):
    assert find_secrets(line) == ()


def test_the_kernels_of_the_corpus_hold_no_secret(request):
    corpus = request.path.parents[3] / "rpl_transforms" / "tests" / "corpus"
    sources = [path.read_text(encoding="utf-8") for path in sorted(corpus.glob("*.hip"))]
    assert len(sources) > 50
    assert [find_secrets(text) for text in sources if find_secrets(text)] == []


def test_a_line_with_the_usual_comment_passes():
    assert find_secrets("// AWS AKIAIOSFODNN7EXAMPLE  pragma: allowlist secret") == ()
