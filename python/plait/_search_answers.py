"""Answers to searches, and to comparisons with measurements."""

from __future__ import annotations

from typing import Any, Optional

from ._answer import Answer
from ._plan import Plan
from ._records import Record, flat


class OtherWay(Record):
    """A faster way to run the same training that was not asked for, and what asks for it (`request`)."""

    __slots__ = ()
    where: str
    request: str
    step_s: float
    describe: str


class SearchPass(Record):
    """What one pass of a search took and gave (with ``explain_search=True``)."""

    __slots__ = ()
    elapsed_s: float
    evaluations: int
    step_s: Optional[float]
    lower_bound_s: Optional[float]


class Search(Answer):
    """What `plan()` found: the best plans, and what is proven of them."""

    __slots__ = ()

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        return dict(values["plan"]) if "largest" in values else values

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(plan) for plan in self._values()["plans"]]

    @property
    def plans(self) -> list[Plan]:
        """The best plans, fastest first; `top` says how many."""
        return [Plan(saved, self) for saved in self._answered.plans]

    @property
    def lower_bound_s(self) -> Optional[float]:
        """Seconds that no plan's step can undercut, where that is proven."""
        bound = self._values().get("lower_bound_s")
        return None if bound is None else float(bound)

    @property
    def gap(self) -> Optional[float]:
        """How much faster a plan could be at most: 0.02 is two per cent. None where nothing is proven."""
        gap = self._values().get("gap")
        return None if gap is None else float(gap)

    @property
    def evaluations(self) -> int:
        """Plans that were costed."""
        return int(self._values()["evaluations"])

    @property
    def search_s(self) -> float:
        """Seconds that the search took."""
        return float(self._values()["search_s"])

    @property
    def cut_short(self) -> bool:
        """By the time limit or Ctrl-C."""
        return bool(self._values()["cut_short"])

    @property
    def runs_on(self) -> str:
        """The program that must be able to run the plans."""
        return str(self._values().get("runs_on", ""))

    @property
    def other_ways(self) -> list[OtherWay]:
        return [OtherWay(way) for way in self._values().get("other_ways", [])]

    @property
    def passes(self) -> list[SearchPass]:
        return [SearchPass(one) for one in self._values().get("passes", [])]

    @property
    def warnings(self) -> list[str]:
        """Sentences about what was assumed."""
        return list(self._values()["warnings"])

    @property
    def largest(self) -> Optional[int]:
        """With ``max_seq=True`` or ``max_batch=True``: the largest sequence or batch that fits."""
        values = super()._values()
        return int(values["value"]) if "largest" in values else None


class PlannerResult(Record):
    """How one planner did; `step_s` is None where it found no plan, and `reason` says why."""

    __slots__ = ()
    planner: str
    step_s: Optional[float]
    slower_than_auto: Optional[float]
    evaluations: int
    search_s: float
    cut_short: bool
    lower_bound_s: Optional[float]


class Comparison(Answer):
    """All planners on one problem."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(row) for row in self._values()["planners"]]

    @property
    def planners(self) -> list[PlannerResult]:
        return [PlannerResult(row) for row in self._values()["planners"]]

    @property
    def plans(self) -> list[Plan]:
        """The best plan of each planner that found one."""
        return [Plan(saved) for saved in self._answered.plans]

    @property
    def warnings(self) -> list[str]:
        return list(self._values()["warnings"])


class Mix(Record):
    """A mix of instances that is worth its price; `plan(cluster=mix.cluster, ...)` finds its plan again."""

    __slots__ = ()
    instances: dict[str, int]
    usd_per_hour: float
    step_s: float
    usd_per_step: float
    tokens_per_s: float
    cluster: str
    describe: str


class Front(Answer):
    """The mixes of instances that are worth their price; its picture is price against time."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(point) for point in self._values()["front"]]

    @property
    def front(self) -> list[Mix]:
        """Fastest first."""
        return [Mix(point) for point in self._values()["front"]]

    @property
    def chosen(self) -> Optional[Mix]:
        """The best within `deadline` and `budget`, where one was given."""
        chosen = self._values()["chosen"]
        return None if chosen is None else Mix(chosen)

    @property
    def warnings(self) -> list[str]:
        return list(self._values()["warnings"])


class Replanned(Answer):
    """The best plan for a cluster that changed, and what the change costs."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat({**self._values(), **self._values()["plan"]})]

    @property
    def plan(self) -> Plan:
        return Plan(self._answered.plans[0])

    @property
    def step_before_s(self) -> float:
        return float(self._values()["step_before_s"])

    @property
    def kept(self) -> bool:
        """Whether the old plan goes on as it was."""
        return bool(self._values()["kept"])

    @property
    def transfer_s(self) -> float:
        """Moving state between devices."""
        return float(self._values()["transfer_s"])

    @property
    def pause_s(self) -> float:
        """From the last step of the old plan to the first of the new one."""
        return float(self._values()["pause_s"])


class Accuracy(Record):
    """How well the runs of one source, or on one device type, are predicted."""

    __slots__ = ()
    rows: int
    predicted: int
    refused: int
    timed: int
    mape: Optional[float]
    median_ape: Optional[float]
    bias: Optional[float]
    spearman: Optional[float]
    memory_mape: Optional[float]


class Validation(Answer):
    """Predictions against measured runs that others published."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        values = self._values()
        return [flat(row) for row in values.get("sources", values.get("devices", []))]

    @property
    def accuracy(self) -> list[Accuracy]:
        values = self._values()
        return [Accuracy(row) for row in values.get("sources", values.get("devices", []))]
