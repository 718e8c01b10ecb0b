"""Items of OpenAI's Agents SDK: what `to_input_list()` gives and its sessions store. They are items of the Responses API, in the list alone,
and with them what the SDK notes of models that it reaches otherwise (`provider_data`).

Signatures in it are lifted to the wire of the provider that signed, so that they go back to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, rest
from dragoman.codec.layout import Layout
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats.openai_agents_signed import FAKE_ID, lift, lower
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role
from dragoman.wires import openai_responses
from dragoman.wires.openai_responses.quirks import OWN

__all__ = ["dump_messages", "layout", "load_messages", "name", "votes"]

name = "openai_agents"
layout = Layout(fields=())
"""Its list stands in no body of a request."""


def votes(message: Any) -> int:
    """How surely an object is an item of the SDK: 0 = cannot be, 1 = could be (or one of the Responses API alone), 2 = likely, 3 = hardly
    anything else."""
    fields = if_object(message)
    found = openai_responses.votes(rest(fields, "provider_data"))
    if found and ("provider_data" in fields or fields.get("id") == FAKE_ID):
        return 3
    return min(found, 1)


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of items → messages. `origin` is given to the model's messages where the items do not name a model. With `problems`, an item
    that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or an item cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "items of the Agents SDK are a list, as result.to_input_list() or session.get_items() gives it"
        )
    messages = openai_responses.load_messages(
        {"input": cast("list[Any]", payload)}, origin=origin, problems=problems
    )
    return [lift(message) if message.role is Role.MODEL else message for message in messages]


def dump_messages(
    messages: Iterable[Message], *, target: Origin | None = None, losses: list[Loss] | None = None
) -> list[dict[str, Any]]:
    """Messages → a list of items, for `Runner.run(agent, items)` or `session.add_items(items)`. What they cannot hold is added to `losses`."""
    sent: list[Message] = []
    places: list[tuple[int, ...]] = []
    signed: list[Loss] = []
    for position, message in enumerate(messages):
        if message.role is Role.SYSTEM:  # instructions are the agent's in the SDK
            message = message.replace(native=OWN.with_form(message.native, place="input"))
        lowered, at = lower(message, position, signed)
        sent.append(lowered)
        places.append(at)
    noted: list[Loss] = []
    payload = openai_responses.dump_messages(sent, target=target, losses=noted)
    if losses is not None:
        losses += [*signed, *(_placed(loss, places) for loss in noted)]
    given = payload["input"]
    return if_list(given) or ([{"role": "user", "content": given}] if given else [])


def _placed(loss: Loss, places: list[tuple[int, ...]]) -> Loss:
    """A loss at the place that the piece has in the message that was given."""
    if loss.message is None or loss.part is None:
        return loss
    return Loss(loss.message, places[loss.message][loss.part], loss.what, loss.why, loss.which)
