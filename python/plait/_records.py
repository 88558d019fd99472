"""Values of answers as attributes."""

from __future__ import annotations

import copy
import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]


class Record:
    """A part of an answer. Its keys in ``--json`` are its attributes; `to_dict()` gives all of them."""

    __slots__ = ("_values",)
    # Attributes that are records themselves, or lists of them.
    _parts: ClassVar[Mapping[str, type[Record]]] = {}

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    if not TYPE_CHECKING:
        def __getattr__(self, name):
            if name.startswith("_") or name not in self._values:
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value, part = self._values[name], self._parts.get(name)
            if part is None or value is None:
                return value
            return [part(item) for item in value] if isinstance(value, list) else part(value)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._values]

    def to_dict(self) -> dict[str, Any]:
        """All values, as ``--json`` prints them."""
        return copy.deepcopy(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = {key: value for key, value in self._values.items() if not isinstance(value, (dict, list))}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that stand in a cell of a table."""
    return {key: value for key, value in values.items() if not isinstance(value, (dict, list))}


def frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    """The rows as a DataFrame; pandas is needed for nothing else."""
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    return pandas.DataFrame(rows)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as HTML."""
    def cell(value: Any) -> str:
        return html.escape(f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value))
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(key)}</th>" for key in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(key))}</td>" for key in rows[0]) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
