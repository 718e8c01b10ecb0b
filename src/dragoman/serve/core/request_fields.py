"""What a request's fields ask for beyond what all providers know, as its wire says; what of them
another wire leaves out; and the response header `dragoman-loss` that names what was left out, a
list of structured fields (RFC 9651).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from dragoman import wires
from dragoman.codec.body_schema import find_type_fault
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import RequestFields
from dragoman.errors import InvalidRequestError
from dragoman.event import Event, MessageStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES
from dragoman.request import EmbeddingsRequest, ModelRequest
from dragoman.serve.core.call import Call
from dragoman.wires.serving import get_serving

__all__ = [
    "HEADER",
    "admit_fields",
    "check_references",
    "check_types",
    "embedding_losses",
    "foreign_losses",
    "limit_candidates",
    "loss_headers",
    "losses_of",
    "option_losses",
    "without_lengths",
    "without_wire",
]


_MOST_FIELDS = 100
"""Fields that are named at most, so that an answer to nonsense is not longer than it."""
_LONGEST_NAME = 100
"""Characters of a field's name."""
_SERVERS_OWN = ("previous_response_id", "conversation")
"""Fields by which a client names what the server itself keeps."""
_PACKING = ("encoding_format", "embedding_types")
"""Fields that say how vectors are packed, which every answer can do."""
_ROOTS = {
    "chat": "request",
    "embeddings": "embeddings",
    "images": "images",
    "speech": "speech",
    "transcription": "transcription",
}
"""Purpose of a route whose body goes to a provider → what its fields are called in an allow
list."""
_ACCOUNTING = ("user", "truncate", "keep_alive", "priority", "title")
HEADER = "dragoman-loss"
"""The response header that names losses."""
_LONGEST_HEADER = 1000
"""Characters of the header's value; proxies take some thousands for all headers."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_NAMED = (Lost.option, Lost.setting, Lost.field, Lost.tool, Lost.candidate)
"""Losses whose `which` is a name of the API. That of others is a client's own, such as a file's
name, and is left out."""
_NOT_SHARED = "it may name what others have in the provider's account, and is passed on with references=True alone"


def limit_candidates(request: ModelRequest, wire: str) -> tuple[ModelRequest, list[Loss]]:
    """Returns the client's request with the fields for one answer, for which alone every response
    has room, and the loss."""
    path = _fields_of(wire).candidates
    count = _get_path(request.options, path) if path else None
    if count is None or (type(count) is int and count <= 1):
        return request, []
    loss = Loss(None, None, Lost.candidate, "a gateway gives the first answer alone", path)
    return request.replace(options=_remove_path(request.options, path)), [loss]


def check_types(body: JsonMap, wire: str) -> None:
    """Refuses a body one of whose fields has a type that no client means.

    Raises:
        InvalidRequestError: there is one.
    """
    for path, types in _fields_of(wire).types.items():
        value = _get_path(body, path) if "." in path else body.get(path)
        if value is not None and (wanted := find_type_fault(value, types)):
            raise InvalidRequestError(f"{path} must be {wanted}").at(field=path)


def without_lengths(request: ModelRequest, wire: str) -> ModelRequest:
    """Returns the request without the wire's own fields that bound the length of the answer."""
    native = request.native or {}
    options, wire_fields = request.options, if_object(native.get(wire))
    for path in _fields_of(wire).lengths:
        if _get_path(options, path) is not None:
            options = _remove_path(options, path)
        if _get_path(wire_fields, path) is not None:
            wire_fields = _remove_path(wire_fields, path)
    if wire not in native:
        return request.replace(options=options)
    return request.replace(options=options, native={**native, wire: wire_fields})


def check_references(body: JsonMap, wire: str) -> None:
    """Refuses fields of a body that name objects in the provider's account.

    Raises:
        InvalidRequestError: there is one.
    """
    for path in _fields_of(wire).references:
        if path not in _SERVERS_OWN and _get_path(body, path):
            raise InvalidRequestError(
                f"{path}: this server does not pass it on, since what it names is kept in an account that others share; leave it out"
            ).at(field=path)


def admit_fields(call: Call) -> Call:
    """Returns the call without the fields that its wire's allow list lacks: they may name objects
    of an account that all clients of a gateway share, other models, or who pays.

    Raises:
        InvalidRequestError: what a field names is what the request is about.
    """
    check_references(call.body, call.wire.name)
    allowed = get_serving(call.wire).allowed
    root = _ROOTS.get(call.route.purpose)
    if allowed is None or root is None:
        return call
    body, left_out = allowed.filter_body(call.body, root, _fields_of(call.wire.name).known_fields)
    if body is call.body:
        return call
    losses = [_loss_of_field(path) for path in left_out[:_MOST_FIELDS]]
    return msgspec.structs.replace(call, body=body, losses=tuple(losses))


def _loss_of_field(path: str) -> Loss:
    """Returns the loss for a field of a client's request that may not be passed on."""
    parent, _, tool = path.partition(".")
    if parent == "tools" and tool and "." not in tool:
        return _make_loss(Lost.tool, _NOT_SHARED, tool)
    return _make_loss(Lost.option, _NOT_SHARED, path)


def _make_loss(what: Lost, why: str, which: str) -> Loss:
    return Loss(None, None, what, why, which[:_LONGEST_NAME])


def foreign_losses(request: ModelRequest, wire: str) -> list[Loss]:
    """Returns what a request that was read from this wire asks for in fields of the wire's own:
    another wire does not write them."""
    return option_losses(wire, request.options, if_object((request.native or {}).get(wire)))


def option_losses(wire: str, *options: JsonMap) -> list[Loss]:
    """Returns a loss for each of these fields of a client's request that asks for something."""
    fields = _fields_of(wire)
    paths = islice(
        chain.from_iterable([_asking_paths(item, fields) for item in options]), _MOST_FIELDS
    )
    why = f"it is a field of {wire}"
    return [
        _make_loss(Lost.field if _is_minor(path, fields) else Lost.option, why, path)
        for path in paths
    ]


def embedding_losses(request: EmbeddingsRequest, wire: str) -> list[Loss]:
    """Returns the options of a request for vectors that another wire does not write."""
    why = f"it is a field of {wire}"
    losses: list[Loss] = []
    for name, value in request.options.items():
        packs_alone = name in _PACKING and (not isinstance(value, list) or value == ["float"])
        if value is not None and not packs_alone:
            what = Lost.field if name in _ACCOUNTING else Lost.option
            losses.append(Loss(None, None, what, why, name))
    return losses


def without_wire(request: ModelRequest, wire: str) -> ModelRequest:
    """Returns the request without what only this wire writes."""
    native = {
        name: fields
        for name, fields in (request.native or {}).items()
        if name.removesuffix(NOTES) != wire
    }
    return request.replace(options={}, wire=None, native=native or None)


def _fields_of(wire: str) -> RequestFields:
    return get_serving(wires.get(wire)).request_fields


def _asking_paths(fields: JsonMap, table: RequestFields, prefix: str = "") -> Iterator[str]:
    """Yields the paths of fields that ask for something. Only objects that the table knows have
    paths of their own: other keys may be the client's."""
    for name, value in fields.items():
        path = f"{prefix}{name}"
        if value is None or _is_idle(value, table.idle.get(path, ())):
            continue
        if isinstance(value, dict) and value and _has_paths(path, table):
            yield from _asking_paths(if_object(value), table, f"{path}.")
        else:
            yield path


def _is_idle(value: Any, idle_values: Sequence[Any]) -> bool:
    return any(type(value) is type(idle) and value == idle for idle in idle_values)


def _is_minor(path: str, table: RequestFields) -> bool:
    steps = path.split(".")
    return any(".".join(steps[: end + 1]) in table.minor for end in range(len(steps)))


def _has_paths(path: str, table: RequestFields) -> bool:
    return any(inner.startswith(f"{path}.") for inner in (*table.idle, *table.minor))


def _get_path(fields: JsonMap, path: str) -> Any:
    """Returns the value at a path in the fields of a request; None if there is none."""
    value: Any = fields
    for step in path.split("."):
        value = if_object(value).get(step)
    return value


def _remove_path(fields: JsonMap, path: str) -> Json:
    """Returns the fields of a client's request without the one at a path, and without objects that
    are then empty."""
    step, _, further = path.partition(".")
    remaining = {name: value for name, value in fields.items() if name != step}
    if not further:
        return remaining
    inner = _remove_path(if_object(fields[step]), further)
    # An object that only held this field would ask for nothing.
    if not inner:
        return remaining
    return {name: inner if name == step else value for name, value in fields.items()}


def loss_headers(losses: Iterable[Loss]) -> Mapping[str, str]:
    """Returns the header that names these losses of request fields, each kind once with how often
    it occurs: `option;which="logit_bias", thinking;n=3`; no header if there is no loss. What does
    not fit is counted: `more;n=4`."""
    counts = Counter(_header_item(loss) for loss in losses)
    items = [item if count == 1 else f"{item};n={count}" for item, count in counts.items()]
    return {HEADER: _join_bounded(items)} if items else {}


def losses_of(events: Iterable[Event]) -> list[Loss]:
    """Returns what the request of these events had to leave out, as the answer's start says it."""
    return [loss for event in events if isinstance(event, MessageStarted) for loss in event.losses]


def _header_item(loss: Loss) -> str:
    """Returns the loss of a request field as an item of the header `dragoman-loss`."""
    item = loss.what.value.replace(" ", "-")
    name = loss.which.replace(" ", "-")
    if loss.what in _NAMED and _HEADER_NAME.fullmatch(name):
        return f'{item};which="{name}"'
    return item


def _join_bounded(items: list[str]) -> str:
    """Joins items for lost request fields in the header `dragoman-loss` up to its longest length,
    and counts the rest as `more`."""
    fitting: list[str] = []
    length = len(f", more;n={len(items)}")
    for item in items:
        length += len(item) + 2
        if length > _LONGEST_HEADER:
            return ", ".join([*fitting, f"more;n={len(items) - len(fitting)}"])
        fitting.append(item)
    return ", ".join(fitting)
