"""How a returned value or an exception becomes a result for the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dragoman.errors import ToolError
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolResultPart
from dragoman.tools.tool_result import success_result
from support.tools import call, outcome, raising

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_json_value_stays_itself_and_its_text_is_json(value: Any) -> None:
    """D-38: a string unchanged, everything else JSON."""

    result = success_result(call("it"), value)
    assert result.part == ToolResultPart("1", "it", value)
    assert (result.result if isinstance(value, str) else json.loads(result.result)) == value
    assert (result.is_success, result.error, result.exception) == (True, None, None)


class Model(BaseModel):
    path: Path


@dataclass
class Data:
    inner: Model
    pair: tuple[int, int]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Data(Model(path=Path("a")), (1, 2)), {"inner": {"path": "a"}, "pair": [1, 2]}),
        ([Model(path=Path("b"))], [{"path": "b"}]),
        ({1: None}, {"1": None}),
        ((), []),
        (
            ["null", None, True, 1, 1.5, {"a": [None, "null"]}],
            ["null", None, True, 1, 1.5, {"a": [None, "null"]}],
        ),
        ("null", "null"),
        (type("Text", (str,), {})("sub"), "sub"),
        ("\ud800", "\ufffd"),
        (["\ud800"], ["\ufffd"]),
    ],
)
def test_what_can_be_made_json_is(value: Any, expected: Any) -> None:
    result = outcome(lambda: value).part.result
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize("value", [object(), {"a": {1, object()}}, {(1, 2): 3}])
def test_what_is_no_json_is_an_error(value: Any) -> None:
    """D-41."""
    result = outcome(lambda: value)
    assert not result.is_success
    assert result.part.is_error
    json.dumps(result.part.result).encode()


IMAGE = DataPart(b"\x89PNG", "image/png")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (IMAGE, (IMAGE,)),
        ([TextPart("see"), IMAGE], (TextPart("see"), IMAGE)),
        (
            ("see", LinkPart("http://x"), FilePart("f")),
            (TextPart("see"), LinkPart("http://x"), FilePart("f")),
        ),
    ],
)
def test_parts_stay_parts(value: Any, expected: Any) -> None:
    part = outcome(lambda: value).part
    assert part.result == expected
    assert part.is_content


def test_parts_and_other_values_do_not_mix() -> None:
    assert "mixed with dict" in str(outcome(lambda: [IMAGE, {}]).error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "bad"),
        (TypeError("worse"), "worse"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError(), "TimeoutError"),
        (ToolError("try Rome"), "try Rome"),
        (OSError("\udcff"), "\\udcff"),
        (ExceptionGroup("several", [ValueError("x")]), "several (1 sub-exception)"),
    ],
    ids=repr,
)
def test_an_exception_is_told_to_the_model(error: Exception, text: str) -> None:
    """Decision 5, D-40."""
    result = outcome(raising(error))
    assert result.part == ToolResultPart("1", "it", {"error": text}, is_error=True)
    assert result.result == json.dumps({"error": text}, separators=(",", ":"))
    assert (result.is_success, result.error, result.exception) == (False, text, error)
    assert error.__traceback__ is not None
