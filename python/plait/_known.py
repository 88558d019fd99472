"""What is known by name, and profiles."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, List, Optional, TypeVar, Union

from . import _core
from ._records import Record, flat, frame, table
from ._words import path_or_document

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

Entry = TypeVar("Entry", bound=Record)


class KnownModel(Record):
    """A model that is known by name."""

    __slots__ = ()
    name: str
    aliases: list[str]
    parameters: int
    layers: int
    sequence_length: int
    source: str


class KnownDevice(Record):
    """A device type that is known by name."""

    __slots__ = ()
    name: str
    aliases: list[str]
    memory_GiB: float
    memory_bandwidth_GBps: float
    peak_TFLOPs: dict[str, float]
    price_usd_per_hour: Optional[float]
    source: str


class KnownInstance(Record):
    """A machine that a cloud rents out."""

    __slots__ = ()
    name: str
    provider: str
    device: str
    count: int
    network_Gbps: float
    price_usd_per_hour: Optional[float]
    spot_usd_per_hour: Optional[float]
    date: str
    source: str


class ModelKind(Record):
    """Equal units of a model."""

    __slots__ = ()
    name: str
    count: int
    parameters: int
    forward_flops: float
    ops: int


class ModelSummary(Record):
    """What a model is made of."""

    __slots__ = ()
    _parts = {"kinds": ModelKind}
    name: str
    parameters: int
    layers: int
    units: int
    sequence_length: int
    vocabulary: int
    causal: bool
    forward_flops_per_sample: float
    flops_per_sample: float
    kinds: list[ModelKind]
    warnings: list[str]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each kind of unit. Needs pandas."""
        return frame([flat(kind.to_dict()) for kind in self.kinds])


class Profile(Record):
    """Measured times, as a profile file has them: pass it on as ``profile=``."""

    __slots__ = ()

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a profile file, which ``--profile`` takes."""
        _core.write_file(path_or_document("path", path), json.dumps(self._values, indent=1) + "\n")


class KnownList(List[Entry]):
    """A list of what is known by name, which a notebook shows as a table."""

    def to_dict(self) -> list[dict[str, Any]]:
        return [entry.to_dict() for entry in self]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each entry. Needs pandas."""
        return frame(self.to_dict())

    def _repr_html_(self) -> str:
        return table([flat(row) for row in self.to_dict()])
