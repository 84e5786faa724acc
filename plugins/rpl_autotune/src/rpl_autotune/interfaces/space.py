"""The search space as strategies see it: configurations by index, and numbers to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.features import Features

__all__ = ["Configuration", "SearchSpace", "Value"]

#: What a parameter can be set to.
Value: TypeAlias = "bool | int | float | str"
#: The values of all parameters, in the order of ``SearchSpace.parameters``.
Configuration: TypeAlias = "tuple[Value, ...]"


@frozen(eq=False)
class SearchSpace:
    """All configurations that the constraints permit. ``default`` is the index of the usual one.

    ``given_features`` are columns by name that the user or a code object adds, one number for each
    configuration.
    """

    parameters: tuple[str, ...]
    configurations: tuple[Configuration, ...] = attrs.field(repr=False)
    default: int
    given_features: Mapping[str, tuple[float, ...]] = attrs.field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.configurations)

    def values(self, index: int) -> dict[str, Value]:
        """The configuration as a mapping from parameter to value."""
        return dict(zip(self.parameters, self.configurations[index], strict=True))

    def index_of(self, values: Mapping[str, Value]) -> int | None:
        """The configuration with these values, or ``None``."""
        return self._indices.get(tuple(values.get(name, "") for name in self.parameters))

    def levels(self, position: int) -> tuple[Value, ...]:
        """The distinct values of a parameter, in order; numbers by size."""
        values = dict.fromkeys(configuration[position] for configuration in self.configurations)
        if all(isinstance(value, (int, float)) for value in values):
            return tuple(sorted(values, key=float))
        return tuple(values)

    @cached_property
    def features(self) -> Features:
        """Numbers to learn from, worked out when first asked for."""
        from rpl_autotune.interfaces.features import features_of

        return features_of(self)

    @cached_property
    def _indices(self) -> dict[Configuration, int]:
        return {configuration: index for index, configuration in enumerate(self.configurations)}
