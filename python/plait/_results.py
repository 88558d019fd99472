"""Answers: what the functions of this package give back besides plans."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._plan import Plan, Stage
from ._records import Record, flat, frame, table

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

_COLUMNS = 120


class Answer:
    """What all answers have: `str()` is what the program prints, `to_dict()` what it prints with ``--json``,
    and a notebook shows a table and, where there is one, a picture."""

    __slots__ = ("_answered", "_read")

    def __init__(self, answered: _core.Answered) -> None:
        self._answered = answered
        self._read: Optional[dict[str, Any]] = None

    def _values(self) -> dict[str, Any]:
        if self._read is None:
            self._read = json.loads(self._answered.json())
        return self._read

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(self._values())]

    def to_dict(self) -> dict[str, Any]:
        """All of the answer, as ``--json`` prints it."""
        values: dict[str, Any] = json.loads(self._answered.json())
        return values

    def to_pandas(self) -> pandas.DataFrame:
        """The answer's main table. Needs pandas."""
        return frame(self._rows())

    def to_svg(self) -> str:
        """The picture that a notebook shows; "" where there is none."""
        return self._answered.picture()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search: this is the best so far."""
        return self._answered.interrupted

    def __str__(self) -> str:
        return self._answered.text(_COLUMNS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._rows())} rows>"

    def _repr_html_(self) -> str:
        return table(self._rows()) + self.to_svg()


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


class Estimate(Answer):
    """What a plan is predicted to take; its picture is the timeline of a step."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [{"stage": number, **flat(stage)} for number, stage in enumerate(self._values()["stages"], 1)]

    @property
    def fits(self) -> bool:
        return bool(self._values()["fits"])

    @property
    def reason(self) -> str:
        """Why the plan does not fit; "" when it does."""
        return self._answered.reason

    @property
    def step_s(self) -> float:
        return float(self._values()["step_s"])

    @property
    def tokens_per_s(self) -> float:
        return float(self._values()["tokens_per_s"])

    @property
    def mfu(self) -> float:
        return float(self._values()["mfu"])

    @property
    def peak_memory_GiB(self) -> float:
        return float(self._values()["peak_memory_GiB"])

    @property
    def usd_per_step(self) -> Optional[float]:
        price = self._values()["usd_per_step"]
        return None if price is None else float(price)

    @property
    def stages(self) -> list[Stage]:
        return [Stage(stage) for stage in self._values()["stages"]]


class Alternative(Record):
    """A plan that differs in one thing from the one that is explained."""

    __slots__ = ()
    change: str
    step_s: float
    fits: bool
    describe: str


class Shares(Record):
    """Where the time of a step goes, as parts of 1, seen from the stage that has most to do."""

    __slots__ = ()
    compute: float
    recompute: float
    communication: float
    bubble: float
    tail: float


class Explanation(Answer):
    """Why a plan is as fast as it is, and what a change would do."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(other) for other in self._values()["alternatives"]]

    @property
    def shares(self) -> Shares:
        return Shares(self._values()["shares"])

    @property
    def alternatives(self) -> list[Alternative]:
        """Fastest first; those that do not fit last."""
        return [Alternative(other) for other in self._values()["alternatives"]]

    @property
    def slowest_stage(self) -> int:
        """From 0."""
        return int(self._values()["slowest_stage"])

    @property
    def tightest_stage(self) -> int:
        """The stage that is nearest to its memory's end, from 0."""
        return int(self._values()["tightest_stage"])


class Violation(Record):
    """A rule that a plan breaks (`what`), and the place in its file (`where`)."""

    __slots__ = ()
    where: str
    what: str


class Runner(Record):
    """A program, and why it does not run the plan."""

    __slots__ = ()
    program: str
    runs: bool
    why_not: str


class Check(Answer):
    """Whether a plan is valid, fits in memory, and which programs run it. True when it is valid and fits."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(runner) for runner in self._values()["runs_on"]]

    @property
    def valid(self) -> bool:
        return bool(self._values()["valid"])

    @property
    def fits(self) -> bool:
        return bool(self._values()["fits"])

    @property
    def violations(self) -> list[Violation]:
        return [Violation(one) for one in self._values()["violations"]]

    @property
    def runs_on(self) -> list[Runner]:
        return [Runner(one) for one in self._values()["runs_on"]]

    def __bool__(self) -> bool:
        return self.valid and self.fits


class Difference(Record):
    """One thing in which two plans differ."""

    __slots__ = ()
    what: str
    first: str
    second: str


class Diff(Answer):
    """Two plans side by side. False when they do not differ."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(row) for row in self._values()["differences"]]

    @property
    def change(self) -> float:
        """Of the second step against the first: 0.1 is ten per cent slower."""
        return float(self._values()["change"])

    @property
    def differences(self) -> list[Difference]:
        return [Difference(row) for row in self._values()["differences"]]

    @property
    def problems_differ_in(self) -> list[str]:
        """Parts of the problem that differ: model, cluster, job."""
        return list(self._values()["problems_differ_in"])

    def __bool__(self) -> bool:
        return bool(self.differences or self.problems_differ_in)


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
