"""plait finds the fastest or cheapest way to train a neural network on a set of accelerators.

    import plait

    plan = plait.plan(model="gpt2-xl", cluster="4xT4:4", global_batch=64)
    print(plan)                  # the best plans, and what is proven of them
    plan.save("plan.json")       # for `plait train` and other verbs of the program
    print(plait.explain(plan))
    plait.export(plan, to="megatron", output="run", nearest=True)

Every function answers what the verb of its name answers on the command line. Wrong arguments raise
InputError; where no plan fits, NothingFits has the reason and the nearest plan.
"""

from __future__ import annotations

from ._errors import InputError, NothingFits

try:
    from ._core import __version__ as _built
except ModuleNotFoundError as _missing:
    # The modules for JAX beside this file need nothing compiled; everything else does.
    if _missing.name != "plait._core":
        raise

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError("plait is not installed here, only its sources are: pip install . in their folder")
else:
    from ._answer import Answer
    from ._calls import (check, compare, describe_model, devices, diff, diff_profiles, estimate, estimate_from, explain,
                         export, frameworks, import_profile, instances, merge_profiles, models, pareto, plan, planners,
                         programs, replan, validate)
    from ._known import (KnownDevice, KnownInstance, KnownList, KnownModel, ModelKind, ModelSummary, Profile)
    from ._plan import Plan, Span, Stage, StageMemory, StageTime
    from ._saved_answers import (Alternative, Check, ConfiguredEstimate, Diff, Difference, Estimate, Explanation, Export, Runner, Shares,
                                 Violation)
    from ._search_answers import (Accuracy, Comparison, Front, Mix, OtherWay, PlannerResult, Replanned, Search,
                                  SearchPass, Validation)

    __version__: str = _built.partition("+")[0]

__all__ = [
    "Accuracy", "Alternative", "Answer", "Check", "Comparison", "ConfiguredEstimate", "Diff", "Difference",
    "Estimate", "Explanation", "Export", "Front", "InputError", "KnownDevice", "KnownInstance", "KnownList",
    "KnownModel", "Mix", "ModelKind", "ModelSummary", "NothingFits", "OtherWay", "Plan", "PlannerResult",
    "Profile", "Replanned", "Runner", "Search", "SearchPass", "Shares", "Span", "Stage", "StageMemory",
    "StageTime", "Validation", "Violation", "check", "compare", "describe_model", "devices", "diff",
    "diff_profiles", "estimate", "estimate_from", "explain", "export", "frameworks", "import_profile",
    "instances", "merge_profiles", "models", "pareto", "plan", "planners", "programs", "replan", "validate",
]
