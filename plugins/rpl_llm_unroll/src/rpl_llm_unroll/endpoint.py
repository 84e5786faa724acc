"""One question over the network, by the ``openai`` package, to any endpoint that speaks its chat API.

Bounded in time, memory and number of tries. The key goes into one header and nowhere else; redirects are
not followed, so the source goes to the host that was named and to no other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_llm_unroll.exchange import clean_text, estimated_tokens, tokens_of
from rpl_llm_unroll.interfaces.client import Answer, Connection, LlmClient, Message, ModelRequest, Usage

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
#: A kernel of 128 KiB in JSON with a long reasoning beside it (chosen).
MAX_ANSWER_BYTES = 8 << 20
_MAX_ERROR_BYTES = 16 << 10
_TRIES = 4
_LONGEST_PAUSE_S = 30.0
_SHOWN_CHARACTERS = 200
_HTTP_LIBRARIES = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "h11"})
#: Status codes that another try may get past: RFC 9110 (408, 5xx), RFC 6585 (429), RFC 8470 (425).
_PASSING = frozenset({408, 409, 425, 429})
_MOST_TOKENS = 10**9
_COUNTS = ("prompt_tokens", "completion_tokens")


class _PassingError(Exception):
    """A failure that may pass; ``pause_s`` is what the server asked for."""

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.pause_s = reason, pause_s


class _BadStatusError(Exception):
    """Raised inside the client, so that no more than a bounded part of an error's body is read."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.headers, self.body = status, headers, body


class Endpoint(Connection):
    """``request`` names its ``base_url``, ``environment`` holds the key.

    ``note`` is told about every try that failed.
    """

    def __init__(
        self,
        request: ModelRequest,
        environment: Mapping[str, str],
        note: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._request = request
        self.destination = urlsplit(request.base_url or "").netloc
        self._key = environment.get(KEY_VARIABLE, "")
        if not self._key and request.base_url == DEFAULT_BASE_URL:
            raise MissingError(
                f"{KEY_VARIABLE} is not set", next_step=f"export {KEY_VARIABLE}, or name another --base-url"
            )
        if not self._key.isascii() or not self._key.isprintable():
            raise UsageError(f"{KEY_VARIABLE} holds characters that no key has", next_step="set it again")
        self._note, self._sleep = note, sleep
        self._limit_name = "max_tokens"
        self._client: Any = None
        self._deadline = 0.0

    def ask(self, messages: tuple[Message, ...]) -> Answer:
        """The answer.

        Raises ``MissingError`` when there is none, ``BadDataError`` for one that is no chat completion.
        """
        if (self._request.base_url or "").startswith("http://") and not _is_local(self.destination):
            self._note("llm: the connection is not encrypted (http)")
        pause_s = 1.0
        for left in reversed(range(_TRIES)):
            try:
                return self._once(messages)
            except _PassingError as trouble:
                if left == 0:
                    raise MissingError(
                        f"{self.destination} gave no answer in {_TRIES} tries: {trouble.reason}",
                        next_step="try again later; exchanges so far are kept and not asked again",
                    ) from None
                wait = min(trouble.pause_s or pause_s, _LONGEST_PAUSE_S)
                self._note(f"llm: {trouble.reason}; next try in {wait:g} s")
                self._sleep(wait)
                pause_s *= 2
        raise AssertionError("unreachable")

    def _once(self, messages: tuple[Message, ...]) -> Answer:
        import openai

        self._deadline = time.monotonic() + self._request.timeout_s
        try:
            with self._open(messages) as response:
                # Without a chunk size, bytes come as they arrive, and the deadline is looked at.
                body = _bounded(response.iter_bytes(), MAX_ANSWER_BYTES, self._deadline)
        except _BadStatusError as error:
            return self._after_bad_status(error, messages)
        except (openai.APITimeoutError, TimeoutError):
            raise self._too_slow() from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, _BadStatusError):  # some releases wrap what a hook raises
                return self._after_bad_status(error.__cause__, messages)
            if isinstance(error.__cause__, TimeoutError):
                raise self._too_slow() from None
            raise _PassingError(f"no connection to {self.destination}: {_reason(error)}") from None
        except openai.OpenAIError as error:
            raise BadDataError(f"{self.destination} can't be asked: {self._shown(str(error))}") from None
        except OSError as error:
            raise _PassingError(f"the connection broke: {error}") from None
        except Exception as error:  # of the HTTP library, whose name differs between releases of openai
            if type(error).__module__.partition(".")[0] not in _HTTP_LIBRARIES:
                raise
            raise _PassingError(f"the answer broke off: {type(error).__name__}") from None
        return parse_answer(body, messages, self.destination)

    def _after_bad_status(self, error: _BadStatusError, messages: tuple[Message, ...]) -> Answer:
        if self._must_rename_limit(error):
            return self._once(messages)
        raise self._failure(error) from None

    def _open(self, messages: tuple[Message, ...]) -> Any:
        parameters: dict[str, Any] = self._request.parameters()
        limit = {self._limit_name: parameters.pop("max_tokens")}
        plain = [{"role": message.role, "content": message.content} for message in messages]
        return self._connected().chat.completions.with_streaming_response.create(
            messages=plain,
            # Compressed bodies would make the bound on memory one on something else.
            extra_headers={"Accept-Encoding": "identity"},
            extra_body=limit,  # older releases know one of its names only
            **parameters,
        )

    def _connected(self) -> Any:
        if self._client is None:
            import openai

            transport = openai.DefaultHttpxClient(
                follow_redirects=False, event_hooks={"response": [self._refuse_bad_status]}
            )
            self._client = openai.OpenAI(
                api_key=self._key or "none",
                base_url=self._request.base_url,
                timeout=self._request.timeout_s,
                max_retries=0,
                http_client=transport,
            )
        return self._client

    def _refuse_bad_status(self, response: Any) -> None:
        """A hook of the HTTP client: it sees the status before anything reads the body."""
        if response.status_code == 200:
            return
        body = b""
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > _MAX_ERROR_BYTES or time.monotonic() > self._deadline:
                break
        response.close()
        raise _BadStatusError(response.status_code, dict(response.headers), body)

    def _too_slow(self) -> _PassingError:
        return _PassingError(f"{self.destination} did not answer within {self._request.timeout_s:g} s")

    def _must_rename_limit(self, error: _BadStatusError) -> bool:
        """Newer models of some endpoints take the limit under another name only, and say so."""
        renamed = "max_completion_tokens"
        if error.status != 400 or self._limit_name == renamed or renamed.encode() not in error.body:
            return False
        self._limit_name = renamed
        return True

    def _failure(self, error: _BadStatusError) -> Exception:
        host, status = self.destination, error.status
        if status in {401, 403}:  # servers repeat the key here
            return MissingError(
                f"{host} refuses the key (status {status})", next_step=f"check {KEY_VARIABLE}"
            )
        said = self._shown(error.body.decode("utf-8", "replace"))
        if (status in _PASSING or status >= 500) and b"insufficient_quota" not in error.body:
            return _PassingError(f"{host} answered with status {status}", _asked_pause(error.headers))
        if status < 400:
            return MissingError(
                f"{host} answered with status {status}, a redirect, which is not followed",
                next_step="give the final address with --base-url",
            )
        return MissingError(
            f"{host} refused the request (status {status}): {said}",
            next_step="check --model, --base-url and the other options of the request",
        )

    def _shown(self, text: str) -> str:
        """Text of a server for people: short, and never the key."""
        if self._key:
            text = text.replace(self._key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_SHOWN_CHARACTERS]


def _bounded(chunks: Iterable[bytes], limit: int, deadline: float) -> bytes:
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise BadDataError(f"the answer is larger than {limit >> 20} MiB, so it was not read")
        if time.monotonic() > deadline:
            raise TimeoutError
        parts.append(chunk)
    return b"".join(parts)


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    return " ".join(str(cause).split())[:_SHOWN_CHARACTERS] or type(cause).__name__


def parse_answer(body: bytes, messages: tuple[Message, ...], host: str) -> Answer:
    """The first choice's message. Raises ``BadDataError`` when ``body`` is no chat completion."""
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = dict(choice["message"].items())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise BadDataError(
            f"the answer of {host} is no chat completion",
            cause="the base URL leads to something else",
            next_step="check --base-url; it usually ends in /v1",
        ) from None
    text = clean_text(_content(message.get("content")))
    return Answer(
        text=text,
        finish_reason=_optional(choice.get("finish_reason")),
        usage=_usage(document.get("usage"), messages, text),
        model=_optional(document.get("model")),
        refusal=_optional(message.get("refusal")),
    )


def _content(content: Any) -> str:
    """Text, or the text parts of a list of parts, as some endpoints send them."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _optional(value: Any) -> str | None:
    return clean_text(value[:2000]) if isinstance(value, str) else None


def _usage(usage: Any, messages: tuple[Message, ...], text: str) -> Usage:
    given = [usage.get(name) if isinstance(usage, dict) else None for name in _COUNTS]
    counts = [v for v in given if isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= _MOST_TOKENS]
    if len(counts) == len(_COUNTS):
        return Usage(counts[0], counts[1])
    return Usage(tokens_of(messages), estimated_tokens(text), estimated=True)


def _is_local(host: str) -> bool:
    return host.rsplit(":", 1)[0] in {"localhost", "127.0.0.1", "[::1]"}


class OpenAiClient(LlmClient):
    """Any endpoint that speaks OpenAI's chat API. ``sleep`` waits between tries."""

    name = "openai"
    summary = "any endpoint with OpenAI's chat API, by the openai package"

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep

    def connection(
        self, request: ModelRequest, environment: Mapping[str, str], note: Callable[[str], None]
    ) -> Endpoint:
        given, place = request.base_url, "--base-url"
        if given is None:
            given, place = environment.get(URL_VARIABLE) or DEFAULT_BASE_URL, URL_VARIABLE
        named = attrs.evolve(request, base_url=_checked_url(given, place))
        return Endpoint(named, environment, note, self._sleep)


def _checked_url(url: str, place: str) -> str:
    """A base URL. Its text is never shown whole: a password may be in it."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise UsageError(f"{place} is no URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{place} is no http or https URL", next_step=f"for example {DEFAULT_BASE_URL}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            f"{place} holds a user name, a query or a fragment",
            next_step=f"leave them out; the key belongs into {KEY_VARIABLE}",
        )
    return url.strip().rstrip("/")
