"""Answers about plans that are there already."""

from __future__ import annotations

from typing import Any, Optional

from ._answer import Answer
from ._plan import Plan, Stage
from ._records import Record, flat


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


class ConfiguredEstimate(Estimate):
    """What somebody's configuration of another program is predicted to take, and what would be faster."""

    __slots__ = ()

    @property
    def plan(self) -> Plan:
        """The configuration as a plan."""
        return Plan(self._answered.plans[0])

    @property
    def faster(self) -> Optional[Plan]:
        """The best plan that the same program runs on the same devices; None where the configuration is it."""
        plans = self._answered.plans
        return Plan(plans[1]) if len(plans) > 1 else None

    @property
    def program(self) -> str:
        """The program, as sentences name it: Megatron-LM, DeepSpeed."""
        return str(self._values()["program"])

    @property
    def switches(self) -> list[str]:
        """Flags that the faster plan assumes and the configuration does not have: overlap-grad-reduce."""
        return list(self._values()["switches"])

    @property
    def warnings(self) -> list[str]:
        """What was assumed, and what is read but not priced."""
        return list(self._values()["warnings"])


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


class Export(Answer):
    """A plan as files that another program trains by."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        return [{"file": name, "lines": text.count("\n")} for name, text in self._answered.files]

    @property
    def to(self) -> str:
        """The program."""
        return str(self._values()["to"])

    @property
    def files(self) -> dict[str, str]:
        """Name and text of each file; ``run.sh`` starts the processes of one node."""
        return dict(self._answered.files)

    @property
    def start(self) -> str:
        """What starts the training, typed in the folder of the files; "" for rows of a table."""
        return str(self._values()["start"])

    @property
    def losses(self) -> list[str]:
        """What the files do not say, because the program has no words for it: a sentence each."""
        return list(self._values()["losses"])

    @property
    def plan(self) -> Plan:
        """The plan that is written: with `nearest`, the best one that the program runs."""
        return Plan(self._answered.plans[0])

    @property
    def why_not(self) -> str:
        """Why the program does not run the plan that was asked for, where another one is written; else ""."""
        return str(self._values()["why_not"])

    @property
    def nearest_more(self) -> Optional[float]:
        """How much longer a step of that other one takes: 0.1 is ten per cent. None where the plan itself is
        written."""
        more = self._values().get("nearest_more")
        return None if more is None else float(more)
