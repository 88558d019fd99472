"""What all answers of this package have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._records import flat, frame, table

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
