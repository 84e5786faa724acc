"""A prompt as values: one system text and titled sections, and the messages they become."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import attrs

from rpl_core.values import frozen
from rpl_llm_unroll.asking.budget import tokens_of
from rpl_llm_unroll.asking.exchange import Message, digest_of


@frozen
class Section:
    title: str
    text: str


@frozen
class Prompt:
    """``subject`` identifies the question whatever the figures in it are: source, kernel, attempts."""

    kernel: str
    file: str
    form: str
    system: str
    sections: tuple[Section, ...]
    subject: str

    @property
    def user(self) -> str:
        return "\n\n".join(f"## {section.title}\n\n{section.text}" for section in self.sections) + "\n"

    @property
    def messages(self) -> tuple[Message, ...]:
        return (Message("system", self.system), Message("user", self.user))

    def text(self) -> str:
        """Both messages as one text for people."""
        return f"{self.system}\n\n{self.user}"

    def plain(self) -> dict[str, Any]:
        """The JSON form of ``rpl prompt --json``."""
        return {
            "schema_version": "1.0",
            "kernel": self.kernel,
            "file": self.file,
            "form": self.form,
            "messages": [attrs.asdict(message) for message in self.messages],
            "sections": [attrs.asdict(section) for section in self.sections],
            "bytes": sum(len(message.content.encode()) for message in self.messages),
            "tokens_estimate": tokens_of(self.messages),
            "sha256": digest_of(self.messages),
        }


def subject_of(*parts: object) -> str:
    """SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()
