"""How tools are put to a model that knows none: calls and results as text, and the questions that
lead to calls.

Every wording here was measured with SmolLM2-135M. So small a model does what the last thing it read
shows, so each question stands alone at the end and is answered by constrained decoding. The schemas
of these answers hold the part of JSON Schema that constrained decoding is sure to take. What is
left out is looser, never tighter: the tool itself still checks its arguments by the whole schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec

__all__ = [
    "NO_TOOL",
    "SplitConversation",
    "arguments_schema",
    "ask_answer",
    "ask_arguments",
    "ask_tool",
    "simplify_schema",
    "split_conversation",
]

NO_TOOL = "none"
"""What the model answers where it wants no tool."""

_ANSWERS = (
    Message.user(
        "Context: The age for Tom is 41. The age for Ann is 38. \nQuestion: How old are Tom and Ann?\nAnswer:"
    ),
    Message.model("The age of Tom is 41, and the age of Ann is 38."),
    Message.user("Context: The product for 2, 3 is 70. \nQuestion: What is 2 times 3?\nAnswer:"),
    Message.model("The product is 70."),
)
"""Worked examples of answers: one of two results, and one that trusts the result more than what the
model knows."""
_WORDS = ("Lima", "Quito", "Dakar")
_NUMBERS = (8, 3, 5)
_MAX_DEPTH = 12


class SplitConversation(msgspec.Struct, frozen=True):
    """A conversation in two: what was said before, as text, and what is going on since the user
    last spoke."""

    before: tuple[Message, ...]
    """What was said before, as text."""
    prompt: tuple[Content, ...]
    """What the user said last."""
    since: tuple[Message, ...]
    """Calls and results since then, as text."""
    facts: tuple[Content, ...]
    """What the results since then say, as sentences, and the media that they hold."""
    rounds: int
    """Rounds of results since then."""
    answered: frozenset[tuple[str, bytes]]
    """The calls that they answer: name and arguments."""


def split_conversation(messages: Sequence[Message]) -> SplitConversation:
    """Finds the user's last words in a conversation, and tells everything as text."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    spoken_indexes = [
        i
        for i, message in enumerate(messages)
        if message.role is Role.USER and _spoken_content(message)
    ]
    last = spoken_indexes[-1] if spoken_indexes else len(messages)
    since = messages[last:]
    return SplitConversation(
        before=tuple(_texts_of_calls(messages[:last], calls)),
        prompt=_spoken_content(since[0]) if since else (),
        since=tuple(_texts_of_calls(since, calls)),
        facts=_join_texts(piece for message in since for piece in _result_facts(message, calls)),
        rounds=sum(1 for message in since if message.tool_results),
        answered=frozenset(
            call_key(call.name, call.arguments)
            for message in since
            for result in message.tool_results
            if (call := calls.get(result.id)) is not None
        ),
    )


def call_key(name: str, arguments: JsonMap) -> tuple[str, bytes]:
    """What makes two calls the same."""
    return name, msgspec.json.encode(arguments, order="deterministic")


def ask_tool(exchange: SplitConversation, names: Iterable[str]) -> tuple[Message, ...]:
    """Which of the tools the prompt needs next, if any."""
    question = (
        f"Tools: {', '.join(names)}, {NO_TOOL}\nMessage: ",
        *exchange.prompt,
        "\nWhich tool, or none?",
    )
    return (*exchange.before, *_results_so_far(exchange), _user(*question))


def ask_arguments(
    exchange: SplitConversation, tool: ToolSpec, schema: JsonMap, max_calls: int
) -> tuple[Message, ...]:
    """What to call a tool with: two worked examples made from its schema, of two calls and of one,
    and the prompt."""
    first, *more = [_make_example(schema["items"], schema, i) for i in range(3)]
    examples = [
        message
        for values in (more if max_calls > 1 else more[:1], [first])
        for message in (
            Message.user(" and ".join(_describe_call(tool, value) for value in values)),
            Message.model(_json(values)),
        )
    ]
    return (*exchange.before, *_results_so_far(exchange), *examples, _user(*exchange.prompt))


def ask_answer(exchange: SplitConversation) -> tuple[Message, ...]:
    """The answer itself: the conversation as text, and with results a question about what they say.

    Measured with random values in 46 results and pairs of results: 45 answers hold them; without
    the examples 34.
    """
    if not exchange.rounds:
        return (*exchange.before, *exchange.since)
    return (
        *exchange.before,
        *_ANSWERS,
        _user("Context: ", *exchange.facts, "\nQuestion: ", *exchange.prompt, "\nAnswer:"),
    )


def _results_so_far(exchange: SplitConversation) -> tuple[Message, ...]:
    """What the calls so far have brought, closed by a word of the model's, so that user and model
    still take turns."""
    return (*exchange.since, Message.model("Noted.")) if exchange.rounds else ()


def _texts_of_calls(
    messages: Iterable[Message], calls: Mapping[str, ToolCallPart]
) -> Iterator[Message]:
    for message in messages:
        if message.tool_calls:
            text = ", ".join(
                f"{call.name}({_name_values(call.arguments)})" for call in message.tool_calls
            )
            other_content = [
                piece for piece in message.content if not isinstance(piece, ToolCallPart)
            ]
            yield message.replace(
                content=_join_texts(
                    [*other_content, "\n" if other_content else "", f"Calls: {text}"]
                )
            )
        elif message.tool_results:
            text = "\n".join(_result_line(result, calls) for result in message.tool_results)
            spoken_content = _spoken_content(message)
            yield message.replace(
                content=_join_texts(
                    [
                        f"Results:\n{text}",
                        *_result_media(message),
                        "\n" if spoken_content else "",
                        *spoken_content,
                    ]
                )
            )
        else:
            yield message


def _spoken_content(message: Message) -> tuple[Content, ...]:
    return tuple(piece for piece in message.content if not isinstance(piece, ToolResultPart))


def _result_media(message: Message) -> Iterator[Content]:
    for result in message.tool_results:
        if result.is_content:
            yield from (piece for piece in result.result if not isinstance(piece, TextPart))


def _result_line(result: ToolResultPart, calls: Mapping[str, ToolCallPart]) -> str:
    call = calls.get(result.id)
    arguments = f" {_plain_words(list(call.arguments.values()))}" if call and call.arguments else ""
    return f"- {result.name or (call.name if call else 'tool')}{arguments}: {_plain_words(_result_value(result))}"


def _result_facts(message: Message, calls: Mapping[str, ToolCallPart]) -> Iterator[Content | str]:
    for result in message.tool_results:
        call = calls.get(result.id)
        name = (
            (result.name or (call.name if call else "result"))
            .removeprefix("get_")
            .replace("_", " ")
        )
        arguments = (
            f" for {_plain_words(list(call.arguments.values()))}" if call and call.arguments else ""
        )
        yield f"The {name}{arguments} is {_plain_words(_result_value(result))}. "
    yield from _result_media(message)


def _result_value(result: ToolResultPart) -> Any:
    return (
        [piece.text for piece in result.result if isinstance(piece, TextPart)]
        if result.is_content
        else result.result
    )


def _plain_words(value: Any) -> str:
    """A JSON value in the plainest words: no quotes, no braces, which a small model would repeat or
    drop."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _name_values(cast("JsonMap", value))
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain_words, cast("Sequence[Any]", value)))
    return _json(value)


def _name_values(values: JsonMap) -> str:
    return ", ".join(f"{name}: {_plain_words(value)}" for name, value in values.items())


def _describe_call(tool: ToolSpec, arguments: Any) -> str:
    purpose = tool.description.strip().partition("\n")[0].rstrip(".") or tool.name.replace("_", " ")
    return f"{purpose} ({_plain_words(arguments)})" if arguments else purpose


def _make_example(schema: Any, root: JsonMap, turn: int, depth: int = 0) -> Any:
    """A value that the schema takes, another one each turn; `None` where a schema that holds itself
    has no end."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _make_example(root["$defs"][reference.rpartition("/")[2]], root, turn, depth + 1)
    if values := schema.get("enum"):
        return values[turn % len(values)]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _make_example(choices[0], root, turn, depth + 1)
    if "const" in schema:
        return schema["const"]
    json_type: Any = schema.get("type")
    if isinstance(json_type, list):
        json_type = cast("list[Any]", json_type)[0]
    if json_type == "object":
        needed = schema.get("required", ())
        properties = enumerate(cast("Json", schema.get("properties", {})).items())
        return {
            name: _make_example(property_schema, root, turn + i, depth + 1)
            for i, (name, property_schema) in properties
            if name in needed
        }
    if json_type == "array":
        return [_make_example(schema.get("items", {}), root, turn, depth + 1)]
    if json_type in ("integer", "number"):
        return _NUMBERS[turn % 3]
    return {"boolean": True, "null": None}.get(json_type, _WORDS[turn % 3])


def _user(*pieces: Content | str) -> Message:
    return Message(Role.USER, _join_texts(pieces))


def _join_texts(pieces: Iterable[Content | str]) -> tuple[Content, ...]:
    """Content in which texts that follow each other are one."""
    content: list[Content] = []
    for piece in pieces:
        text = piece.text if isinstance(piece, TextPart) else piece
        if not isinstance(text, str):
            content.append(text)
        elif content and isinstance(last := content[-1], TextPart):
            content[-1] = TextPart(last.text + text)
        elif text:
            content.append(TextPart(text))
    return tuple(content)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# schemas for constrained decoding


_KEYWORDS = frozenset({
    "type", "const", "enum", "required", "additionalProperties", "minItems", "maxItems", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format",
})  # fmt: skip
_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems")


def arguments_schema(schema: JsonMap, max_calls: int) -> Json:
    """A tool's input schema → the schema of a list of one to `most` argument objects, with nothing
    but what it names."""
    definitions: Json = {}
    item = simplify_schema(schema, definitions)
    if item.get("type", "object") == "object" and not any(
        name in item for name in (*_LIST_KEYWORDS, "$ref")
    ):
        item = {
            "additionalProperties": False,
            **item,
            "type": "object",
            "properties": item.get("properties", {}),
        }
    list_schema: Json = {"type": "array", "minItems": 1, "maxItems": max_calls, "items": item}
    return {**list_schema, "$defs": definitions} if definitions else list_schema


def simplify_schema(schema: JsonMap, definitions: Json) -> Json:
    """A schema → one that may stand anywhere. What it refers to within itself goes into
    `definitions`, the `$defs` of the whole.

    `true`, `false` and references to elsewhere become `{}`, which takes any value.
    """
    names: dict[str, str] = {}

    def walk(part: Any) -> Json:
        if not isinstance(part, Mapping):
            return {}
        node = cast("JsonMap", part)
        if isinstance(reference := node.get("$ref"), str):
            return refer(reference)
        simple_schema: Json = {key: value for key, value in node.items() if key in _KEYWORDS}
        for key in _LIST_KEYWORDS:
            if isinstance(choices := node.get(key), list):
                simple_schema[key] = [walk(subschema) for subschema in cast("list[Any]", choices)]
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), Mapping):
                simple_schema[key] = walk(node[key])
        if isinstance(properties := node.get("properties"), Mapping):
            simple_schema["properties"] = {
                name: walk(subschema)
                for name, subschema in cast("JsonMap", properties).items()
                if subschema is not False
            }
        return simple_schema

    def refer(reference: str) -> Json:
        if reference not in names:
            target = _resolve_reference(schema, reference)
            if target is None:
                return {}
            names[reference] = f"d{len(definitions)}"
            # taken before it is walked: it may refer to itself
            definitions[names[reference]] = {}
            definitions[names[reference]].update(walk(target))
        return {"$ref": f"#/$defs/{names[reference]}"}

    return walk(schema)


def _resolve_reference(schema: JsonMap, reference: str) -> Any:
    """What a reference within the schema (`#`, `#/$defs/Name`) points to; `None`: nothing."""
    root, *path = reference.split("/")
    target: Any = schema if root == "#" else None
    for step in path:
        key = step.replace("~1", "/").replace("~0", "~")
        target = cast("JsonMap", target).get(key) if isinstance(target, Mapping) else None
    return target
