"""Arguments as the texts that the program's flags are given: conversion, and nothing else."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Mapping
from typing import Any, Union

from ._errors import InputError

Word = Union[bool, str, list[str]]
# Arguments that may be documents: a dict stands for the file.
_DOCUMENTS = ("model", "cluster", "profile", "catalogue")
_DEEPEST = 64


def _number(where: str, value: Any) -> str:
    if isinstance(value, float) or not hasattr(value, "__index__"):
        number = float(value)
        if not math.isfinite(number):
            raise InputError(where, f"must be a finite number, is {number}")
        return repr(number)
    try:
        return str(operator.index(value))
    except ValueError:  # thousands of digits
        raise InputError(where, "is too large a number") from None


def _text(where: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(where, "is not valid Unicode") from None
    if "\0" in value:
        raise InputError(where, "has a NUL in it")
    return value


def _plain(where: str, value: Any, depth: int, loose: bool) -> Any:
    """The value with nothing in it but what JSON has; `loose` takes the text of what it has not."""
    if depth > _DEEPEST:
        raise InputError(where, f"is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(where, value)
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{where}/{key}", item, depth + 1, loose) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(f"{where}/{i}", item, depth + 1, loose) for i, item in enumerate(value)]
    if isinstance(value, (int, float)) or hasattr(value, "__index__") or hasattr(value, "__float__"):
        return json.loads(_number(where, value))
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if hasattr(value, "to_dict"):
        return _plain(where, value.to_dict(), depth + 1, True)
    if loose:
        return str(value)
    raise InputError(where, f"cannot be a {type(value).__name__}")


def document(name: str, value: Any) -> str:
    """The JSON of a dict, or of an object that has `to_dict()`, such as a configuration of transformers."""
    loose = not isinstance(value, Mapping)
    plain = _plain(name + "#", value.to_dict() if loose else value, 0, loose)
    if not isinstance(plain, dict):
        raise InputError(name, "must be a name, a path or a dict")
    return json.dumps(plain, allow_nan=False)


def _word(name: str, value: Any) -> Word:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(name, value)
    if isinstance(value, os.PathLike):
        return _text(name, os.fsdecode(value))
    if isinstance(value, Mapping) and name not in _DOCUMENTS:
        return [f"{key}={_word(name, item)}" for key, item in value.items()]
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return document(name, value)
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _words_of_item(name, item)]
    if isinstance(value, (int, float)) or hasattr(value, "__index__") or hasattr(value, "__float__"):
        return _number(name, value)
    raise InputError(name, f"cannot be a {type(value).__name__}")


def _words_of_item(name: str, item: Any) -> list[str]:
    word = _word(name, item)
    if isinstance(word, bool) or isinstance(item, (list, tuple)):
        raise InputError(name, f"cannot be a list with {item!r} in it")
    return [word] if isinstance(word, str) else word


def words(options: Mapping[str, Any]) -> list[tuple[str, Word]]:
    """The arguments that were given: None is as good as not given."""
    return [(name, _word(name, value)) for name, value in options.items() if value is not None]


def path_or_document(name: str, value: Any) -> str:
    """A path, or the JSON of a dict."""
    word = _word(name, value) if not isinstance(value, Mapping) else document(name, value)
    if not isinstance(word, str) or not isinstance(value, (str, os.PathLike, Mapping)) or not word:
        raise InputError(name, f"must be a path or a dict, is {value!r}"[:200])
    return word


def paths(name: str, values: Any) -> list[str]:
    """One path or dict, or several."""
    several = isinstance(values, (list, tuple))
    return [path_or_document(name, value) for value in (values if several else [values])]
