"""Which format a conversation is written in, told by its structure: each format votes on each message, fields beside them say the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.digest import neutral_chain
from dragoman.codec.json_values import bounded, if_list, if_object, if_objects, if_text
from dragoman.errors import HistoryError

__all__ = ["Detected", "detect", "detected", "payload_of"]

LISTS: Mapping[str, tuple[str, ...]] = {
    "contents": ("google",),
    "input": ("openai_responses",),
    "messages": ("openai_chat", "anthropic", "mistral", "ollama", "cohere"),
    "conversations": ("sharegpt", "openai_chat"),
}
"""Field of a request's body that holds the conversation → the formats that have it there, the most usual first."""
OBJECTS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("messages", "system"),
    "google": ("contents", "systemInstruction", "system_instruction"),
    "openai_responses": ("input", "instructions"),
}
"""Formats whose payload is an object: its fields, that of the list first. The payload of all others is the list."""
_ALONE = ("openai_agents",)
"""Formats whose list stands in no body of a request."""
_DOCUMENTS = ("sharegpt",)
"""Formats whose payload is an object as a whole, with all of its fields."""
_OWN_FIELDS: Mapping[str, frozenset[str]] = {
    "anthropic": frozenset(["system", "stop_sequences", "anthropic_version", "mcp_servers", "output_config", "container"]),
    "cohere": frozenset(["p", "k", "documents", "citation_options", "safety_mode", "strict_tools", "stop_sequences"]),
    "mistral": frozenset(["random_seed", "safe_prompt", "prompt_mode"]),
    "ollama": frozenset(["options", "keep_alive", "think"]),
    "openai_chat": frozenset(
        ["stream_options", "max_completion_tokens", "logprobs", "logit_bias", "functions", "modalities", "reasoning_effort"]
    ),
}  # fmt: skip
"""Fields of a request's body that hardly another format with the same list has."""


_PLAIN = ("user", "assistant", "system")
"""Roles of messages that nearly all formats have with a text alone: what they vote on one they vote on all."""


class Detected(NamedTuple):
    """Messages of one format that stand beside each other."""

    format: str
    """Its name."""
    payload: Any
    """What its `load_messages` takes."""
    start: int = 0
    """Position of the first in the list that was given."""


def detect(value: Any) -> str:
    """A conversation as JSON has it (a list of messages, one message, or the whole body of a request) → the name of its format. Where several
    formats have it and all read it alike, the most usual of them.

    Raises:
        HistoryError: no format has it, several have it and read it differently, or it is of several.
    """
    found = detected(value)
    if len({each.format for each in found}) > 1:
        formats = " and ".join(dict.fromkeys(each.format for each in found))
        raise HistoryError(f"the messages are of several formats: {formats}; give each of them by itself")
    return found[0].format


def detected(value: Any) -> list[Detected]:
    """As `detect`, of a list whose messages may be of several formats: those that stand beside each other, in order.

    Raises:
        HistoryError: a message is of no format, or it is ambiguous of which.
    """
    elements, field, body = _opened(bounded(value))
    if len(LISTS.get(field, ())) == 1:  # no other format has that field, so there is nothing to vote on
        return [Detected(LISTS[field][0], _payload(LISTS[field][0], elements, body))]
    found: list[Detected] = []
    for start, part, ballots in _runs(elements, _candidates(field)):
        name = _elected(part, ballots, start, body, single=len(part) == len(elements))
        found.append(Detected(name, _payload(name, part, body), start))
    if not found:
        raise HistoryError("there is no message in it, so its format cannot be told: pass format=")
    return found


def payload_of(value: Any, name: str) -> Any:
    """A conversation as JSON has it, as for `detect` → what `load_messages` of the format of that name takes.

    Raises:
        HistoryError: there is no conversation in it.
    """
    elements, _, body = _opened(bounded(value))
    return _payload(name, elements, body)


def _opened(value: Any) -> tuple[Sequence[Any], str, Mapping[str, Any]]:
    """What was given → its messages, the field that holds them, and the body around them; both empty where there is none."""
    if isinstance(value, list):
        return cast("list[Any]", value), "", {}
    body = if_object(value)
    for field in LISTS:
        if isinstance(body.get(field), list):
            return body[field], field, body
    if isinstance(body.get("input"), str):
        return (), "input", body
    if not body:
        raise HistoryError(f"a conversation is a list of messages or the body of a request, not {value!r:.100}")
    return (value,), "", {}


def _candidates(field: str) -> Sequence[str]:
    from dragoman import formats

    if not field:
        return formats.names()
    own = [
        name for name in formats.names() if name not in {*_ALONE, *(each for names in LISTS.values() for each in names)}
    ]
    return (*LISTS[field], *own)


def _runs(elements: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[int, list[Any], dict[str, int]]]:
    """The longest pieces of a list that one format has → position, elements, and the highest vote of each format that has them all."""
    from dragoman import formats

    voters = {name: formats.get(name).votes for name in names}
    plain = {role: _ballots({"role": role, "content": "text"}, voters) for role in _PLAIN}
    start, ballots = 0, dict.fromkeys(voters, 1)
    for place, element in enumerate(elements):
        if isinstance(element, str):
            continue
        fields = if_object(element)
        role = if_text(fields.get("role"))
        is_plain = role in plain and len(fields) == 2 and isinstance(fields.get("content"), str)
        votes = plain[role] if is_plain else _ballots(element, voters)
        if not votes:
            raise HistoryError(f"no format has a message like that at position {place}: {element!r:.200}")
        both = {name: max(ballots[name], vote) for name, vote in votes.items() if name in ballots}
        if not both:
            yield start, list(elements[start:place]), ballots
            start, both = place, votes
        ballots = both
    if elements:
        yield start, list(elements[start:]), ballots


def _ballots(element: Any, voters: Mapping[str, Callable[[Any], int]]) -> dict[str, int]:
    """The votes of the formats that may have a message."""
    return {name: found for name, vote in voters.items() if (found := vote(element))}


def _elected(part: list[Any], ballots: Mapping[str, int], start: int, body: Mapping[str, Any], *, single: bool) -> str:
    """The format of messages that several formats may have."""
    evidence = {name: (vote, _of_body(name, body)) for name, vote in ballots.items()}
    most = max(evidence.values())
    best = [name for name, votes in evidence.items() if votes == most]
    if len(best) > 1 and not _is_read_alike(best, part, body):
        where = "they" if single else f"those from position {start} on"
        raise HistoryError(f"{where} may be messages of {' or '.join(best)}, which read them differently: pass format=")
    return best[0]


def _of_body(name: str, body: Mapping[str, Any]) -> int:
    """How many of the fields beside the messages hardly another format has."""
    tools = if_objects(body.get("tools"))
    by_schema = sum("input_schema" in tool for tool in tools) if name == "anthropic" else 0
    by_function = (
        sum("function" in tool for tool in tools) if name in ("openai_chat", "mistral", "ollama", "cohere") else 0
    )
    return len(_OWN_FIELDS.get(name, frozenset()) & body.keys()) + by_schema + by_function


def _is_read_alike(names: Sequence[str], part: list[Any], body: Mapping[str, Any]) -> bool:
    """Whether these formats make the same messages of it."""
    from dragoman import formats

    chains: set[tuple[str, ...]] = set()
    for name in names:
        try:
            chains.add(tuple(neutral_chain(formats.get(name).load_messages(_payload(name, part, body)))))
        except HistoryError:
            chains.add(())
    return len(chains) == 1


def _payload(name: str, elements: Sequence[Any], body: Mapping[str, Any]) -> Any:
    """Messages as the format's `load_messages` takes them, with the fields of the body that belong to the conversation."""
    fields = OBJECTS.get(name)
    if name in _DOCUMENTS and len(elements) == len(if_list(body.get("conversations"))) > 0:
        return body
    if fields is None:
        return list(elements)
    listed = body[fields[0]] if isinstance(body.get(fields[0]), str) else list(elements)
    return {fields[0]: listed, **{field: body[field] for field in fields[1:] if field in body}}
