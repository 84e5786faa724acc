"""Devices of one search: whose times count as they are, and by what those of others are corrected."""

from __future__ import annotations

import attrs

from rpl_autotune.contracts.autotune import DevicePart


@attrs.define
class Devices:
    """References by device. The first device that has one is the standard."""

    _references: dict[str, float | None] = attrs.field(factory=dict)
    _evaluations: dict[str, int] = attrs.field(factory=dict)
    several: bool = False

    def is_known(self, device: str) -> bool:
        """Whether times of ``device`` can be used: it measured the reference, or there is no other device."""
        return device in self._references

    def learn(self, device: str, reference_ms: float | None) -> None:
        """``reference_ms`` is the reference configuration's time there, ``None`` where that failed."""
        self._references[device] = reference_ms

    @property
    def standard(self) -> str | None:
        return next(iter(self._references), None)

    def correction(self, device: str) -> float | None:
        """The factor for times of ``device``; ``None``: they are not corrected."""
        own = self._references.get(device)
        first = self._references.get(self.standard or "")
        if not self.several or own is None or first is None:
            return None
        return first / own

    def count(self, device: str) -> None:
        self._evaluations[device] = self._evaluations.get(device, 0) + 1

    def parts(self) -> tuple[DevicePart, ...]:
        return tuple(
            DevicePart(
                name=name,
                evaluations=self._evaluations.get(name, 0),
                reference_ms=reference,
                correction=self.correction(name),
            )
            for name, reference in self._references.items()
        )
