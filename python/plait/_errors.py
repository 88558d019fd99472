"""What the functions of this package raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._plan import Plan


class InputError(ValueError):
    """An argument, or a file that it names, is wrong. Exit status 2 of the program.

    where -- the place: the name of an argument, a file with a line or JSON pointer
             (``cluster.json#/nodes/3/devices``), or ``model#/hidden_size`` for a dict
    what  -- what is wrong with it, and how to put it right
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where = where
        self.what = what

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class NothingFits(Exception):
    """No plan fits, or none can be expressed. Exit status 3 of the program.

    reason  -- by how much it fails, and what would help
    nearest -- the plan that comes nearest, which does not fit; of `export()` the best one that the program
               runs. None where there is none
    answer  -- all that is known, as ``--json`` of the verb prints it
    """

    def __init__(self, reason: str, nearest: Optional[Plan] = None,
                 answer: Optional[dict[str, Any]] = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.nearest = nearest
        self.answer: dict[str, Any] = answer if answer is not None else {}
