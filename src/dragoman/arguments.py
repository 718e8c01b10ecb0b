"""Arguments of a caller's, checked where they are given: a wrong type is named there and never
sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

__all__ = [
    "expect",
    "expect_callable",
    "expect_each",
    "expect_sequence",
    "unknown_arguments_error",
    "wrong_type_error",
]

T = TypeVar("T")


def expect(name: str, value: object, *kinds: type, hint: str = "") -> None:
    """Raises `TypeError` where an argument is not of one of these types. `hint`: what to write
    instead."""
    if not isinstance(value, kinds):
        raise wrong_type_error(name, value, " or ".join(map(_name_of, kinds)), hint)


def expect_callable(name: str, value: object, what: str) -> None:
    """Raises `TypeError` where a value cannot be called; `None` is no value."""
    if value is not None and not callable(value):
        raise wrong_type_error(name, value, what)


def expect_each(
    name: str,
    values: Iterable[T],
    *kinds: type,
    hint: Callable[[Any], str] = lambda value: "",  # noqa: ARG005
) -> list[T]:
    """Returns the values of an argument as a list. Raises `TypeError` where they are no sequence,
    or one is not of these types, by its place."""
    untyped = cast(object, values)
    # Nearly every argument is left out: this way costs nothing.
    if type(untyped) is tuple and not untyped:
        return []
    if isinstance(untyped, (str, bytes, Mapping)) or not isinstance(untyped, Iterable):
        raise wrong_type_error(
            name,
            cast(object, untyped),
            f"a sequence of {' or '.join(map(_name_of, kinds))}",
            hint(untyped),
        )
    listed = list(values)
    # Nearly always all are right, and this sees it at once also of a long conversation.
    if set(map(type, listed)) <= set(kinds):
        return listed
    for index, value in enumerate(cast("list[object]", listed)):
        if not isinstance(value, kinds):
            raise wrong_type_error(
                f"{name}[{index}]", value, " or ".join(map(_name_of, kinds)), hint(value)
            )
    return listed


def expect_sequence(name: str, values: Iterable[T], what: str) -> tuple[T, ...]:
    """Returns the values of an argument as a tuple. Raises `TypeError` where they are no sequence.
    `what`: the kind of its values."""
    untyped = cast(object, values)
    if type(untyped) is tuple:
        return cast("tuple[T, ...]", untyped)
    if isinstance(untyped, (str, bytes, Mapping)) or not isinstance(untyped, Iterable):
        raise wrong_type_error(name, cast(object, untyped), f"a sequence of {what}")
    return tuple(values)


def wrong_type_error(name: str, value: object, expected: str, hint: str = "") -> TypeError:
    """Returns the error for an argument of a wrong type."""
    if isinstance(value, type):
        type_name = f"the class {value.__name__}"
    else:
        type_name = type(value).__name__
    return TypeError(f"{name} must be {expected}, not {type_name}{f'; {hint}' if hint else ''}")


def _name_of(cls: type) -> str:
    return {"NoneType": "None"}.get(cls.__name__, cls.__name__)


_IN_SETTINGS = (
    "temperature",
    "max_tokens",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "tool_choice",
    "reasoning_effort",
)
_HERE: Mapping[str, str] = {
    "instructions": "system= of the Agent",
    "system_prompt": "system= of the Agent",
    "prompt": "system= of the Agent; the prompt is the first argument of send()",
    "message_history": "history=",
    "messages": "history=, or RunRequest(messages)",
    "chat_history": "history=",
    "output_type": "send_for(prompt, Type), or run(output_type=)",
    "result_type": "send_for(prompt, Type)",
    "response_model": "send_for(prompt, Type)",
    "response_format": "send_for(prompt, Type), or output_schema=",
    "model_settings": "settings=Settings(…)",
    "functions": "tools=",
    "toolsets": "tools=, which takes toolsets too",
    "mcp_servers": "tools=[mcp(…)]",
    "name": "display_name=",
    "session_id": "thread_id=",
    "conversation_id": "thread_id=",
    "user_id": "resource_id=",
    "stream": "send_stream()",
    "max_turns": "limits=Limits(model_calls=…)",
    "usage_limits": "limits=Limits(…)",
    "retries": "limits= and middleware=",
    "callbacks": "hooks=",
    "context": "deps= or context=",
    "extra_body": "options=",
    "timeout": "limits=Limits(seconds=…)",
    **{name: f"settings=Settings({name.removesuffix('_effort')}=…)" for name in _IN_SETTINGS},
}
"""Argument as other libraries have it → how that is written here."""


def unknown_arguments_error(call: str, names: Iterable[str], accepted: Iterable[str]) -> TypeError:
    """Returns the error for arguments that there are not, with what was probably meant.

    Args:
        call: what was called, such as `Agent()`.
        names: the arguments that are not known.
        accepted: those that there are.
    """
    from difflib import get_close_matches

    accepted = list(accepted)
    names = sorted(names)
    meant = {
        name: _HERE.get(name)
        or next((f"{near}=" for near in get_close_matches(name, accepted, 1)), "")
        for name in names
    }
    hints = [
        f"{name}= is {replacement} here" if name in _HERE else f"did you mean {replacement}"
        for name, replacement in meant.items()
        if replacement
    ]
    takes = f"it takes {', '.join(accepted)}"
    return TypeError(f"{call} takes no argument {', '.join(names)}; {'; '.join([*hints, takes])}")
