"""What a request's fields ask for beyond what all providers know, as its wire says; what of them
another wire leaves out; and the response header `dragoman-loss` that names what was left out, a list
of structured fields (RFC 9651).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import msgspec

from dragoman import wires
from dragoman.codec.body_schema import fault_of_type
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import RequestFields
from dragoman.errors import InvalidRequestError
from dragoman.event import Event, MessageStarted
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES
from dragoman.request import EmbeddingsRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.serve.core.call import Call
from dragoman.wires.serving import serving

__all__ = [
    "HEADER",
    "admitted",
    "check_references",
    "check_types",
    "embedding_losses",
    "foreign_losses",
    "loss_headers",
    "losses_of",
    "one_candidate",
    "option_losses",
    "shared_tools",
    "without_lengths",
    "without_own",
]


_NOTHING = RequestFields()
_MOST = 100
"""Fields that are named at most, so that an answer to nonsense is not longer than it."""
_LONGEST = 100  # characters of a field's name
_SERVERS_OWN = ("previous_response_id", "conversation")
"""Fields by which a client names what the server itself keeps."""
_PACKING = ("encoding_format", "embedding_types")
_ROOTS = {"chat": "request", "embeddings": "embeddings"}
"""Purpose of a route whose body goes to a provider → what its fields are called in an allow list."""
_ACCOUNTING = ("user", "truncate", "keep_alive", "priority", "title")
HEADER = "dragoman-loss"
_MOST_HEADER = 1000
"""Characters of the header's value at most; proxies take some thousands for all headers."""
_WORD = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_NAMED = (Lost.option, Lost.setting, Lost.field, Lost.tool, Lost.candidate)
"""Losses whose `which` is a name of the API's. That of others is a client's own, such as a file's name, and stays out."""


def one_candidate(request: ModelRequest, wire: str) -> tuple[ModelRequest, list[Loss]]:
    """The request for one answer, of which alone every response has room, and what that leaves out."""
    path = _fields_of(wire).candidates
    count = _at(request.options, path) if path else None
    if count is None or (type(count) is int and count <= 1):
        return request, []
    loss = Loss(None, None, Lost.candidate, "a gateway gives the first answer alone", path)
    return request.replace(options=_without(request.options, path)), [loss]


def check_types(body: Mapping[str, Any], wire: str) -> None:
    """Refuses a body one of whose fields is something that no client means.

    Raises:
        InvalidRequestError: there is one.
    """
    for path, types in _fields_of(wire).types.items():
        if wanted := fault_of_type(_at(body, path), types):
            raise InvalidRequestError(f"{path} must be {wanted}").at(field=path)


def without_lengths(request: ModelRequest, wire: str) -> ModelRequest:
    """The request without what fields of its wire's own say of the length of the answer."""
    native = request.native or {}
    options, own = request.options, if_object(native.get(wire))
    for path in _fields_of(wire).lengths:
        options = options if _at(options, path) is None else _without(options, path)
        own = own if _at(own, path) is None else _without(own, path)
    return request.replace(
        options=options, native={**native, wire: own} if wire in native else request.native
    )


def check_references(body: Mapping[str, Any], wire: str) -> None:
    """Refuses fields of a body that name what the provider's account holds.

    Raises:
        InvalidRequestError: there is one.
    """
    for path in _fields_of(wire).references:
        if path not in _SERVERS_OWN and _at(body, path):
            raise InvalidRequestError(
                f"{path}: this server does not pass it on, since what it names is kept in an account that others share; leave it out"
            ).at(field=path)


def admitted(call: Call) -> Call:
    """The call without the fields that its wire's allow list has not: they may name objects of an account that all clients of a gateway
    share, other models, or who pays.

    Raises:
        InvalidRequestError: what a field names is what the request is about.
    """
    check_references(call.body, call.wire.name)
    allowed = serving(call.wire).allowed
    root = _ROOTS.get(call.route.purpose)
    if allowed is None or root is None:
        return call
    fields = _fields_of(call.wire.name)
    body, left_out = allowed.passed(call.body, root, fields.known)
    if body is call.body:
        return call
    return msgspec.structs.replace(
        call, body=body, losses=tuple([_not_passed(path) for path in left_out[:_MOST]])
    )


def _not_passed(path: str) -> Loss:
    why = "it may name what others have in the provider's account, and is passed on with references=True alone"
    place, _, tool = path.partition(".")
    if place == "tools" and tool and "." not in tool:
        return Loss(None, None, Lost.tool, why, tool[:_LONGEST])
    return Loss(None, None, Lost.option, why, path[:_LONGEST])


def foreign_losses(request: ModelRequest, wire: str) -> list[Loss]:
    """Returns what a request that was read from this wire asks for in fields of the wire's own:
    another wire does not write them."""
    return option_losses(wire, request.options, if_object((request.native or {}).get(wire)))


def option_losses(wire: str, *options: Mapping[str, Any]) -> list[Loss]:
    """Returns a loss for each of these fields of a wire that asks for something."""
    fields = _fields_of(wire)
    paths = islice(chain.from_iterable([_leaves(each, fields) for each in options]), _MOST)
    why = f"it is a field of {wire}"
    return [
        Loss(
            None,
            None,
            Lost.field if _is_minor(path, fields) else Lost.option,
            why,
            path[:_LONGEST],
        )
        for path in paths
    ]


def embedding_losses(request: EmbeddingsRequest, wire: str) -> list[Loss]:
    """The options of a request for vectors that another wire does not write; those that say how vectors are packed are none."""
    why = f"it is a field of {wire}"
    return [
        Loss(None, None, Lost.field if name in _ACCOUNTING else Lost.option, why, name)
        for name, value in request.options.items()
        if value is not None
        and (name not in _PACKING or (isinstance(value, list) and value != ["float"]))
    ]


def shared_tools(request: ModelRequest, wire: str, there: str) -> tuple[ModelRequest, list[Loss]]:
    """The request with those alone of its provider's tools that providers of the wire `there` have too, and what that leaves out."""
    if not any(isinstance(tool, ServerTool) for tool in request.tools):
        return request, []
    tools: list[ToolSpec | ServerTool] = []
    losses: list[Loss] = []
    fields, known = _fields_of(wire), frozenset(_fields_of(there).server_tools.values())
    for tool in request.tools:
        if isinstance(tool, ToolSpec):
            tools.append(tool)
        elif (name := fields.server_tools.get(tool.name, "")) in known:
            tools.append(ServerTool(name))
            losses += [
                Loss(
                    None,
                    None,
                    Lost.option,
                    f"it is a field of {wire}",
                    f"tools.{tool.name}.{option}"[:_LONGEST],
                )
                for option, value in tool.options.items()
                if value is not None and value not in fields.idle.get(f"tools.{option}", ())
            ]
        else:
            losses.append(
                Loss(None, None, Lost.tool, f"it is a tool of {wire}", tool.name[:_LONGEST])
            )
    settings = request.settings
    left_out = {tool.name for tool in request.tools if isinstance(tool, ServerTool)}
    if settings.tool_choice in left_out or (not tools and settings.tool_choice is not None):
        if settings.tool_choice not in ("auto", "none"):
            losses.append(Loss(None, None, Lost.setting, "there is no such tool", "tool_choice"))
        settings = msgspec.structs.replace(settings, tool_choice=None)
    return request.replace(tools=tuple(tools), settings=settings), losses[:_MOST]


def without_own(request: ModelRequest, wire: str) -> ModelRequest:
    """The request without what only this wire writes."""
    native = {
        name: each
        for name, each in (request.native or {}).items()
        if name.removesuffix(NOTES) != wire
    }
    return request.replace(options={}, wire=None, native=native or None)


def _fields_of(wire: str) -> RequestFields:
    return serving(wires.get(wire)).request_fields


def _leaves(fields: Mapping[str, Any], known: RequestFields, before: str = "") -> Iterator[str]:
    """The paths of what asks for something. Only objects that the table knows have paths of their own: other keys may be the client's."""
    for name, value in fields.items():
        path = f"{before}{name}"
        if value is None or any(
            type(value) is type(idle) and value == idle for idle in known.idle.get(path, ())
        ):
            continue
        if isinstance(value, dict) and value and _has_paths(path, known):
            yield from _leaves(if_object(value), known, f"{path}.")
        else:
            yield path


def _is_minor(path: str, known: RequestFields) -> bool:
    steps = path.split(".")
    return any(".".join(steps[: end + 1]) in known.minor for end in range(len(steps)))


def _has_paths(path: str, known: RequestFields) -> bool:
    return any(each.startswith(f"{path}.") for each in (*known.idle, *known.minor))


def _at(fields: Mapping[str, Any], path: str) -> Any:
    value: Any = fields
    for step in path.split("."):
        value = if_object(value).get(step)
    return value


def _without(fields: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The fields without the one at a path, and without objects that are empty then."""
    step, _, further = path.partition(".")
    if not further:
        return {name: value for name, value in fields.items() if name != step}
    inner = _without(if_object(fields[step]), further)
    return {
        name: inner if name == step else value
        for name, value in fields.items()
        if name != step or inner
    }


def loss_headers(losses: Iterable[Loss]) -> Mapping[str, str]:
    """The header that names these losses, each kind once with how often it occurs: `option;which="logit_bias", thinking;n=3`. None
    where there is no loss. What does not fit is counted: `more;n=4`."""
    counts = Counter(_item(loss) for loss in losses)
    items = [item if count == 1 else f"{item};n={count}" for item, count in counts.items()]
    return {HEADER: _bounded(items)} if items else {}


def losses_of(events: Iterable[Event]) -> list[Loss]:
    """What the request of these events had to leave out, as the start of the answer says it."""
    return [loss for event in events if isinstance(event, MessageStarted) for loss in event.losses]


def _item(loss: Loss) -> str:
    item = loss.what.value.replace(" ", "-")
    name = loss.which.replace(" ", "-")
    return f'{item};which="{name}"' if loss.what in _NAMED and _WORD.fullmatch(name) else item


def _bounded(items: list[str]) -> str:
    kept: list[str] = []
    length = len(f", more;n={len(items)}")
    for item in items:
        length += len(item) + 2
        if length > _MOST_HEADER:
            return ", ".join([*kept, f"more;n={len(items) - len(kept)}"])
        kept.append(item)
    return ", ".join(kept)
