"""The conformance kit can fail: for each check a wire or a provider that is broken so that this
check says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Capability,
    Message,
    PartDelta,
    PartFinished,
    PartStarted,
    Provider,
    Role,
    TextPart,
    ThinkingPart,
    Tool,
    ToolCallPart,
    ToolResultPart,
    compact,
    fold,
    providers,
    testing,
    unfold,
    wires,
)
from dragoman.codec.dump_with_history import DumpRules, dump_with_history
from dragoman.codec.serving import ErrorResponse, Route
from dragoman.errors import InvalidRequestError, ProviderError
from dragoman.event import Event, MessageDropped, MessageFinished, RunError
from dragoman.message import DataPart, FilePart, FinishReason, LinkPart, MarkPart
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.testing import scripted_answer
from dragoman.testing.provider import faults as kit_faults
from dragoman.testing.provider import record as kit_record
from dragoman.transport import Recorder
from dragoman.wires.chat.messages import dump_conversation, prepare_conversation
from dragoman.wires.openai_chat import embeddings as EMBEDDINGS
from dragoman.wires.openai_chat.dialect import WIRE as DIALECT

replace = msgspec.structs.replace


class Broken:
    """A wire like another one, but for some of its operations."""

    def __init__(self, like: str, **operations: Any) -> None:
        self._like = wires.get(like)
        self.name = like
        vars(self).update(operations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._like, name)


class Wrapped:
    """A decoder whose events are changed, or held back, on their way out."""

    def __init__(
        self, decoder: Any, edit: Callable[[Event], Event | None], held: bool = False
    ) -> None:
        self.decoder, self.edit, self.held, self.waiting = decoder, edit, held, []

    def feed(self, data: bytes) -> list[Event]:
        events = self.decoder.feed(data)
        if self.held:
            self.waiting += events
            return []
        return told(events, self.edit)

    def close(self) -> list[Event]:
        return told(compact([*self.waiting, *self.decoder.close()]), self.edit)


def told(events: Iterable[Event], edit: Callable[[Event], Event | None]) -> list[Event]:
    return [changed for event in events if (changed := edit(event)) is not None]


def reads(
    edit: Callable[[Event], Event | None], like: str = "openai_chat", held: bool = False
) -> Broken:
    """A wire that changes the events of what it reads."""
    real = wires.get(like)
    return Broken(
        like,
        decoder=lambda **how: Wrapped(real.decoder(**how), edit, held),
        load_response=lambda body, **how: told(real.load_response(body, **how), edit),
    )


def says(edit: Callable[[Message], Message], like: str = "openai_chat") -> Broken:
    """A wire that changes the answers that it writes."""
    real = wires.get(like)

    def dump_response(events: Iterable[Event], **how: Any) -> Any:
        return real.dump_response(unfold([edit(message) for message in fold(events)]), **how)

    return Broken(like, dump_response=dump_response)


def sends(edit: Callable[[Any], Any], like: str = "openai_chat") -> Broken:
    """A wire that changes the requests that it writes."""
    real = wires.get(like)
    return Broken(
        like,
        dump_http=lambda request, **how: real.dump_http(edit(request), **how),
        dump_request=lambda request, **how: real.dump_request(edit(request), **how),
    )


def dumps(edit: Callable[[Message], Message], like: str = "openai_chat") -> Broken:
    """A wire that changes the messages that it writes."""
    real = wires.get(like)
    return Broken(
        like,
        dump_messages=lambda messages, **how: real.dump_messages(
            [edit(message) for message in messages], **how
        ),
    )


def loads(edit: Callable[[Message], Message], like: str = "openai_chat") -> Broken:
    """A wire that changes the messages that it reads."""
    real = wires.get(like)
    return Broken(
        like,
        load_messages=lambda payload, **how: list(map(edit, real.load_messages(payload, **how))),
    )


def refuses(load_error: Callable[..., Any], like: str = "openai_chat") -> Broken:
    return Broken(like, load_error=load_error)


REAL = wires.get("openai_chat")


def without(kind: type[Any]) -> Callable[[Message], Message]:
    return lambda message: message.replace(
        content=[part for part in message.content if not isinstance(part, kind)]
    )


def each(kind: type[Any], **changes: Any) -> Callable[[Message], Message]:
    return lambda message: message.replace(
        content=[
            replace(part, **changes) if isinstance(part, kind) else part for part in message.content
        ]
    )


def marks_as_texts(message: Message) -> Message:
    content = [
        TextPart(part.kind) if isinstance(part, MarkPart) else part for part in message.content
    ]
    return message.replace(content=content)


def within(edit: Callable[[Message], Message]) -> Callable[[Any], Any]:
    """A change of messages as a change of a request."""
    return lambda request: request.replace(messages=[edit(message) for message in request.messages])


def silent(event: Event) -> Event | None:
    """Loses text: what opens, adds to and closes a text."""
    if isinstance(event, PartDelta):
        return None
    part = getattr(event, "part", None)
    return None if isinstance(part, TextPart) else event


def thoughtless(event: Event) -> Event | None:
    """Tells thinking as text."""
    part = getattr(event, "part", None)
    if isinstance(part, ThinkingPart) and isinstance(event, PartStarted):
        return replace(event, part=TextPart("?"))
    return replace(event, part=TextPart(part.text)) if isinstance(part, ThinkingPart) else event


def finished(**changes: Any) -> Callable[[Event], Event]:
    return lambda event: replace(event, **changes) if isinstance(event, MessageFinished) else event


def of_calls(**changes: Any) -> Callable[[Event], Event]:
    def edit(event: Event) -> Event:
        if isinstance(event, PartStarted | PartFinished) and isinstance(event.part, ToolCallPart):
            return replace(event, part=replace(event.part, **changes))
        return event

    return edit


def is_clients(part: Any) -> bool:
    return isinstance(part, ToolCallPart) and part.run_by == "client"


def unretracted(events: Iterable[Event], **how: Any) -> Any:
    return REAL.dump_response(
        [event for event in events if not isinstance(event, MessageDropped)], **how
    )


def no_errors(event: Event) -> Event | None:
    return None if isinstance(event, RunError) else event


def to_stop(event: Event) -> Event:
    cut = isinstance(event, MessageFinished) and event.finish_reason is FinishReason.length
    return replace(event, finish_reason=FinishReason.stop) if cut else event


class Bytewise:
    """Reads each piece of bytes as text by itself."""

    def __init__(self, decoder: Any) -> None:
        self.decoder, self.close = decoder, decoder.close

    def feed(self, data: bytes) -> list[Event]:
        return self.decoder.feed(data.decode(errors="replace").encode())


class Raising:
    """Raises for what it cannot read."""

    def __init__(self, decoder: Any, wrong: bytes) -> None:
        self.decoder, self.close, self.wrong = decoder, decoder.close, wrong

    def feed(self, data: bytes) -> list[Event]:
        if self.wrong in data:
            raise ValueError("what is this?")
        return self.decoder.feed(data)


class Merging:
    """An encoder that takes all deltas for those of one call."""

    def __init__(self, encoder: Any) -> None:
        self.encoder, self.close = encoder, encoder.close

    def feed(self, event: Event) -> bytes:
        return self.encoder.feed(replace(event, index=0) if isinstance(event, PartDelta) else event)


class Losing(Merging):
    """An encoder that loses the second part of each message."""

    def feed(self, event: Event) -> bytes:
        return b"" if getattr(event, "index", 0) == 1 else self.encoder.feed(event)


def marked(messages: Any, **how: Any) -> Any:
    payload = REAL.dump_messages(messages, **how)
    return [*payload[:-1], {**payload[-1], "cache": True}]


def numbered(
    request: Any, *, target: Any = None, quirks: Any = None, losses: Any = None, history: Any = None
) -> Any:
    """Each message has a number, which a segment of a conversation does not know of."""
    losses = [] if losses is None else losses
    way = DumpRules[Any](
        lambda messages, losses, tools: prepare_conversation(
            DIALECT, messages, target, quirks, losses, tools
        ),
        lambda out: [{**one, "number": n} for n, one in enumerate(dump_conversation(out))],
    )
    return HttpRequest(
        "/chat",
        body={"messages": dump_with_history(history, way, request.messages, losses, ()).payload},
    )


def with_ids(messages: Any, **how: Any) -> Any:
    return [
        {**one, "id": m.id}
        for one, m in zip(REAL.dump_messages(messages, **how), messages, strict=False)
    ]


def raised(error: Exception) -> Any:
    raise error


def strict_messages(payload: Any, **how: Any) -> Any:
    return (
        REAL.load_messages(payload, **how)
        if isinstance(payload, list)
        else raised(KeyError("messages"))
    )


def strict_body(body: Any, **how: Any) -> Any:
    return REAL.load_request(body, **how) if body else raised(KeyError("messages"))


def others_own(payload: Any, **how: Any) -> list[Message]:
    loaded = wires.get("openai_chat").load_messages(payload, **how)
    return [
        message.replace(native=message.native and {"mistral": message.native}) for message in loaded
    ]


def trusting_messages(payload: Any, **how: Any) -> Any:
    return REAL.load_messages([raw for raw in payload if raw["role"]], **how)


def trusting_response(body: Any, **how: Any) -> Any:
    told = msgspec.json.decode(body) if isinstance(body, bytes) else body
    return REAL.load_response({**told, "choices": [*told["choices"]]}, **how)


def one_class(status: int, headers: Any, body: bytes) -> Any:
    return ProviderError(REAL.load_error(status, headers, body).message, status=status, body=body)


def by_body_alone(status: int, headers: Any, body: bytes) -> Any:
    if b"error" in body:
        return REAL.load_error(status, headers, body)
    return InvalidRequestError("Wrong.", status=status, body=body)


def hasty(status: int, headers: Any, body: bytes) -> Any:
    msgspec.json.decode(body)
    return REAL.load_error(status, headers, body)


def impatient(status: int, headers: Any, body: bytes) -> Any:
    return REAL.load_error(status, {}, body)


def patient(error: Any) -> Any:
    return ErrorResponse(429, {}, REAL.dump_error(error).body)


def unproblematic(payload: Any, problems: Any = None, **how: Any) -> Any:
    return REAL.load_messages(payload, **how)


def trusting_votes(message: Any) -> int:
    return 2 if message["role"] == "user" else 1


def trusting_envelope(request: Any, **how: Any) -> Any:
    return REAL.envelope(request.replace(), **how)


def slashless(request: Any, **how: Any) -> Any:
    http = REAL.dump_http(request, **how)
    return replace(http, path=http.path.removeprefix("/"))


WIRES: dict[str, tuple[Any, str]] = {
    "operations_are_complete": (
        Broken("openai_chat", encoder=None),
        r"stream it has \['decoder'\] and lacks \['encoder'\]",
    ),
    "conversations_return": (dumps(without(TextPart)), "message 0 must be"),
    "parts_return_or_are_reported": (
        dumps(without(DataPart)),
        "a DataPart of image/png in a user's message",
    ),
    "results_return_or_are_reported": (
        dumps(each(ToolResultPart, result="lost")),
        "a result must be 'text' and is 'lost'|a result must be",
    ),
    "calls_and_results_stay_paired": (
        loads(each(ToolResultPart, id="a")),
        "the ids that the results answer to",
    ),
    "conversations_are_append_only": (
        Broken("openai_chat", dump_messages=marked),
        "the beginning of the longer",
    ),
    "memory_changes_nothing": (
        Broken("openai_chat", dump_http=numbered),
        "the body of a request of",
    ),
    "payloads_return_unchanged": (
        loads(each(TextPart, text="?")),
        "the payload after a load",
    ),
    "private_fields_are_not_sent": (
        Broken("openai_chat", dump_messages=with_ids),
        "LEAKED-BY-THE-WIRE",
    ),
    "native_fields_have_the_wires_name": (
        Broken("openai_chat", load_messages=others_own),
        r"what is its own stands in `native` under \['mistral'\]",
    ),
    "signatures_return_only_to_their_origin": (
        Broken(
            "anthropic",
            dump_messages=lambda m, target=None, **how: wires.get("anthropic").dump_messages(
                m, **how
            ),
        ),
        "the signature is sent to another provider",
    ),
    "bad_payloads_are_refused": (
        Broken("openai_chat", load_messages=strict_messages),
        "KeyError .* is raised for null",
    ),
    "requests_return": (sends(lambda request: request.replace(model="other")), "the model must be"),
    "tools_return": (
        sends(lambda request: request.replace(tools=request.tools[::-1])),
        "the tools must be",
    ),
    "settings_return_or_are_reported": (
        sends(lambda request: request.replace(settings=replace(request.settings, seed=None))),
        "seed=7 comes back as None",
    ),
    "schemas_return_or_are_reported": (
        sends(lambda request: request.replace(output_schema=None)),
        "output schema is lost",
    ),
    "options_pass_untouched": (
        sends(lambda request: request.replace(options={})),
        "an unknown option in the body",
    ),
    "http_requests_are_complete": (
        Broken("openai_chat", dump_http=slashless),
        "begin with a slash",
    ),
    "bad_bodies_are_refused": (Broken("openai_chat", load_request=strict_body), "KeyError"),
    "responses_return": (says(without(ThinkingPart)), "the answer must be"),
    "streams_return": (
        Broken("openai_chat", encoder=lambda **how: Losing(REAL.encoder(**how))),
        "the answer must be",
    ),
    "chunking_changes_nothing": (
        Broken("openai_chat", decoder=lambda **how: Bytewise(REAL.decoder(**how))),
        "what comes in pieces of 1 bytes",
    ),
    "text_arrives_before_the_end": (
        reads(lambda event: event, held=True),
        "half of the stream gives 0 deltas",
    ),
    "arguments_in_pieces_are_complete": (
        Broken("openai_chat", encoder=lambda **how: Merging(REAL.encoder(**how))),
        "the calls that were streamed interleaved",
    ),
    "cut_streams_keep_what_came": (
        reads(no_errors),
        "the complete answer of a stream that was cut",
    ),
    "errors_in_streams_are_events": (
        reads(
            lambda event: (
                RunError(ProviderError(event.error.message))
                if isinstance(event, RunError)
                else event
            )
        ),
        "an OverloadedError in a stream comes back as ProviderError",
    ),
    "garbage_raises_nothing": (
        Broken("openai_chat", decoder=lambda **how: Raising(REAL.decoder(**how), b"\xff")),
        "ValueError .* is raised",
    ),
    "whole_answers_are_read_as_streams": (
        Broken("openai_chat", decoder=lambda **how: Raising(REAL.decoder(**how), b'{"id":"r1"')),
        "what is this",
    ),
    "runs_are_one_answer": (
        says(
            lambda message: message.replace(
                content=[part for part in message.content if not is_clients(part)]
            )
        ),
        "the calls in a whole run must be",
    ),
    "retractions_leave_nothing": (
        Broken("openai_chat", dump_response=unretracted),
        "a response with a retracted message must be",
    ),
    "finish_reasons_survive": (reads(to_stop), "the finish reason must be <FinishReason.length"),
    "usage_survives_and_adds_up": (
        reads(finished(usage=None)),
        "how often the usage of a whole response",
    ),
    "ids_are_minted_and_distinct": (
        reads(of_calls(id="same")),
        r"the ids of two whole calls are \['same', 'same'\]",
    ),
    "answers_know_their_origin": (
        Broken("openai_chat", decoder=lambda origin=None, **how: REAL.decoder(**how)),
        "a streamed answer has no origin|`provider` of the origin of a streamed",
    ),
    "errors_return_by_class": (refuses(one_class), "status 401 must be 'AuthenticationError'"),
    "statuses_tell_the_class": (
        refuses(by_body_alone),
        "401 with the body .* must be AuthenticationError",
    ),
    "retry_after_is_read": (refuses(impatient), "`retry_after` must be 7.0 and is None"),
    "recordings_of_answers_are_read": (
        Broken("openai_chat", decoder=lambda **how: Raising(REAL.decoder(**how), b"Hell")),
        "ValueError .* is raised for 0001.json",
    ),
    "recordings_of_requests_return": (
        sends(lambda request: request.replace(tools=())),
        "the body of the request in 0001.json",
    ),
    "marks_change_nothing": (dumps(marks_as_texts), "a system's message with marks must be"),
    "problems_name_unreadable_messages": (
        Broken("openai_chat", load_messages=unproblematic),
        "HistoryError",
    ),
    "votes_recognize_the_wires_messages": (
        Broken("openai_chat", votes=trusting_votes),
        "(TypeError|KeyError) .* is raised for the votes of",
    ),
    "retry_after_is_written": (
        Broken("openai_chat", dump_error=patient),
        "the header `retry-after` must be '7' and is None",
    ),
    "envelopes_suit_their_encoders": (
        Broken("openai_chat", envelope=trusting_envelope),
        "AttributeError .* is raised for the envelope of no request",
    ),
    "routes_are_complete": (
        Broken("openai_chat", routes=(Route("POST", "chat/completions", "chat"),)),
        "does not begin at the root",
    ),
    "requests_go_to_a_route": (
        Broken("openai_chat", routes=(Route("POST", "/v2/talk", "chat"),)),
        "requests go to '/chat/completions', which ends none of the routes",
    ),
    "pings_say_nothing": (
        Broken("openai_chat", ping=b"data: ping\n\n"),
        "not JSON|must be one message",
    ),
    "load_error_raises_nothing": (refuses(hasty), "DecodeError|UnicodeDecodeError"),
    "mutations_of_requests_are_read_or_refused": (
        Broken("openai_chat", load_messages=trusting_messages),
        "(KeyError|TypeError) .* is raised for this messages: ",
    ),
    "mutations_of_answers_raise_nothing": (
        Broken("openai_chat", load_response=trusting_response),
        "(KeyError|TypeError|DecodeError) .* is raised for this response: ",
    ),
}
"""Name of a check → a wire that it must refuse, and what it must say of it."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one exchange that the real wire wrote."""
    folder = tmp_path_factory.mktemp("recordings")
    scripted = testing.ScriptedServer(REAL, lambda _: Message.model("Hello."))
    tools = [Tool("look", "Looks.", input_schema={"type": "object", "properties": {}})]
    Agent(
        "openai",
        transport=Recorder(scripted, folder),
        api_key="k",
        tools=tools,
        base_url="http://a/v1",
    ).send_sync("Hi.")
    return folder


@pytest.mark.parametrize("name", WIRES)
def test_a_broken_wire_is_told_so(name: str, recordings: Path) -> None:
    wire, words = WIRES[name]
    check = next(check for check in testing.WIRE_CHECKS if check.name == name)
    with pytest.raises(testing.CheckFailed, match=words) as caught:
        check(wire, recordings=recordings)
    assert str(caught.value).startswith(f"wire {wire.name}, {name}: ")
    assert "\nThe rule: " in str(caught.value)
    assert "\nLook at: " in str(caught.value)


def test_a_route_without_its_function_is_told() -> None:
    wire = Broken("openai_chat", dump_model=None)
    check = next(check for check in testing.WIRE_CHECKS if check.name == "routes_are_complete")
    with pytest.raises(testing.CheckFailed, match="needs dump_model, which is not there"):
        check(wire)


Patch = Callable[[pytest.MonkeyPatch], None]


def speaks(wire: Broken, **record: Any) -> tuple[Broken, dict[str, Any], Patch | None]:
    return wire, record, None


def has(patch: Patch | None = None, **record: Any) -> tuple[Broken, dict[str, Any], Patch | None]:
    return Broken("openai_chat"), record, patch


def shared() -> Broken:
    """One decoder for all answers."""
    decoders: list[Any] = []

    def decoder(**how: Any) -> Any:
        decoders.append(REAL.decoder(**how))
        return decoders[0] if len(decoders) % 8 else decoders.pop()

    return Broken("openai_chat", decoder=decoder)


def loop_bound() -> Broken:
    """A wire that works in the event loop that it first saw."""
    loops: list[Any] = []

    def decoder(**how: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return (
            REAL.decoder(**how)
            if loops[0] is loops[-1]
            else raised(InvalidRequestError("another event loop"))
        )

    return Broken("openai_chat", decoder=decoder)


def no_media(request: Any) -> Any:
    odd = any(
        isinstance(part, FilePart | LinkPart)
        for message in request.messages
        for part in message.content
    )
    return raised(NotImplementedError("no such media")) if odd else request


def noted_at_the_end(request: Any) -> Any:
    *before, last = request.messages
    return request.replace(messages=[*before, last.replace(content=[*last.content, TextPart("!")])])


def renamed(request: Any) -> Any:
    return request.replace(tools=[replace(tool, name="tool") for tool in request.tools])


def second_results_lost(request: Any) -> Any:
    seen: list[Any] = []

    def edit(message: Message) -> Message:
        seen.extend(message.tool_results)
        return each(ToolResultPart, result="lost")(message) if len(seen) > 1 else message

    return within(edit)(request)


def first_alone(request: Any) -> Any:
    return request.replace(messages=request.messages[:1])


def not_system(request: Any) -> Any:
    return request.replace(
        messages=[message for message in request.messages if message.role is not Role.SYSTEM]
    )


def settings(**changes: Any) -> Callable[[Any], Any]:
    return lambda request: request.replace(settings=replace(request.settings, **changes))


def one_call(event: Event) -> Event | None:
    return None if getattr(event, "index", 0) > 0 else event


def ascii_only(message: Message) -> Message:
    return message.replace(
        content=[
            TextPart(part.text.encode("ascii", "replace").decode())
            if isinstance(part, TextPart)
            else part
            for part in message.content
        ]
    )


def shortened(message: Message) -> Message:
    return message.replace(
        content=[
            TextPart(part.text[:10_000]) if isinstance(part, TextPart) else part
            for part in message.content
        ]
    )


def wordy(event: Event) -> Event:
    """Takes every end for one that the token limit made."""
    return finished(finish_reason=FinishReason.length)(event)


def never_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def close(self: object) -> None: ...

    monkeypatch.setattr(scripted_answer.ScriptedResponse, "close", close)


def no_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit_faults, "Retry", lambda transport, **_: transport)


def found_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit_record, "find_key", lambda *_, **__: "key")


def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.model import access

    real = access.request_headers
    monkeypatch.setattr(
        access, "request_headers", lambda p, headers, **how: real(p, **{**how, "api_key": "k"})
    )


def embeds(**operations: Any) -> Broken:
    """A wire whose embeddings do some things otherwise."""
    real = {name: getattr(EMBEDDINGS, name) for name in EMBEDDINGS.__all__}
    return Broken("openai_chat", embeddings=SimpleNamespace(**{**real, **operations}))


def vectors(edit: Callable[[list[Any]], list[Any]]) -> Callable[..., Any]:
    """A reading of answers that changes their vectors."""

    def load_response(body: Any) -> Any:
        result = EMBEDDINGS.load_response(body)
        return replace(result, embeddings=edit(result.embeddings))

    return load_response


def silent_on(**lost: Any) -> Callable[..., Any]:
    """A writing of requests that leaves something out."""
    return lambda request, **how: EMBEDDINGS.dump_http(replace(request, **lost), **how)


def mute(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.model import embeddings_model

    monkeypatch.setattr(embeddings_model, "_unsupported_message", lambda _: "no")


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.model import embeddings_model

    async def embed(self: Any, texts: Any, purpose: Any, **_: Any) -> Any:
        return await self._send(EmbeddingsRequest(self.name, tuple(texts), purpose))

    monkeypatch.setattr(embeddings_model, "_check_result", lambda result, _: result)
    monkeypatch.setattr(embeddings_model.EmbeddingsModel, "_embed", embed)


PROVIDERS: dict[str, tuple[tuple[Broken, dict[str, Any], Patch | None], str]] = {
    "records_are_complete": (
        has(base_url="https://acme.invalid/v1/"),
        "`base_url` ends with a slash",
    ),
    "keys_go_into_their_header": (
        has(key_kinds={"kit-": ("x-other", "")}),
        "the header authorization must be",
    ),
    "missing_keys_are_named": (has(found_anyway), "the key that is found where there is none"),
    "keys_are_found_in_order": (has(found_anyway), "the key that is used must be 'given'"),
    "callers_headers_win": (has(deaf), "the headers must be"),
    "base_urls_are_found": (has(base_url="https://acme.invalid/v1/"), "the base URL must be"),
    "lists_models": (has(models_path=None), "does not list its models"),
    "answers": (speaks(reads(silent)), "the answer is empty"),
    "answers_without_a_stream": (
        speaks(sends(lambda request: request.replace(stream=True))),
        "whether a stream was asked",
    ),
    "streams_text": (speaks(reads(lambda event: event, held=True)), "the text came in one piece"),
    "unicode_arrives": (speaks(sends(within(ascii_only))), "the prompt did not arrive as it was"),
    "system_prompts_arrive": (speaks(sends(not_system)), "the system messages that arrived"),
    "conversations_continue": (
        speaks(sends(within(each(TextPart, text="?")))),
        "the first message of the second request",
    ),
    "conversations_of_other_providers_continue": (
        speaks(sends(within(each(ToolResultPart, id="x")))),
        "the ids of results and calls",
    ),
    "settings_arrive": (speaks(sends(settings(max_tokens=None))), "the token limit that arrived"),
    "options_arrive": (
        speaks(sends(lambda request: request.replace(options={}))),
        "the option that arrived",
    ),
    "requests_are_append_only": (
        speaks(sends(noted_at_the_end)),
        "the beginning of `messages` in the next request",
    ),
    "signatures_go_back_in_a_round": (
        speaks(sends(within(without(ThinkingPart)))),
        "the signature does not go back",
    ),
    "usage_is_reported_once": (
        speaks(reads(finished(usage=None))),
        "how often the usage is reported must be 1 and is 0",
    ),
    "stops_at_the_limit": (
        speaks(reads(to_stop)),
        "the finish reason must be <FinishReason.length",
    ),
    "stops_at_stop_sequences": (speaks(sends(settings(stop=None))), "the stop sequence is lost"),
    "thinks": (speaks(reads(thoughtless)), "no thinking is read"),
    "images_arrive": (speaks(sends(within(without(DataPart)))), "the media that arrived"),
    "audio_arrives": (speaks(sends(within(without(DataPart)))), "the media that arrived"),
    "long_prompts_arrive": (
        speaks(sends(within(shortened))),
        "the length of the prompt that arrived",
    ),
    "empty_answers_are_answers": (
        speaks(reads(wordy)),
        "the output and the finish reason of nothing",
    ),
    "recursive_types_are_filled": (speaks(reads(silent)), "TypedOutputError"),
    "files_arrive": (speaks(sends(within(without(DataPart)))), "the media that arrived"),
    "media_without_capability_are_harmless": (speaks(sends(no_media)), "no such media"),
    "answers_concurrently": (speaks(shared()), "was raised"),
    "tools_are_called": (
        speaks(sends(within(each(ToolResultPart, result="lost")))),
        "the result that arrived",
    ),
    "tools_are_called_in_parallel": (
        speaks(reads(one_call)),
        r"the cities that the tool was asked for",
    ),
    "tools_are_called_round_after_round": (
        speaks(sends(second_results_lost)),
        "the newest result that arrived",
    ),
    "tool_errors_reach_the_model": (
        speaks(sends(within(each(ToolResultPart, result="fine")))),
        "what arrived of the failure",
    ),
    "calls_of_unknown_tools_fail": (
        speaks(reads(of_calls(run_by="provider"))),
        "whether the result is an error",
    ),
    "tools_without_arguments_are_called": (
        speaks(reads(of_calls(arguments={"a": 1}, raw=None))),
        r"the calls are \[ToolCallPart",
    ),
    "same_calls_stay_apart": (speaks(reads(of_calls(id="same"))), "the ids of two calls are"),
    "odd_tool_names_come_back": (speaks(sends(renamed)), "the cities that the tool was asked for"),
    "tool_choices_arrive": (
        speaks(sends(settings(tool_choice=None))),
        "the tool choice 'required' arrived as None",
    ),
    "types_are_filled": (
        speaks(sends(lambda request: request.replace(output_schema=None))),
        "the schema did not arrive",
    ),
    "nested_types_are_filled": (speaks(reads(silent)), "TypedOutputError"),
    "lists_and_numbers_are_typed": (speaks(reads(silent)), "TypedOutputError"),
    "typed_output_comes_after_tools": (
        speaks(reads(of_calls(run_by="provider"))),
        "No JSON output found",
    ),
    "typed_output_is_repaired_once": (
        speaks(sends(first_alone)),
        "the model is not told what was wrong",
    ),
    "typed_output_is_streamed": (speaks(reads(silent)), "No JSON output found"),
    "refusals_have_their_class": (speaks(refuses(one_class)), "must be 'AuthenticationError'"),
    "refusals_without_a_body_have_their_class": (
        speaks(refuses(by_body_alone)),
        "must be 'AuthenticationError'",
    ),
    "rate_limits_have_retry_after": (
        speaks(refuses(impatient)),
        "`retry_after` of the error must be 7.0",
    ),
    "retries_lead_to_the_answer": (has(no_retry), "RateLimitError was raised"),
    "cut_answers_keep_what_came": (speaks(reads(no_errors)), "taken for a whole one"),
    "corrupt_answers_are_errors": (
        speaks(Broken("openai_chat", decoder=lambda **how: Raising(REAL.decoder(**how), b"{]"))),
        "ValueError was raised",
    ),
    "unexpected_bodies_are_errors": (
        speaks(reads(no_errors)),
        "the last event of a run that failed is RunFinished",
    ),
    "errors_in_answers_are_raised": (
        speaks(reads(no_errors)),
        "the last event of a run that failed is RunFinished",
    ),
    "cancellation_closes_connections": (
        has(never_closed),
        "the number of answers left open after a timeout",
    ),
    "event_loops_may_differ": (speaks(loop_bound()), "another event loop"),
    "embeds_queries": (
        speaks(embeds(load_response=vectors(lambda _: [[0.5] * 8]))),
        "not the one that the server sent",
    ),
    "embeds_documents": (
        speaks(embeds(load_response=vectors(lambda all_: [*reversed(all_)]))),
        "is not the one that",
    ),
    "embeddings_come_in_order": (
        speaks(embeds(load_response=vectors(lambda all_: [*reversed(all_)]))),
        "is another's",
    ),
    "embeddings_of_no_texts_send_nothing": (
        has(eager),
        "InvalidRequestError was raised|of vectors and of requests",
    ),
    "embeds_with_dimensions": (
        speaks(embeds(dump_http=silent_on(dimensions=None))),
        "the length that arrived",
    ),
    "embeddings_errors_have_their_class": (speaks(refuses(one_class)), "ProviderError was raised"),
    "providers_without_embeddings_say_so": (
        has(capabilities=frozenset({Capability.chat, Capability.tools}), patch=mute),
        "names no provider",
    ),
    "wrong_keys_are_refused": (speaks(refuses(one_class)), "a wrong key is ProviderError"),
    "unknown_models_are_refused": (speaks(refuses(one_class)), "an unknown model is ProviderError"),
}
"""Name of a check → what is wrong with the provider (its wire, its record, or what dragoman does),
and what it must say of it."""


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_broken_provider_is_told_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (wire, record, patch), words = PROVIDERS[name]
    wire.name = "openai_chat_broken"
    monkeypatch.setattr(wires, "_REGISTERED", {wire.name: wire})
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    openai = providers.get("openai")
    own = {"capabilities": openai.capabilities | {Capability.thinking}, **record}
    provider: Provider = replace(openai, name="broken", aliases=(), wire=wire.name, **own)
    if patch is not None:
        patch(monkeypatch)
    check = next(check for check in testing.PROVIDER_CHECKS if check.name == name)
    with pytest.raises(testing.CheckFailed, match=words) as caught:
        check(provider)
    assert str(caught.value).startswith(f"broken, {name}: ")
    assert "\nThe rule: " in str(caught.value)


def test_there_is_a_mutant_for_each_check() -> None:
    assert set(WIRES) == {check.name for check in testing.WIRE_CHECKS}
    assert set(PROVIDERS) == {check.name for check in testing.PROVIDER_CHECKS}


@pytest.mark.slow
def test_the_wire_that_the_mutants_are_made_of_passes() -> None:
    for check in testing.wire_checks(Broken("openai_chat")):
        check()
