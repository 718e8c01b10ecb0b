"""Checks of a wire's conversations: messages → the wire's own payload, and back."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, cast

import msgspec

from dragoman.codec.digest import compute_prefix
from dragoman.codec.media import read_media_text
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import (
    NOTES,
    DataPart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, attempt, demand, same
from dragoman.testing.samples import ANSWER, CONVERSATION, PARTS, PNG, comparable, essence
from dragoman.testing.wire.bench import (
    OPERATIONS,
    OWN,
    WireBench,
    events_of,
    json_of,
    seal_of,
    wire_check,
)

__all__ = [
    "bad_payloads_are_refused",
    "calls_and_results_stay_paired",
    "conversations_are_append_only",
    "conversations_return",
    "every_kind_of_part_returns_or_is_told",
    "loaded_conversations_are_dumped_as_they_were",
    "marks_change_nothing",
    "operations_are_whole",
    "problems_name_what_cannot_be_read",
    "results_return_or_are_told",
    "signatures_go_back_to_their_origin_alone",
    "votes_know_what_was_written",
    "what_is_ours_is_not_sent",
    "what_is_the_wires_own_bears_its_name",
]

_LOOK = "load_messages, dump_messages"


@wire_check(look="the names that the wire's package exports")
def operations_are_whole(bench: WireBench) -> None:
    """A wire does each of its operations wholly, both ways, or not at all; and it does at least one
    (`dragoman.wires.Wire`)."""
    name: Any = getattr(bench.wire, "name", None)
    demand(isinstance(name, str) and name, f"the wire's `name` must be a text and is {name!r}")
    for group, names in OPERATIONS.items():
        present = [name for name in names if getattr(bench.wire, name, None) is not None]
        missing = [name for name in names if name not in present]
        demand(not present or not missing, f"of its {group} it has {present} and lacks {missing}")
    demand(any(map(bench.has, OPERATIONS)), "it has no operation at all")


@wire_check("conversation", look=_LOOK)
def conversations_return(bench: WireBench) -> None:
    """A conversation of text, calls and results comes back as it was, in order, and no loss is told
    of it."""
    back, losses = bench.and_back(CONVERSATION)
    demand(not losses, f"losses are told of an ordinary conversation: {losses}")
    for position, (loaded, wanted) in enumerate(
        zip(comparable(back), comparable(CONVERSATION), strict=False)
    ):
        same(loaded, wanted, f"message {position}")
    same(len(back), len(CONVERSATION), "the number of messages")


@wire_check("conversation", look=_LOOK)
def every_kind_of_part_returns_or_is_told(bench: WireBench) -> None:
    """A part of any kind, in a user's or a model's message, comes back, or else a `Loss` names its
    place."""
    for role in (Role.USER, Role.MODEL):
        for part in PARTS:
            before = [Message.user("See?")] if role is Role.MODEL else []
            messages = [*before, Message(role, (TextPart("Here."), part)), Message.user("And?")]
            payload, losses = bench.there(messages)
            places = {(loss.message, loss.part) for loss in losses}
            back = [
                piece for message in bench.wire.load_messages(payload) for piece in message.content
            ]
            what = f"a {type(part).__name__}{_kind(part)} in a {role.value}'s message"
            demand(
                places & {(len(before), 1), (len(before), None)}
                or any(_is(piece, part) for piece in back),
                f"{what} does not come back, and the losses do not tell of it: {losses}",
            )
            text = "".join(piece.text for piece in back if isinstance(piece, TextPart))
            demand("Here." in text and "And?" in text, f"the text beside {what} is lost")


@wire_check("conversation", look=_LOOK)
def results_return_or_are_told(bench: WireBench) -> None:
    """Any result of a tool comes back: every JSON value, parts with an image, a failure; or else a
    `Loss` names its place."""
    image = DataPart(PNG, "image/png")
    results: list[Any] = [
        "",
        "text",
        None,
        0,
        1.5,
        True,
        [],
        [1, "a"],
        {},
        {"a": [None]},
        (TextPart("seen"), image),
    ]
    for result in results:
        _, back, losses = _round(bench, ToolResultPart("c", "f", result))
        loaded = [part for message in back for part in message.tool_results]
        same(len(loaded), 1, f"the number of results after one of {result!r}")
        if isinstance(result, tuple):
            pieces = [piece for message in back for piece in (*message.content, *_parts(loaded[0]))]
            demand(
                any(_is(piece, image) for piece in pieces) or losses,
                "an image in a result is lost, and no loss tells",
            )
        elif result not in ("", None):
            same(essence(loaded[0]), essence(ToolResultPart("c", "f", result)), "a result")
    _, back, losses = _round(bench, ToolResultPart("c", "f", "it broke", is_error=True))
    failed = [part for message in back for part in message.tool_results]
    demand(failed[0].is_error or losses, "that a result is an error is lost, and no loss tells")


@wire_check("conversation", look=f"{_LOOK}: the ids of calls")
def calls_and_results_stay_paired(bench: WireBench) -> None:
    """Calls of the same tool with the same arguments stay apart, each with its own result; ids
    repeat from round to round."""
    messages = [Message.user("Roll twice, and again.")]
    for turn in range(2):
        messages += [
            Message.model(ToolCallPart("a", "roll", {}), ToolCallPart("b", "roll", {})),
            Message.user(
                ToolResultPart("a", "roll", f"{turn}-a"), ToolResultPart("b", "roll", f"{turn}-b")
            ),
        ]
    back, _ = bench.and_back(messages)
    calls = [message.tool_calls for message in back if message.tool_calls]
    results = [message.tool_results for message in back if message.tool_results]
    same(
        [len(parts) for parts in (*calls, *results)],
        [2, 2, 2, 2],
        "the number of calls and of results in each round",
    )
    for turn, (called, answered) in enumerate(zip(calls, results, strict=True)):
        demand(
            called[0].id != called[1].id,
            f"two calls of one message have the same id {called[0].id!r}",
        )
        demand(all(call.id for call in called), "a call has no id")
        same(
            [part.id for part in answered],
            [call.id for call in called],
            "the ids that the results answer to",
        )
        same(
            [part.result for part in answered],
            [f"{turn}-a", f"{turn}-b"],
            "the results in call order",
        )


@wire_check("conversation", look="dump_messages: whatever depends on how many messages there are")
def conversations_are_append_only(bench: WireBench) -> None:
    """What was sent once is sent again as it was when the conversation goes on, so that caches and
    signatures hold."""
    ends = [
        position for position, message in enumerate(CONVERSATION, 1) if message.role is Role.USER
    ]
    payloads = [bench.there(CONVERSATION[:end])[0] for end in ends]
    for shorter, longer in pairwise(payloads):
        for before, after in zip(_lists(shorter), _lists(longer), strict=True):
            same(after[: len(before)], before, "the beginning of the longer conversation")
    same(bench.there(CONVERSATION)[0], payloads[-1], "the same conversation, dumped a second time,")


@wire_check("conversation", look=_LOOK)
def loaded_conversations_are_dumped_as_they_were(bench: WireBench) -> None:
    """A payload that is loaded and dumped is the same payload; so no id is sent back that did not
    come, and none changes."""
    payload, _ = bench.there([*CONVERSATION, Message.user("An image.", DataPart(PNG, "image/png"))])
    again, losses = bench.there(bench.wire.load_messages(payload))
    same(again, payload, "the payload after a load")
    demand(not losses, f"losses are told of what was loaded: {losses}")


@wire_check("conversation", look="dump_messages")
def what_is_ours_is_not_sent(bench: WireBench) -> None:
    """Ids of messages, metadata and what another wire noted in `native` never reach a provider."""
    mark = "LEAKED-BY-THE-WIRE"
    native = {"another_wire": {"cache_control": mark, "signature": mark}}
    messages = [
        Message.user(TextPart("Hi.", native)).replace(
            id=mark, metadata={"note": mark}, native=native
        ),
        Message.model(
            ThinkingPart("Hm.", native),
            TextPart("Ho.", native),
            ToolCallPart("c", "f", {}, native=native),
        ).replace(
            id=mark,
            metadata={"note": mark},
            native=native,
            origin=Origin(mark, mark, mark, mark, mark),
        ),
        Message.user(ToolResultPart("c", "f", "r", native=native)),
    ]
    payload, _ = bench.there(messages)
    demand(
        mark not in _text(payload),
        f"something of ours, or of another wire's, is in the payload: {_text(payload)}",
    )


@wire_check(
    "conversation", look="load_messages: codec.native.Own, and the name that it is made with"
)
def what_is_the_wires_own_bears_its_name(bench: WireBench) -> None:
    """Fields without a neutral name, and notes about how something was written, are kept in
    `native` under the wire's own name: under another's they would be sent to that other
    provider."""
    payload = bench.there(CONVERSATION)[0]
    for entry in [entry for entries in _lists(payload) for entry in entries]:
        if isinstance(entry, dict):
            cast("Json", entry)["kit_field"] = "kit"
    loaded = bench.wire.load_messages(payload)
    natives = [
        holder.native
        for message in loaded
        for holder in (message, *message.content)
        if holder.native
    ]
    names = {key.removesuffix(NOTES) for native in natives for key in native}
    demand(
        names <= {bench.name},
        f"what is its own stands in `native` under {sorted(names - {bench.name})}",
    )


@wire_check("conversation", look="dump_messages: native, and replay.readable")
def signatures_go_back_to_their_origin_alone(bench: WireBench) -> None:
    """What a provider signed goes back byte-exact to the origin that signed it while all before it
    is as it was, and nowhere else; where it is left out a `Loss` says so. Text, calls and results
    go everywhere."""
    question = Message.user("Where?")
    origin = msgspec.structs.replace(OWN, prefix=compute_prefix([question], bench.name))
    signed = Message.model(bench.signed, "There.", ToolCallPart("c", "f", {})).replace(
        origin=origin
    )
    following = [
        signed,
        Message.user(ToolResultPart("c", "f", "ok")),
        Message.model("Good."),
        Message.user("And?"),
    ]
    seal = seal_of(bench.signed, bench.name)
    payload, _ = bench.there([question, *following], target=OWN)
    if seal not in _text(payload) and bench.signed_by_kit:
        raise Skipped(
            f"the wire {bench.name} holds no thinking signed as {bench.signed!r}; where your provider signs, pass signed="
        )
    demand(
        seal in _text(payload),
        f"the signature does not go back to its own origin byte for byte: {_text(payload)}",
    )
    elsewhere = [
        (
            "another provider",
            msgspec.structs.replace(OWN, provider="another"),
            [question, *following],
        ),
        (
            "another endpoint",
            msgspec.structs.replace(OWN, endpoint="https://another.invalid"),
            [question, *following],
        ),
        ("a changed history", OWN, [Message.user("When?"), *following]),
    ]
    for what, target, messages in elsewhere:
        payload, losses = bench.there(messages, target=target)
        demand(seal not in _text(payload), f"the signature is sent to {what}")
        demand(
            any(loss.message == 1 for loss in losses),
            f"the signature is not sent to {what}, and no loss tells",
        )
        demand(
            '"There."' in _text(payload) or "There." in _text(payload),
            f"the text beside it is not sent to {what}",
        )


@wire_check("conversation", look="load_messages")
def bad_payloads_are_refused(bench: WireBench) -> None:
    """What is no conversation of this format is refused with a `HistoryError`, and nothing else is
    ever raised."""
    payload, _ = bench.there(CONVERSATION)
    bad_payloads: list[Any] = [None, 5, "text", [5], [None], {"messages": 5}, *_spoilt(payload)]
    loaded = [
        attempt(
            lambda bad=bad: bench.wire.load_messages(bad), _text(bad)[:300], but=(HistoryError,)
        )
        for bad in bad_payloads
    ]
    demand(None in loaded, "nothing is refused, not even a number in place of the payload")


@wire_check("conversation", look="load_messages, load_request: problems=")
def problems_name_what_cannot_be_read(bench: WireBench) -> None:
    """With `problems`, an element of a conversation that cannot be read is left out and noted by
    its place, and the rest is read as without it. What is no conversation at all is refused all the
    same."""
    payload, _ = bench.there(CONVERSATION)
    wanted = comparable(bench.wire.load_messages(payload))
    elements = max(_lists(payload), key=len)
    readers: list[tuple[Any, Any]] = [(payload, bench.wire.load_messages)]
    if bench.has("request"):
        body = json_of(bench.wire.dump_request(ModelRequest("m", CONVERSATION)), "dump_request")
        readers.append((body, partial(_messages_of, bench)))
    for whole, read in readers:
        for index in range(len(elements) + 1):
            problems: list[Problem] = []
            spoilt = [*elements[:index], 5, *elements[index:]]
            loaded = read(_with(whole, elements, spoilt), problems=problems)
            same(
                [problem.index for problem in problems],
                [index],
                f"the places of problems, where element {index} is a number,",
            )
            demand(problems[0].error, "a problem has no words")
            same(comparable(loaded), wanted, f"what is read where element {index} is a number")
        none: list[Problem] = []
        read(whole, problems=none)
        same(none, [], "the problems of a conversation that can be read")
    refused = attempt(
        lambda: bench.wire.load_messages(5, problems=[]), "a number", but=(HistoryError,)
    )
    demand(
        refused is None, f"a number in place of the payload is read, with `problems`, as {refused}"
    )


@wire_check("conversation", look="dump_messages: codec.marks; the encoder")
def marks_change_nothing(bench: WireBench) -> None:
    """A `MarkPart` is for people: a conversation and an answer are written as without it, and no
    loss is told of it; losses of what stands beside it name the places that this has in the content
    as it was given."""
    for message in (*CONVERSATION, Message.user(*PARTS), ANSWER):
        plain, losses = bench.there([Message.user("See?"), message])
        payload, found_losses = bench.there([Message.user("See?"), _mark(message)])
        same(payload, plain, f"a {message.role.value}'s message with marks")
        moved = [
            msgspec.structs.replace(loss, part=2 * loss.part + 1)
            if loss.message == 1 and loss.part is not None
            else loss
            for loss in losses
        ]
        same(found_losses, moved, "the losses of a message with marks")
    if bench.has("response"):
        same(bench.whole(_mark(ANSWER)), bench.whole(ANSWER), "a response with marks")
    if bench.has("stream"):
        loaded = bench.message_of(
            bench.decode([bench.stream(events_of(_mark(ANSWER)))]), "a stream with marks"
        )
        same(comparable([loaded]), comparable([ANSWER]), "what a stream with marks says")


@wire_check("detection", "conversation", look="votes")
def votes_know_what_was_written(bench: WireBench) -> None:
    """Whatever JSON is given, `votes` says a whole number from 0 to 3 and raises nothing: at least
    1 of each element that `dump_messages` wrote, 0 of what is no object."""
    written = [
        bench.there(messages)[0] for messages in (CONVERSATION, [Message.user(*PARTS), ANSWER])
    ]
    elements = [element for payload in written for element in max(_lists(payload), key=len)]
    junk: list[Any] = [None, True, 5, "text", [], [{}]]
    values: list[Any] = [*junk, {}, [[]], [None], [5]]
    odd: list[Any] = [{}, {"role": {}}, {"type": []}, {"content": [{"type": []}]}, {"parts": [5]}]
    odd += [{**element, key: value} for element in elements for key in element for value in values]
    for element in (*elements, *junk, *odd):
        votes = attempt(partial(bench.wire.votes, element), f"the votes of {_text(element)[:300]}")
        demand(
            type(votes) is int and 0 <= votes <= 3,
            f"the votes of {_text(element)[:300]} are {votes!r}",
        )
    for element in elements:
        demand(
            bench.wire.votes(element) >= 1,
            f"what dump_messages wrote gets no vote: {_text(element)[:300]}",
        )
    for element in junk:
        same(bench.wire.votes(element), 0, f"the votes of {element!r}")


def _messages_of(bench: WireBench, body: Any, problems: list[Problem]) -> tuple[Message, ...]:
    return bench.wire.load_request(body, problems=problems).messages


def _mark(message: Message) -> Message:
    """Returns the message with a mark before each piece, and one at its end."""
    mark = MarkPart("step", {"kit_ui": {"type": "step"}})
    return message.replace(
        content=[
            *[marked_piece for piece in message.content for marked_piece in (mark, piece)],
            mark,
        ]
    )


def _with(payload: Any, elements: list[Any], replacement: list[Any]) -> Any:
    """Returns the payload, or a body that holds it, with other elements of the conversation."""
    if isinstance(payload, list):
        return replacement
    fields = cast("Json", payload)
    return {key: replacement if value == elements else value for key, value in fields.items()}


def _round(bench: WireBench, result: ToolResultPart) -> tuple[Any, list[Message], list[Any]]:
    messages = [
        Message.user("Do."),
        Message.model(ToolCallPart("c", "f", {})),
        Message.user(result),
    ]
    payload, losses = bench.there(messages)
    return payload, bench.wire.load_messages(payload), losses


def _parts(result: ToolResultPart) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", result.result) if result.is_content else ()


def _is(piece: Any, part: Any) -> bool:
    """True if a piece is the part, or a text that holds all of it, as for media that a format has
    no place for."""
    if isinstance(part, ProviderPart):
        return isinstance(piece, ProviderPart) and piece.kind == part.kind
    if type(piece) is type(part):
        same_kind = not isinstance(part, DataPart) or piece.mime_type == part.mime_type
        return same_kind and (
            essence(part) in piece.text
            if isinstance(part, TextPart)
            else essence(piece) == essence(part)
        )
    if isinstance(part, ThinkingPart) or not isinstance(piece, TextPart):
        return False
    text = read_media_text(part) if isinstance(part, DataPart) else str(essence(part))
    return text is not None and text in piece.text


def _kind(part: Any) -> str:
    return f" of {part.mime_type}" if isinstance(part, DataPart | LinkPart) else ""


def _lists(payload: Any) -> list[list[Any]]:
    """Returns the lists that a payload is made of: itself, or those directly in it."""
    if isinstance(payload, list):
        return [cast("list[Any]", payload)]
    fields = cast("Json", payload)
    return [fields[key] for key in sorted(fields) if isinstance(fields[key], list)]


def _spoilt(payload: Any) -> list[Any]:
    """Returns the payload with one of its entries replaced by what cannot stand there."""
    spoilt: list[Any] = []
    wrong: list[Any] = [None, 5, "text", [], [5], {"a": 5}]
    if isinstance(payload, list):
        entries = cast("list[Any]", payload)
        for index, entry in enumerate(entries):
            roleless: list[Any] = (
                [{**cast("Json", entry), "role": 5}] if isinstance(entry, dict) else []
            )
            spoilt += [
                [*entries[:index], bad, *entries[index + 1 :]] for bad in (*wrong, *roleless)
            ]
    elif isinstance(payload, dict):
        fields = cast("Json", payload)
        for key, value in fields.items():
            spoilt += [{**fields, key: bad} for bad in wrong if bad is not None]
            spoilt += [{**fields, key: bad} for bad in _spoilt(value) if isinstance(value, list)]
    return spoilt


def _text(payload: Any) -> str:
    return msgspec.json.encode(payload).decode()
