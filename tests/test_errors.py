"""One tree of errors; each says where, and can be copied and sent to another process."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from typing import Any

import pytest

from dragoman import error_json, errors
from dragoman.errors import (
    DragomanError,
    HistoryError,
    LimitReachedError,
    ProviderError,
    RateLimitError,
    TypedOutputError,
)
from dragoman.message import DataPart, Message, ThinkingPart
from dragoman.result import ChatResult

ALL: list[Any] = [
    each for name in errors.__all__ if isinstance(each := getattr(errors, name), type)
]


def made(cls: type[DragomanError]) -> DragomanError:
    more: dict[str, Any] = {"result": ChatResult("so far")} if cls is LimitReachedError else {}
    return cls(
        "no",
        provider="openai",
        status=429,
        request_id="r1",
        body=b"{}",
        partial=Message.model("a"),
        **more,
    )


def test_all_errors_are_in_the_tree_drawn_on_top():
    public = {
        cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__
    }
    assert public == set(ALL)
    names = [
        line.strip("│├└─ ").split()[0] for line in errors.__doc__.splitlines()[2:] if line.strip()
    ]
    assert sorted(names) == sorted(cls.__name__ for cls in ALL)
    depth = {
        name: line.index(name) // 4
        for name in names
        for line in errors.__doc__.splitlines()
        if f"─ {name} " in line
    }
    for cls in ALL[:]:
        assert issubclass(cls, DragomanError)
        assert len(cls.__mro__) - len(DragomanError.__mro__) == depth.get(cls.__name__, 0), cls


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_says_what_and_where(cls: type[DragomanError]):
    error = made(cls)
    assert error.args == ("no",)
    assert str(error) == "no (openai, HTTP 429, request r1)"
    assert str(cls("no", **({"result": None} if cls is LimitReachedError else {}))) == "no"
    assert cls.__doc__


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_can_be_copied_and_pickled(cls: type[DragomanError]):
    error = made(cls)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is cls
        assert vars(again) == vars(error)
        assert str(again) == str(error)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_comes_back_from_json(cls: type[DragomanError]):
    partial = Message.model(
        ThinkingPart("hm", native={"w": {"s": 1}}), DataPart(b"\x00", "image/png"), "a"
    ).replace(id="m")
    for error in (cls_made(cls, partial=partial, body=b"\xff\x00"), cls_made(cls)):
        again = error_json.from_json(error_json.to_json(error))
        assert type(again) is cls
        assert vars(again) == vars(error)
        assert str(again) == str(error)
        assert error_json.to_json(again) == error_json.to_json(error)
        assert json.loads(error_json.to_json(error))["type"] == cls.__name__


def cls_made(cls: type[DragomanError], **how: Any) -> DragomanError:
    more: dict[str, Any] = {
        RateLimitError: {"retry_after": 1.5},
        TypedOutputError: {"output": "{"},
        LimitReachedError: {
            "result": ChatResult("so far", (Message.user("q"), Message.model("a")), id="r")
        },
    }.get(cls, {})
    return cls("no", provider="openai", status=429, request_id="r1", **how, **more)


def test_an_error_of_somebody_elses_class_is_stored_as_the_nearest_of_ours():
    class Own(RateLimitError):
        """Of a plug-in."""

    again = error_json.from_json(error_json.to_json(Own("slow", retry_after=2.0)))
    assert type(again) is RateLimitError
    assert again.retry_after == 2.0
    for odd in ('{"retry_after": []}', '{"output": 1}', "[]"):
        with pytest.raises(HistoryError):
            error_json.from_json(f'{{"type": "RateLimitError", "message": "", "own": {odd}}}')
    newer = error_json.from_json(b'{"type": "NewerError", "message": "x", "own": {"new": 1}}')
    assert type(newer) is DragomanError
    assert newer.message == "x"


def test_a_result_that_is_no_json_is_stored_as_text():
    error = LimitReachedError("enough", result=ChatResult({1}))
    assert error_json.from_json(error_json.to_json(error)).result.output in ([1], "{1}")


@pytest.mark.parametrize("data", ["", "{}", "[]", '{"type": "ToolError", "message": 3}', '{"type": "ToolError", "message": "x", "own": {"y": 1}}', '{"type":"ToolError","message":"x","partial":{"no":1}}'])  # fmt: skip
def test_what_is_no_stored_error_says_so(data: str):
    with pytest.raises(HistoryError, match="not a stored"):
        error_json.from_json(data)


def test_errors_carry_what_is_theirs():
    assert RateLimitError("slow", retry_after=1.5, status=429).retry_after == 1.5
    assert RateLimitError("slow").retry_after is None
    assert TypedOutputError("bad", output="{").output == "{"
    assert TypedOutputError("bad").output == ""
    assert made(LimitReachedError).result == ChatResult("so far")


def test_at_fills_in_what_is_not_known_yet():
    error = ProviderError("no", provider="openai")
    assert error.at(provider="other", status=500, body=b"x") is error
    assert (error.provider, error.status, error.body, error.request_id) == (
        "openai",
        500,
        b"x",
        None,
    )
    with pytest.raises(AttributeError):
        error.at(nothing=1)
