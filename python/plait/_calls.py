"""The functions of the package: arguments become texts, `app` answers, answers become values."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _core
from ._errors import InputError, NothingFits
from ._known import KnownDevice, KnownInstance, KnownList, KnownModel, ModelSummary, Profile
from ._plan import Plan, saved_plan
from ._saved_answers import Check, ConfiguredEstimate, Diff, Estimate, Explanation, Export
from ._search_answers import Comparison, Front, Replanned, Search, Validation
from ._words import path_or_document, paths, words

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import Unpack

    from ._options import (CheckOptions, CompareOptions, EstimateFromOptions, EstimateOptions, ExplainOptions,
                           ExportOptions, ImportOptions, ParetoOptions, PlanOptions, ReplanOptions, ValidateOptions)

    class HasDict(Protocol):
        def to_dict(self) -> dict[str, Any]: ...

    Document = Union[str, os.PathLike[str], Mapping[str, Any]]
    Model = Union[Document, HasDict]
    AnyPlan = Union[Plan, Document]
    Listener = Optional[Callable[[float], object]]


def _found(answered: _core.Answered) -> None:
    """Raises what an answer without a plan means."""
    if answered.plans:
        return
    if answered.interrupted:
        raise KeyboardInterrupt
    nearest = Plan(answered.nearest) if answered.nearest is not None else None
    raise NothingFits(answered.reason, nearest, json.loads(answered.json()))


def _listeners(on_improvement: Listener, on_progress: Listener) -> tuple[Listener, Listener]:
    for name, value in (("on_improvement", on_improvement), ("on_progress", on_progress)):
        if value is not None and not callable(value):
            raise InputError(name, f"must be a function, is {value!r}"[:200])
    return on_improvement, on_progress


def plan(model: Optional[Model] = None, cluster: Optional[Document] = None,
         global_batch: Union[int, str, None] = None, *, on_improvement: Listener = None,
         on_progress: Listener = None, **options: Unpack[PlanOptions]) -> Plan:
    """The fastest way to train a model on a cluster.

    model        -- a name of `models()`, the path of a config.json, of a plait model file or of a script
                    with Megatron-LM's flags, a dict with what such a JSON file holds, or a configuration
                    object of transformers
    cluster      -- a shorthand (``"4xA100-80GB:8"`` is 4 nodes of 8; kinds of node are joined by ``+``),
                    the path of a cluster file or hostfile, or a dict with what a cluster file holds
    global_batch -- samples in one optimizer step, or tokens: ``512``, ``"4Mtokens"``
    on_improvement -- called with the seconds of the best step whenever a better plan is found
    on_progress  -- called with the part of the work that is done, from 0 to 1
    options      -- what the plan must have, and all else that ``plait plan`` takes; see below

    Ctrl-C ends the search at once with the best plan so far (`Plan.search.interrupted`). Other threads run
    meanwhile. Raises InputError for wrong arguments and NothingFits when no plan fits.
    """
    answered = _core.plan(words({"model": model, "cluster": cluster, "global_batch": global_batch, **options}),
                          *_listeners(on_improvement, on_progress))
    _found(answered)
    return Plan(answered.plans[0], Search(answered))


def compare(model: Optional[Model] = None, cluster: Optional[Document] = None,
            global_batch: Union[int, str, None] = None, *, on_improvement: Listener = None,
            on_progress: Listener = None, **options: Unpack[CompareOptions]) -> Comparison:
    """All planners on one problem: how fast their plans are, and they themselves. Arguments as `plan()`."""
    return Comparison(
        _core.compare(words({"model": model, "cluster": cluster, "global_batch": global_batch, **options}),
                      *_listeners(on_improvement, on_progress)))


def pareto(model: Optional[Model] = None, instances: Union[str, Sequence[str], None] = None,
           global_batch: Union[int, str, None] = None, *, on_improvement: Listener = None,
           on_progress: Listener = None, **options: Unpack[ParetoOptions]) -> Front:
    """The mixes of instances that are worth their price.

    instances -- what can be rented and how many of each: ``["p4d.24xlarge:0-8", "g5.24xlarge:0-8"]``

    Other arguments as `plan()`. Raises NothingFits when no mix fits, or none within `deadline` and `budget`.
    """
    answered = _core.pareto(
        words({"model": model, "instances": instances, "global_batch": global_batch, **options}),
        *_listeners(on_improvement, on_progress))
    if answered.reason:
        if answered.interrupted:
            raise KeyboardInterrupt
        raise NothingFits(answered.reason, None, json.loads(answered.json()))
    return Front(answered)


def replan(plan: AnyPlan, *, on_improvement: Listener = None, on_progress: Listener = None,
           **options: Unpack[ReplanOptions]) -> Replanned:
    """The best plan when devices of a plan's cluster were lost, added or slowed down.

    plan -- a Plan, the path of a plan file, or the dict that such a file holds
    """
    answered = _core.replan(saved_plan(plan), words(options), *_listeners(on_improvement, on_progress))
    if not answered.plans and not answered.interrupted:
        nearest = Plan(answered.nearest) if answered.nearest is not None else None
        raise NothingFits(answered.reason, nearest)
    _found(answered)
    return Replanned(answered)


def estimate(plan: AnyPlan, **options: Unpack[EstimateOptions]) -> Estimate:
    """Predicted time and memory of every stage of a plan, whether or not it fits (`Estimate.fits`)."""
    return Estimate(_core.estimate(saved_plan(plan), words(options)))


def estimate_from(program: str, path: Document, cluster: Optional[Document] = None, model: Optional[Model] = None,
                  **options: Unpack[EstimateFromOptions]) -> ConfiguredEstimate:
    """Somebody's configuration of another program: what it takes, whether it fits, and what would be faster on the
    same devices with the same program.

    program -- ``"megatron"``: a launch script of Megatron-LM, which says the model itself; ``"deepspeed"``: a
               ds_config.json
    path    -- the file; for DeepSpeed also the dict that it holds
    cluster -- what it runs on, as `plan()` takes it
    model   -- what DeepSpeed trains, as `plan()` takes it
    options -- what a ds_config.json leaves open with ``"auto"``, and memory and prices; see below
    """
    given = dict(words({"program": program})).get("program")
    if not isinstance(given, str):
        raise InputError("program", f"must be a name, is {program!r}"[:200])
    return ConfiguredEstimate(_core.estimate_from(given, path_or_document("path", path),
                                                  words({"cluster": cluster, "model": model, **options})))


def explain(plan: AnyPlan, **options: Unpack[ExplainOptions]) -> Explanation:
    """Why a plan is as fast as it is, and what a change would do."""
    return Explanation(_core.explain(saved_plan(plan), words(options)))


def check(plan: AnyPlan, **options: Unpack[CheckOptions]) -> Check:
    """Whether a plan is valid and fits in memory, and which programs run it. A plan that breaks rules is an
    answer here, not an error."""
    saved = plan._saved if isinstance(plan, Plan) else _core.SavedPlan.read_any(path_or_document("plan", plan))
    return Check(_core.check(saved, words(options)))


def diff(first: AnyPlan, second: AnyPlan) -> Diff:
    """Two plans side by side: what differs, and where the time goes."""
    return Diff(_core.diff(saved_plan(first), saved_plan(second)))


def export(plan: AnyPlan, to: Optional[str] = None, output: Union[str, os.PathLike[str], None] = None,
           **options: Unpack[ExportOptions]) -> Export:
    """A plan as files that another program trains by.

    plan   -- a Plan, the path of a plan file, or the dict that such a file holds
    to     -- the program: ``"megatron"``, ``"deepspeed"``, ``"torchtitan"``, ``"fsdp"``, ``"jax"`` ..
    output -- the folder to write to; without it the files are in `Export.files` alone

    What the program cannot run raises NothingFits with the reason; its `nearest` is the best plan that the
    program runs, which ``nearest=True`` writes instead.
    """
    answered = _core.export_plan(saved_plan(plan), words({"to": to, "output": output, **options}))
    _found(answered)
    return Export(answered)


def validate(**options: Unpack[ValidateOptions]) -> Validation:
    """Predictions against measured runs that others published."""
    return Validation(_core.validate(words(options)))


def models() -> KnownList[KnownModel]:
    """The models that are known by name."""
    return KnownList(KnownModel(entry) for entry in json.loads(_core.models()))


def describe_model(model: Model, *, seq: Optional[int] = None) -> ModelSummary:
    """Parameters, layers and work of a model, given as `plan()` takes it."""
    given = dict(words({"model": model})).get("model")
    if not isinstance(given, str):
        raise InputError("model", f"must be a name, a path or a dict, is {model!r}"[:200])
    if seq is not None and (isinstance(seq, bool) or not isinstance(seq, int) or not 1 <= seq <= 1 << 24):
        raise InputError("seq", f"must be from 1 to {1 << 24}, is {seq!r}"[:200])
    return ModelSummary(json.loads(_core.describe_model(given, seq)))


def devices(catalogue: Union[Document, Sequence[Document]] = ()) -> KnownList[KnownDevice]:
    """The device types that are known by name; `catalogue` files add to them."""
    return KnownList(KnownDevice(entry) for entry in json.loads(_core.devices(paths("catalogue", catalogue))))


def instances(catalogue: Union[Document, Sequence[Document]] = ()) -> KnownList[KnownInstance]:
    """The cloud instances that are known by name; `catalogue` files add to them."""
    return KnownList(KnownInstance(entry) for entry in json.loads(_core.instances(paths("catalogue", catalogue))))


def frameworks(catalogue: Union[Document, Sequence[Document]] = ()) -> list[str]:
    """The frameworks whose execution can be predicted: values of ``framework=``."""
    return _core.frameworks(paths("catalogue", catalogue))


def planners() -> list[str]:
    """Values of ``planner=``."""
    return _core.planners()


def programs() -> list[str]:
    """The programs that plans can be made for: values of ``runs_on=``."""
    return _core.programs()


def import_profile(path: Union[str, os.PathLike[str]], **options: Unpack[ImportOptions]) -> Profile:
    """What another system measured, as a profile that ``profile=`` takes."""
    return Profile(json.loads(_core.import_profile(path_or_document("path", path), words(options))))


def merge_profiles(*profiles: Union[Document, Profile]) -> Profile:
    """Profiles joined into one; where two have a point, the later one counts."""
    return Profile(json.loads(_core.merge_profiles(_profile_texts(profiles))))


def diff_profiles(first: Union[Document, Profile], second: Union[Document, Profile]) -> dict[str, Any]:
    """Two profiles, quantity by quantity, as ``plait profile diff --json`` prints them."""
    changes: dict[str, Any] = json.loads(_core.diff_profiles(_profile_texts((first, second))))
    return changes


def _profile_texts(profiles: Sequence[Union[Document, Profile]]) -> list[str]:
    return [path_or_document("profile", one.to_dict() if isinstance(one, Profile) else one) for one in profiles]


def _reference(entries: list[_core.KeywordEntry]) -> str:
    """The keywords of a function, a line or two each, for its docstring."""
    lines = []
    for entry in entries:
        others = f"; also {', '.join(entry.aliases)}" if entry.aliases else ""
        lines.append(f"    {entry.name}={entry.value or 'True'} -- {entry.help}{others}")
    return "\n\n    Options:\n\n" + "\n".join(lines) + "\n"


def _complete_docstrings() -> None:
    for function, entries in ((plan, _core.plan_keywords), (compare, _core.compare_keywords),
                              (pareto, _core.pareto_keywords), (replan, _core.replan_keywords),
                              (estimate, _core.estimate_keywords),
                              (estimate_from, _core.estimate_from_keywords), (explain, _core.explain_keywords),
                              (check, _core.check_keywords), (export, _core.export_keywords),
                              (validate, _core.validate_keywords),
                              (import_profile, _core.import_keywords)):
        if function.__doc__:
            function.__doc__ = function.__doc__.rstrip() + _reference(entries())


_complete_docstrings()
