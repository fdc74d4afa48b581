"""The base class of scaling methods: parameters, a formula, a reference, and the config that expresses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Self

from ropectl.errors import MethodError
from ropectl.faults import explain
from ropectl.rope.config_patch import RopeConfigPatch, universal_config
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import MethodGuide
from ropectl.rope.proportional import proportional_block
from ropectl.specs import format_spec

#: No published method extends further; larger numbers only overflow.
MAX_FACTOR = 1e6

#: Longest spec that is shown in full where space is short.
SHORT_SPEC_WIDTH = 24


class Reference(NamedTuple):
    """The publication of a method."""

    title: str
    arxiv: str = ""
    url: str = ""

    def __str__(self) -> str:
        source = f"arXiv {self.arxiv}" if self.arxiv else self.url
        return f"{self.title} ({source})" if source else self.title


def _same_target(given: Any, factor: float, geometry: RopeGeometry) -> bool:
    """Returns whether two factors mean the same number of tokens; anything but a number is left to the field's own check."""
    try:
        return geometry.target_length(float(given)) == geometry.target_length(factor)
    except (TypeError, ValueError, OverflowError):
        return True


def factor_field() -> Any:
    """Declares the field ``factor``, s = L'/L: required, because it is the request itself."""
    return Field(ge=1.0, le=MAX_FACTOR, description="extension factor s = L'/L", json_schema_extra={"unit": "1"})


class ScalingMethod(BaseModel, ABC):
    """A way to change rotary frequencies so that more positions can be told apart or reused.

    Subclasses declare their parameters as fields, once: the command line, the documentation, the
    records and the checks all read them from there. A method is a value: equal parameters make equal
    methods, and ``str(method)`` is the spec that makes the same method again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    reference: ClassVar[Reference]
    #: The type in a stock config that computes it, for people.
    native: ClassVar[str]
    #: The explanation for people; None where a package's method has none.
    guide: ClassVar[MethodGuide | None] = None
    #: Whether the frequencies may change with the length of the sequence.
    varies_with_length: ClassVar[bool] = False

    @abstractmethod
    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        """Returns the frequencies for a sequence of ``seq_len`` tokens.

        Args:
            geometry: The geometry that the model was trained with.
            seq_len: n, length of the whole sequence [tokens]; only length-dependent methods read it,
                and take the trained length where it is None.

        Raises:
            MethodError: If a parameter cannot work with this geometry.
        """

    @property
    def depends_on_seq_len(self) -> bool:
        """True if these parameters make the frequencies depend on the length of the sequence."""
        return self.varies_with_length

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch | None:
        """Returns the stock config that computes exactly this, or None where there is none."""
        return None

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        """Returns the method that a stock ``rope_parameters`` block stands for, or None if it belongs to another method."""
        return None

    @classmethod
    def fill_factor(cls, parameters: dict[str, Any], factor: float, geometry: RopeGeometry) -> dict[str, Any]:
        """Returns ``parameters`` completed by a wanted extension factor (``--factor``, ``--target-length``).

        Methods without a field that means s = L'/L leave them as they are.

        Raises:
            MethodError: If ``parameters`` already asks for another factor.
        """
        if "factor" not in cls.model_fields:
            return parameters
        given = parameters.setdefault("factor", factor)
        if not _same_target(given, factor, geometry):
            raise MethodError(
                f"{cls.name}: the spec says factor={given}, --factor or --target-length says {factor:g}.",
                "Give the factor once.",
            )
        return parameters

    @classmethod
    def check_written(cls, parameters: dict[str, Any], geometry: RopeGeometry) -> None:
        """Checks what a spec says against the model that it is for, before anything completes it.

        Raises:
            MethodError: If a parameter that is written there changes nothing of this model.
        """

    @classmethod
    def missing(cls, parameters: dict[str, Any]) -> list[str]:
        """Returns the names of required parameters that are not given."""
        return [name for name, field in cls.model_fields.items() if field.is_required() and name not in parameters]

    @classmethod
    def create(cls, parameters: dict[str, Any]) -> Self:
        """Returns the method with these parameters, strings welcome.

        Raises:
            MethodError: Naming the parameter, its value and what is allowed.
        """
        try:
            return cls(**parameters)
        except ValidationError as error:
            raise MethodError(*explain(cls, cls.name, error, parameters, partial(example, cls))) from None

    def target_length(self, geometry: RopeGeometry) -> int:
        """Returns the context that the method aims at [tokens]: s * L, or L where it has no factor."""
        return geometry.target_length(getattr(self, "factor", 1.0))

    def capacity(self, geometry: RopeGeometry) -> int | None:
        """Returns the length that the method is made for [tokens]; None if it follows the length."""
        return None if self.depends_on_seq_len else self.target_length(geometry)

    def frozen_config(self, geometry: RopeGeometry, seq_len: int) -> RopeConfigPatch:
        """Returns a config that computes, at every position, what this method computes for ``seq_len`` tokens.

        The native type where the method does not depend on the length and has one, else the universal
        form. Evaluating a length-dependent method this way makes its numbers independent of what
        was run before, which the ``dynamic`` type of transformers is not.
        """
        native = None if self.depends_on_seq_len else self.native_config(geometry)
        return native or universal_config(geometry, self.frequencies(geometry, seq_len), seq_len)

    def config_patch(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeConfigPatch:
        """Returns the config that a model or checkpoint is given: the native type if exact, else the universal form.

        Args:
            geometry: The geometry that the model was trained with.
            seq_len: Freeze a length-dependent method at this length [tokens]. Without it such a method
                takes its native form, which follows the length, or is frozen at its target.
        """
        length = self.target_length(geometry) if seq_len is None else seq_len
        native = self.native_config(geometry) if seq_len is None else None
        if geometry.num_turning is None:
            return native or self.frozen_config(geometry, length)
        for patch in filter(None, (native, self.frozen_config(geometry, length))):
            block = proportional_block(patch.rope_parameters, geometry)
            if block is not None:
                return replace(patch, rope_parameters=block)
        return universal_config(geometry, self.frequencies(geometry, length), length)

    def derived(self, geometry: RopeGeometry) -> dict[str, DerivedValue]:
        """Returns what else follows from the parameters on a geometry and is worth showing, by name."""
        return {}

    @property
    def label(self) -> str:
        """The spec for people, with long lists of numbers shown as their count."""
        return short_spec(str(self))

    def __str__(self) -> str:
        return format_spec(self.name, self.model_dump(exclude_defaults=True))


def short_spec(spec: str) -> str:
    """Returns a method spec for people: in a long one, lists of numbers are shown as their count."""
    if len(spec) <= SHORT_SPEC_WIDTH:
        return spec
    name, _, rest = spec.partition(":")
    parts = []
    for pair in rest.split(","):
        key, _, value = pair.partition("=")
        parts.append(f"{key}=[{value.count(':') + 1} values]" if ":" in value else pair)
    return f"{name}:{','.join(parts)}"


def example(method: type[ScalingMethod], name: str) -> str:
    """Returns what to type to give a missing parameter."""
    if method.model_fields[name].annotation is float:
        return (
            f"Type for example: -m {method.name}:{name}=4"
            if name == "factor"
            else f"Type: -m {method.name}:{name}=NUMBER"
        )
    return f"Type: -m {method.name}:{name}=1:1.5:2 with one number per pair, joined by colons, or {name}=@FILE.json"
