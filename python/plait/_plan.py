"""Plans."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _core
from ._errors import InputError
from ._records import Record, flat, frame, table
from ._words import path_or_document

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

    from ._search_answers import Search

_COLUMNS = 120


class Span(Record):
    """Units of a stage that are cut in one way: `units` [first, end), `tensor` and `data` degrees."""

    __slots__ = ()
    units: list[int]
    tensor: int
    data: int


class StageTime(Record):
    """Seconds of one micro-batch, and of the end of a step, by name."""

    __slots__ = ()
    forward_s: float
    backward_s: float
    recompute_s: float
    weight_gradient_s: float
    forward_comm_s: float
    backward_comm_s: float
    send_s: float
    gradient_sync_s: float
    tied_sync_s: float
    optimizer_s: float


class StageMemory(Record):
    """GiB of the device of a stage that has least to spare, by name."""

    __slots__ = ()
    weights_GiB: float
    gradients_GiB: float
    optimizer_state_GiB: float
    activations_GiB: float
    workspace_GiB: float
    reserve_GiB: float
    capacity_GiB: float


class Stage(Record):
    """A stage of a plan, with what it is predicted to take: its devices in words (`devices`) and by id
    (`device_ids`, "0-3"), its units in words (`what`) and as `spans`; passes of one micro-batch in seconds;
    memory in GiB. `source` says whether times are measured, interpolated or analytic."""

    __slots__ = ()
    _parts = {"spans": Span, "time": StageTime, "memory": StageMemory}
    devices: str
    device_ids: str
    what: str
    spans: list[Span]
    forward_s: float
    backward_s: float
    peak_memory_GiB: float
    spare_memory_GiB: float
    time: StageTime
    memory: StageMemory
    source: str
    memory_source: str


class Plan:
    """A way to train one model on one cluster, with all that it was made from.

    A plan is a value: it never changes, and two plans are equal when they do the same with the same model,
    cluster and job, wherever they come from. `plait.plan()` finds plans; `Plan.load()` reads files that it,
    or ``plait plan -o``, saved. Plans can be pickled.
    """

    __slots__ = ("_saved", "_ranked", "_search")

    def __init__(self, saved: _core.SavedPlan, search: Optional[Search] = None) -> None:
        self._saved = saved
        self._search = search
        self._ranked: Optional[dict[str, Any]] = None

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str], Mapping[str, Any]]) -> Plan:
        """The plan of a file, or of the dict that such a file holds. InputError when it is not sound."""
        return cls(_core.SavedPlan.read(path_or_document("plan", path)))

    @classmethod
    def loads(cls, text: str) -> Plan:
        """The plan of a text that `dumps()` gave."""
        if not isinstance(text, str) or not text.lstrip().startswith("{"):
            raise InputError("plan", "is not the text of a plan file")
        return cls(_core.SavedPlan.read(text))

    def dumps(self) -> str:
        """The text of the file that `save()` writes."""
        return self._saved.file()

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a plan file, which every verb of the program takes and which needs no other file. A reader
        never sees half of it."""
        _core.write_file(path_or_document("path", path), self.dumps())

    def describe(self) -> str:
        """The plan in a line: ``pp4 tp1 dp4 m8 1f1b zero1 layers=13,12,12,11 devices=0-3|4-7|8-11|12-15``."""
        return self._saved.describe()

    def _values(self) -> dict[str, Any]:
        if self._ranked is None:
            self._ranked = json.loads(self._saved.json())
        return self._ranked

    @property
    def stages(self) -> list[Stage]:
        """The stages in the order of the pipeline."""
        return [Stage(stage) for stage in self._values()["stages"]]

    @property
    def step_s(self) -> float:
        """Predicted seconds of one optimizer step."""
        return float(self._values()["step_s"])

    @property
    def tokens_per_s(self) -> float:
        return float(self._values()["tokens_per_s"])

    @property
    def mfu(self) -> float:
        """Model flops utilisation, from 0 to 1; causal attention counts once."""
        return float(self._values()["mfu"])

    @property
    def peak_memory_GiB(self) -> float:
        """Of the stage that needs most."""
        return float(self._values()["peak_memory_GiB"])

    @property
    def usd_per_step(self) -> Optional[float]:
        """None where a price is not known."""
        price = self._values()["usd_per_step"]
        return None if price is None else float(price)

    @property
    def layout(self) -> dict[str, Any]:
        """The plan alone, as plan files have it: schedule, micro-batches, stages with spans and devices."""
        return dict(self.to_dict()["plan"])

    @property
    def search(self) -> Optional[Search]:
        """What the search that found this plan says of it; None for a plan that was loaded."""
        return self._search

    def to_dict(self) -> dict[str, Any]:
        """The plan and its predicted cost, as an entry of ``plans`` in ``plait plan --json``."""
        values: dict[str, Any] = json.loads(self._saved.json())
        return values

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each stage. Needs pandas."""
        return frame(self._rows())

    def timeline(self) -> str:
        """The predicted step as an SVG: when each stage runs what."""
        return self._saved.timeline()

    def trace(self) -> str:
        """The same as a file for Perfetto."""
        return self._saved.trace()

    def _rows(self) -> list[dict[str, Any]]:
        return [{"stage": number, **flat(stage.to_dict())} for number, stage in enumerate(self.stages, 1)]

    def __str__(self) -> str:
        return str(self._search) if self._search is not None else self._saved.text(_COLUMNS)

    def __repr__(self) -> str:
        return f"<Plan {self.describe()}: {self.step_s:.4g} s>"

    def _repr_html_(self) -> str:
        keys = ("stage", "what", "devices", "forward_s", "backward_s", "peak_memory_GiB", "spare_memory_GiB")
        rows = [{key: row[key] for key in keys} for row in self._rows()]
        return (f"<p><code>{self.describe()}</code>: {self.step_s:.4g} s a step, MFU {self.mfu:.1%}</p>"
                f"{table(rows)}{self.timeline()}")

    def __eq__(self, other: object) -> bool:
        return self._saved == other._saved if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.describe())

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.loads, (self.dumps(),)


def saved_plan(plan: Any) -> _core.SavedPlan:
    """The plan of a Plan, a path or a dict."""
    return plan._saved if isinstance(plan, Plan) else _core.SavedPlan.read(path_or_document("plan", plan))
