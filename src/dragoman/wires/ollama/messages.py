"""The conversation: `messages` of `/api/chat` ⇄ our messages. Consecutive tool messages are one user message of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count, groupby
from typing import Any, cast

from dragoman.codec.ids import Rule, call_ids
from dragoman.codec.json_values import bounded, if_list, if_text, merged, rest
from dragoman.codec.replay import kind_of, readable
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Content, Message, Origin, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ollama.calls import dump_call, is_call, load_call
from dragoman.wires.ollama.images import load_images
from dragoman.wires.ollama.quirks import OWN, Quirks
from dragoman.wires.ollama.results import Waiting, dump_result, load_result
from dragoman.wires.ollama.said import Lose, Said

__all__ = ["dump_messages", "load_messages", "read_messages"]

_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.MODEL}
_ANY = Rule(letters=r"\s\S", most=1024)
"""What it takes as ids of calls: any, but each once."""
_SENT = {role: name for name, role in _ROLES.items()}


def load_messages(payload: Any, *, origin: Origin | None = None) -> list[Message]:
    """The list of messages → ours. `origin` is given to the model's.

    Raises:
        HistoryError: it is no such list.
    """
    return read_messages(bounded(payload), origin)


def read_messages(payload: Any, origin: Origin | None) -> list[Message]:
    """The same of a payload whose depth is known to be bounded."""
    if not isinstance(payload, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", payload)):
        raise HistoryError("the messages of an Ollama chat are a list of objects")
    numbers = count()

    def fresh_id() -> str:
        return f"call-{next(numbers)}"

    waiting = Waiting()
    messages: list[Message] = []
    for of_results, group in groupby(cast("list[dict[str, Any]]", payload), lambda entry: entry.get("role") == "tool"):
        if of_results:
            messages.append(Message(Role.USER, tuple([load_result(entry, waiting, fresh_id) for entry in group])))
            continue
        for entry in group:
            messages.append(_load(entry, origin, fresh_id))
            if calls := messages[-1].tool_calls:
                waiting = Waiting(calls)
    return messages


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> list[dict[str, Any]]:
    """Messages → the list of messages. What the format or its target cannot hold is added to `losses`."""
    messages = list(messages)
    dumped: list[dict[str, Any]] = []
    calls: dict[str, ToolCallPart] = {}
    ids = call_ids(messages, _ANY) if target else {}
    for position, reason in enumerate(readable(messages, target, (quirks or Quirks()).reads)):
        message = messages[position]
        lose = _noted([] if losses is None else losses, position)
        results = [
            dump_result(piece, ids.get((position, place), piece.id), place, calls.get(piece.id), lose)
            for place, piece in enumerate(message.content)
            if isinstance(piece, ToolResultPart) and piece.run_by != "provider" and message.role is not Role.MODEL
        ]
        calls.update({call.id: call for call in message.tool_calls})
        dumped += results
        if len(results) < len(message.content) or not results:
            dumped.append(_dump(position, message, reason, lose, ids))
    return dumped


def _load(entry: Mapping[str, Any], origin: Origin | None, fresh_id: Callable[[], str]) -> Message:
    role = _ROLES.get(if_text(entry.get("role")))
    if role is None:
        raise HistoryError(f"an Ollama chat has no role {entry.get('role')!r}; it has system, user, assistant and tool")
    content: list[Content] = []
    read = ["role"]
    if role is Role.MODEL and (thinking := if_text(entry.get("thinking"))):
        content.append(ThinkingPart(thinking))
        read.append("thinking")
    if images := load_images(entry):
        content += images
        read.append("images")
    spelled: dict[str, Any] = {}
    if text := if_text(entry.get("content")):
        content.append(TextPart(text))
    elif entry.get("content") != "":
        if entry.get("content") is not None:
            raise HistoryError(f"the content of an Ollama message is a text, not {entry['content']!r}")
        spelled["content"] = None if "content" in entry else "absent"
    calls = if_list(entry.get("tool_calls"))
    if role is Role.MODEL and calls and all(map(is_call, calls)):
        content += [load_call(call, fresh_id) for call in calls]
        read.append("tool_calls")
    native = OWN.note(rest(entry, "content", *read), form=spelled)
    return Message(role, tuple(content), origin=origin if role is Role.MODEL else None, native=native)


def _dump(
    position: int, message: Message, reason: str | None, lose: Lose, ids: Mapping[tuple[int, int], str]
) -> dict[str, Any]:
    """A message without its results. `reason`: why its thinking may not go along; `None`: it may. `ids`: of its calls."""
    said = Said(lose)
    for place, piece in enumerate(message.content):
        if isinstance(piece, ToolResultPart) and message.role is not Role.MODEL and piece.run_by != "provider":
            if said.begun:
                lose(place, "order", "this format has the results of tools before all else")
        elif isinstance(piece, ToolCallPart) and piece.run_by != "provider":
            if ids and message.role is not Role.MODEL:
                lose(place, kind_of(piece), "calls stand in the model's messages")
            else:
                said.add(place, "tool_calls", dump_call(piece, ids.get((position, place), piece.id)))
        elif isinstance(piece, (ToolCallPart, ToolResultPart)):
            lose(place, kind_of(piece), "this format has no tools that the provider runs")
        elif isinstance(piece, ThinkingPart):
            if reason is not None or message.role is not Role.MODEL or not piece.text:
                lose(place, "thinking", reason or "only a model's message has readable thinking here")
            else:
                said.add(place, "thinking", piece.text)
        else:
            said.add_piece(place, piece)
    empty = OWN.form(message.native).get("content", "")
    fields = said.fields if "content" in said.fields or empty == "absent" else {"content": empty, **said.fields}
    return merged({"role": _SENT[message.role], **fields}, OWN.fields(message.native))


def _noted(losses: list[Loss], position: int) -> Lose:
    def lose(place: int | None, what: str, why: str) -> None:
        losses.append(Loss(position, place, what, why))

    return lose
