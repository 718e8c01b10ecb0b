"""Checks of conversations: messages → the wire's payload, and back.

The bench (`WireBench`) dumps the sample messages and loads them again. What a format cannot hold
must be reported as a `Loss`, so most checks accept either the content or a loss at its position.
`malformed` has the checks with input that is not a conversation.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import msgspec

from dragoman.codec.digest import compute_prefix
from dragoman.codec.media import read_media_text
from dragoman.json_bytes import Json
from dragoman.loss import Loss
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
from dragoman.testing.check import Skipped, require, require_equal
from dragoman.testing.samples import (
    ANSWER,
    CONVERSATION,
    PARTS,
    PNG,
    extract_content,
    simplify_messages,
)
from dragoman.testing.wire.bench import (
    OPERATIONS,
    ORIGIN,
    WireBench,
    find_lists,
    find_signature,
    make_stream_events,
    to_text,
    wire_check,
)

__all__ = [
    "calls_and_results_stay_paired",
    "conversations_are_append_only",
    "conversations_return",
    "parts_return_or_are_reported",
    "payloads_return_unchanged",
    "marks_change_nothing",
    "operations_are_complete",
    "results_return_or_are_reported",
    "signatures_return_only_to_their_origin",
    "private_fields_are_not_sent",
    "native_fields_have_the_wires_name",
]

_LOOK = "load_messages, dump_messages"


@wire_check(look="the names that the wire's package exports")
def operations_are_complete(bench: WireBench) -> None:
    """A wire has all functions of each group of operations that it offers, and offers at least one
    group (`dragoman.wires.Wire`)."""
    # A user's wire may be any module or object, so nothing is taken for granted.
    name: Any = getattr(bench.wire, "name", None)
    require(isinstance(name, str) and name, f"the wire's `name` must be a text and is {name!r}")
    for group, names in OPERATIONS.items():
        present = [name for name in names if getattr(bench.wire, name, None) is not None]
        missing = [name for name in names if name not in present]
        require(not present or not missing, f"of its {group} it has {present} and lacks {missing}")
    require(any(map(bench.has, OPERATIONS)), "it has no operation at all")


@wire_check("conversation", look=_LOOK)
def conversations_return(bench: WireBench) -> None:
    """A conversation of text, tool calls and results returns unchanged and in order, without a
    loss."""
    back, losses = bench.round_trip(CONVERSATION)
    require(not losses, f"an ordinary conversation has losses: {losses}")
    for position, (loaded, wanted) in enumerate(
        zip(simplify_messages(back), simplify_messages(CONVERSATION), strict=False)
    ):
        require_equal(loaded, wanted, f"message {position}")
    require_equal(len(back), len(CONVERSATION), "the number of messages")


@wire_check("conversation", look=_LOOK)
def parts_return_or_are_reported(bench: WireBench) -> None:
    """A part of any type in a user or model message returns, or a `Loss` names its position."""
    for role in (Role.USER, Role.MODEL):
        for part in PARTS:
            before = [Message.user("See?")] if role is Role.MODEL else []
            messages = [*before, Message(role, (TextPart("Here."), part)), Message.user("And?")]
            payload, losses = bench.dump(messages)
            places = {(loss.message, loss.part) for loss in losses}
            back = [
                piece for message in bench.wire.load_messages(payload) for piece in message.content
            ]
            what = (
                f"a {type(part).__name__}{_describe_media_type(part)} in a {role.value}'s message"
            )
            require(
                places & {(len(before), 1), (len(before), None)}
                or any(_holds_part(piece, part) for piece in back),
                f"{what} does not return, and no loss reports it: {losses}",
            )
            text = "".join(piece.text for piece in back if isinstance(piece, TextPart))
            require("Here." in text and "And?" in text, f"the text beside {what} is lost")


@wire_check("conversation", look=_LOOK)
def results_return_or_are_reported(bench: WireBench) -> None:
    """Any tool result returns, or a `Loss` names its position: every JSON value, parts with an
    image, an error."""
    for result in ("", "text", None, 0, 1.5, True, [], [1, "a"], {}, {"a": [None]}):
        part = ToolResultPart("c", "f", result)
        loaded, _, _ = _round_trip_result(bench, part)
        # Formats write a result as text, so an empty one and null may become the other.
        if result not in ("", None):
            require_equal(extract_content(loaded), extract_content(part), "a result")
    image = DataPart(PNG, "image/png")
    loaded, back, losses = _round_trip_result(
        bench, ToolResultPart("c", "f", (TextPart("seen"), image))
    )
    # A format without media in results may put the image beside the result.
    pieces = [*_list_parts(loaded), *[piece for message in back for piece in message.content]]
    require(
        any(_holds_part(piece, image) for piece in pieces) or losses,
        "an image in a result is lost without a loss",
    )
    loaded, _, losses = _round_trip_result(bench, ToolResultPart("c", "f", "broken", is_error=True))
    require(loaded.is_error or losses, "that a result is an error is lost without a loss")


@wire_check("conversation", look=f"{_LOOK}: the ids of calls")
def calls_and_results_stay_paired(bench: WireBench) -> None:
    """Calls of the same tool with the same arguments keep their own ids and results, also if ids
    repeat in another round."""
    messages = [Message.user("Roll twice, and again.")]
    for turn in range(2):
        messages += [
            Message.model(ToolCallPart("a", "roll", {}), ToolCallPart("b", "roll", {})),
            Message.user(
                ToolResultPart("a", "roll", f"{turn}-a"), ToolResultPart("b", "roll", f"{turn}-b")
            ),
        ]
    back, _ = bench.round_trip(messages)
    calls = [message.tool_calls for message in back if message.tool_calls]
    results = [message.tool_results for message in back if message.tool_results]
    require_equal(
        [len(parts) for parts in (*calls, *results)],
        [2, 2, 2, 2],
        "the number of calls and of results in each round",
    )
    for turn, (called, answered) in enumerate(zip(calls, results, strict=True)):
        require(
            called[0].id != called[1].id,
            f"two calls of one message have the same id {called[0].id!r}",
        )
        require(all(call.id for call in called), "a call has no id")
        require_equal(
            [part.id for part in answered],
            [call.id for call in called],
            "the ids that the results answer to",
        )
        require_equal(
            [part.result for part in answered],
            [f"{turn}-a", f"{turn}-b"],
            "the results in call order",
        )


@wire_check("conversation", look="dump_messages: whatever depends on how many messages there are")
def conversations_are_append_only(bench: WireBench) -> None:
    """A longer conversation begins with the payload of the shorter one, so that prompt caches and
    signatures stay valid."""
    ends = [
        position for position, message in enumerate(CONVERSATION, 1) if message.role is Role.USER
    ]
    payloads = [bench.dump(CONVERSATION[:end])[0] for end in ends]
    for shorter, longer in pairwise(payloads):
        for before, after in zip(find_lists(shorter), find_lists(longer), strict=True):
            require_equal(after[: len(before)], before, "the beginning of the longer conversation")
    require_equal(
        bench.dump(CONVERSATION)[0], payloads[-1], "the same conversation, dumped a second time,"
    )


@wire_check("conversation", look=_LOOK)
def payloads_return_unchanged(bench: WireBench) -> None:
    """A loaded payload is dumped unchanged: no id is added, dropped or altered."""
    payload, _ = bench.dump([*CONVERSATION, Message.user("An image.", DataPart(PNG, "image/png"))])
    again, losses = bench.dump(bench.wire.load_messages(payload))
    require_equal(again, payload, "the payload after a load")
    require(not losses, f"a loaded payload has losses: {losses}")


@wire_check("conversation", look="dump_messages")
def private_fields_are_not_sent(bench: WireBench) -> None:
    """Message ids, metadata and other wires' `native` fields never reach a provider."""
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
    payload, _ = bench.dump(messages)
    require(
        mark not in to_text(payload),
        f"private fields, or those of another wire, are in the payload: {to_text(payload)}",
    )


@wire_check(
    "conversation", look="load_messages: codec.native.Own, and the name that it is made with"
)
def native_fields_have_the_wires_name(bench: WireBench) -> None:
    """Fields without a neutral name, and notes about spelling, are in `native` under the wire's own
    name. Under another name they would be sent to that other provider."""
    payload = bench.dump(CONVERSATION)[0]
    # An unknown field in each message, as a newer version of the API might send.
    for entry in [entry for entries in find_lists(payload) for entry in entries]:
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
    require(
        names <= {bench.name},
        f"what is its own stands in `native` under {sorted(names - {bench.name})}",
    )


@wire_check("conversation", look="dump_messages: native, and replay.readable")
def signatures_return_only_to_their_origin(bench: WireBench) -> None:
    """Signed content returns byte for byte to the origin that signed it if everything before it is
    unchanged, and goes nowhere else. A `Loss` reports that it was left out. Text, calls and results
    go everywhere."""
    question = Message.user("Where?")
    origin = msgspec.structs.replace(ORIGIN, prefix=compute_prefix([question], bench.name))
    signed = Message.model(bench.signed, "There.", ToolCallPart("c", "f", {})).replace(
        origin=origin
    )
    following = [
        signed,
        Message.user(ToolResultPart("c", "f", "ok")),
        Message.model("Good."),
        Message.user("And?"),
    ]
    seal = find_signature(bench.signed, bench.name)
    payload, _ = bench.dump([question, *following], target=ORIGIN)
    if seal not in to_text(payload) and bench.signed_by_kit:
        raise Skipped(
            f"the wire {bench.name} holds no thinking signed as {bench.signed!r}; where your provider signs, pass signed="
        )
    require(
        seal in to_text(payload),
        f"the signature does not go back to its own origin byte for byte: {to_text(payload)}",
    )
    elsewhere = [
        (
            "another provider",
            msgspec.structs.replace(ORIGIN, provider="another"),
            [question, *following],
        ),
        (
            "another endpoint",
            msgspec.structs.replace(ORIGIN, endpoint="https://another.invalid"),
            [question, *following],
        ),
        ("a changed history", ORIGIN, [Message.user("When?"), *following]),
    ]
    for what, target, messages in elsewhere:
        payload, losses = bench.dump(messages, target=target)
        require(seal not in to_text(payload), f"the signature is sent to {what}")
        require(
            any(loss.message == 1 for loss in losses),
            f"the signature is not sent to {what}, and no loss reports it",
        )
        require(
            '"There."' in to_text(payload) or "There." in to_text(payload),
            f"the text beside it is not sent to {what}",
        )


@wire_check("conversation", look="dump_messages: codec.marks; the encoder")
def marks_change_nothing(bench: WireBench) -> None:
    """A `MarkPart` changes neither a conversation nor an answer and is never a loss. Losses beside
    it name positions in the content with its marks."""
    for message in (*CONVERSATION, Message.user(*PARTS), ANSWER):
        plain, losses = bench.dump([Message.user("See?"), message])
        payload, found_losses = bench.dump([Message.user("See?"), _add_marks(message)])
        require_equal(payload, plain, f"a {message.role.value}'s message with marks")
        moved: list[Loss] = []
        for loss in losses:
            # With a mark before each part, part n is at 2n + 1.
            if loss.message == 1 and loss.part is not None:
                loss = msgspec.structs.replace(loss, part=2 * loss.part + 1)
            moved.append(loss)
        require_equal(found_losses, moved, "the losses of a message with marks")
    if bench.has("response"):
        require_equal(
            bench.dump_answer(_add_marks(ANSWER)),
            bench.dump_answer(ANSWER),
            "a response with marks",
        )
    if bench.has("stream"):
        loaded = bench.fold_message(
            bench.decode([bench.encode(make_stream_events(_add_marks(ANSWER)))]),
            "a stream with marks",
        )
        require_equal(
            simplify_messages([loaded]),
            simplify_messages([ANSWER]),
            "what a stream with marks says",
        )


def _add_marks(message: Message) -> Message:
    """Returns the message with a mark before each part and one at the end."""
    mark = MarkPart("step", {"kit_ui": {"type": "step"}})
    return message.replace(
        content=[
            *[marked_piece for piece in message.content for marked_piece in (mark, piece)],
            mark,
        ]
    )


def _round_trip_result(
    bench: WireBench, result: ToolResultPart
) -> tuple[ToolResultPart, list[Message], list[Loss]]:
    """Returns a tool result dumped and loaded in a round with its call, the loaded messages, and
    the losses."""
    messages = [
        Message.user("Do."),
        Message.model(ToolCallPart("c", "f", {})),
        Message.user(result),
    ]
    loaded_messages, losses = bench.round_trip(messages)
    results = [part for message in loaded_messages for part in message.tool_results]
    require_equal(len(results), 1, f"the number of results after one of {result.result!r}")
    return results[0], loaded_messages, losses


def _list_parts(result: ToolResultPart) -> tuple[Any, ...]:
    """Returns the parts of a tool result, or none if it is a JSON value."""
    return cast("tuple[Any, ...]", result.result) if result.is_content else ()


def _holds_part(piece: Any, part: Any) -> bool:
    """True if `piece` is the part, or a text that contains its content: formats write media that
    they cannot hold as text."""
    if isinstance(part, ProviderPart):
        return isinstance(piece, ProviderPart) and piece.kind == part.kind
    if type(piece) is type(part):
        same_kind = not isinstance(part, DataPart) or piece.mime_type == part.mime_type
        if isinstance(part, TextPart):
            # Some formats join adjacent texts.
            return part.text in piece.text
        return same_kind and extract_content(piece) == extract_content(part)
    if isinstance(part, ThinkingPart) or not isinstance(piece, TextPart):
        return False
    text = read_media_text(part) if isinstance(part, DataPart) else str(extract_content(part))
    return text is not None and text in piece.text


def _describe_media_type(part: Any) -> str:
    """Returns ` of image/png` for media, and an empty text for other parts."""
    return f" of {part.mime_type}" if isinstance(part, DataPart | LinkPart) else ""
