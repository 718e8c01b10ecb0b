"""One tree of errors; each says where, and can be copied and sent to another process."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import DragomanError, LimitReachedError, ProviderError, RateLimitError, TypedOutputError
from dragoman.message import Message
from dragoman.result import ChatResult

ALL = [getattr(errors, name) for name in errors.__all__]


def made(cls: type[DragomanError]) -> DragomanError:
    more: dict[str, Any] = {"result": ChatResult("so far")} if cls is LimitReachedError else {}
    return cls("no", provider="openai", status=429, request_id="r1", body=b"{}", partial=Message.model("a"), **more)


def test_all_errors_are_in_the_tree_drawn_on_top():
    public = {cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__}
    assert public == set(ALL)
    names = [line.strip("│├└─ ").split()[0] for line in errors.__doc__.splitlines()[2:] if line.strip()]
    assert sorted(names) == sorted(errors.__all__)
    depth = {
        name: line.index(name) // 4 for name in names for line in errors.__doc__.splitlines() if f"─ {name} " in line
    }
    for cls in ALL[:]:
        assert issubclass(cls, DragomanError)
        assert len(cls.__mro__) - len(DragomanError.__mro__) == depth.get(cls.__name__, 0), cls


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_says_what_and_where(cls: type[DragomanError]):
    error = made(cls)
    assert error.args == ("no",)
    assert str(error) == "no (openai, HTTP 429, request r1)"
    assert str(cls("no", **({"result": None} if cls is LimitReachedError else {}))) == "no"  # pyright: ignore
    assert cls.__doc__


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_can_be_copied_and_pickled(cls: type[DragomanError]):
    error = made(cls)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is cls
        assert vars(again) == vars(error)
        assert str(again) == str(error)


def test_errors_carry_what_is_theirs():
    assert RateLimitError("slow", retry_after=1.5, status=429).retry_after == 1.5
    assert RateLimitError("slow").retry_after is None
    assert TypedOutputError("bad", output="{").output == "{"
    assert TypedOutputError("bad").output == ""
    assert made(LimitReachedError).result == ChatResult("so far")  # pyright: ignore


def test_at_fills_in_what_is_not_known_yet():
    error = ProviderError("no", provider="openai")
    assert error.at(provider="other", status=500, body=b"x") is error
    assert (error.provider, error.status, error.body, error.request_id) == ("openai", 500, b"x", None)
    with pytest.raises(AttributeError):
        error.at(nothing=1)
