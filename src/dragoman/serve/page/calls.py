"""Shows the latest calls of the server's APIs, and plans what a conversation would lose at another
model."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

import msgspec

from dragoman.errors import InvalidRequestError, SettingsError, public
from dragoman.history import plan
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Usage
from dragoman.serve.core.service import Service
from dragoman.serve.http.call_metrics import Observed
from dragoman.serve.page.agents import find_served, models_of
from dragoman.serve.page.door import PageRequest, Reply
from dragoman.serve.page.threads import read_conversation
from dragoman.serve.page.views import dump_loss

__all__ = ["CallList", "make_plan"]

_MOST_CALLS = 1000
_PER_PAGE = 50
_LEAST_FAILED = 400
"""HTTP statuses from here on are failures."""


class _RecentCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is over."""

    id: str
    owner: str
    at: datetime
    api: str
    purpose: str
    model: str
    status: int
    usage: Usage | None
    cost: str | None
    seconds: float
    first_seconds: float | None
    losses: tuple[Loss, ...]
    error: str | None


class CallList:
    """The latest calls of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._calls: deque[_RecentCall] = deque(maxlen=_MOST_CALLS)

    def add(self, call: Observed) -> None:
        """Takes a call that is over. Those of the page itself, and lists, are left out."""
        if call.wire == "page" or (not call.model and call.status < _LEAST_FAILED):
            return
        self._calls.append(
            _RecentCall(
                id=call.id,
                owner=call.owner,
                at=self._service.clock() - timedelta(seconds=call.seconds),
                api=call.wire,
                purpose=call.purpose,
                model=call.model,
                status=call.status,
                usage=call.usage,
                cost=None if call.cost is None else f"{call.cost:.10f}".rstrip("0"),
                seconds=round(call.seconds, 6),
                first_seconds=call.first_seconds,
                losses=tuple(call.losses),
                error=None if call.error is None else public(call.error).message,
            )
        )

    async def show(self, request: PageRequest) -> Reply:
        """Answers with a page of the caller's calls, the latest first."""
        start, owner = request.page * _PER_PAGE, request.call.caller.id
        calls = [call for call in reversed(self._calls) if call.owner == owner]
        items = [_dump_call(call) for call in calls[start : start + _PER_PAGE]]
        more = len(calls) > start + _PER_PAGE
        return Reply({"items": items, "page": request.page, "has_more": more})


def _dump_call(call: _RecentCall) -> Json:
    fields: Json = msgspec.structs.asdict(call)
    del fields["owner"]
    return {**fields, "losses": [dump_loss(loss) for loss in call.losses]}


async def make_plan(request: PageRequest) -> Reply:
    """Answers with what a conversation would lose at a model.

    Raises:
        InvalidRequestError: the caller may not choose the model.
        ModelNotFoundError: the caller has no such conversation.
    """
    call = msgspec.structs.replace(request.call, parameters={"id": request.read_text("thread_id")})
    served = find_served(call, request.read_text("agent"))
    models, name = models_of(call, served), request.read_text("model")
    if name not in models:
        raise InvalidRequestError(f"the model {name!r:.200} cannot be chosen here").at(
            field="model"
        )
    messages = await read_conversation(call)
    try:
        result = plan(messages, models[name] or name)
    except SettingsError as error:
        raise InvalidRequestError(f"nothing is known of {name!r:.200}").at(field="model") from error
    groups: dict[tuple[str, str, str, str], Json] = {}
    for group_name, losses in (("lost", result.losses), ("repaired", result.repairs)):
        for loss in losses:
            key = (group_name, loss.what.value, loss.which, loss.why)
            group = groups.setdefault(key, {**dump_loss(loss), "kind": group_name, "messages": []})
            group.pop("message", None)
            group["messages"].append(loss.message)
    return Reply({**result.to_json(), "groups": list(groups.values())})
