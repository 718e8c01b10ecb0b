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
    "lower",
    "split",
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
_DEEP = 12


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


def split(messages: Sequence[Message]) -> SplitConversation:
    """Finds the user's last words in a conversation, and tells everything as text."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    spoken = [
        i for i, message in enumerate(messages) if message.role is Role.USER and _words_of(message)
    ]
    last = spoken[-1] if spoken else len(messages)
    since = messages[last:]
    return SplitConversation(
        before=tuple(_as_texts(messages[:last], calls)),
        prompt=_words_of(since[0]) if since else (),
        since=tuple(_as_texts(since, calls)),
        facts=_join_texts(piece for message in since for piece in _facts(message, calls)),
        rounds=sum(1 for message in since if message.tool_results),
        answered=frozenset(
            signature(call.name, call.arguments)
            for message in since
            for result in message.tool_results
            if (call := calls.get(result.id)) is not None
        ),
    )


def signature(name: str, arguments: JsonMap) -> tuple[str, bytes]:
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
    exchange: SplitConversation, tool: ToolSpec, schema: JsonMap, most: int
) -> tuple[Message, ...]:
    """What to call a tool with: two worked examples made from its schema, of two calls and of one,
    and the prompt."""
    first, *more = [_example(schema["items"], schema, i) for i in range(3)]
    examples = [
        message
        for values in (more if most > 1 else more[:1], [first])
        for message in (
            Message.user(" and ".join(_request(tool, value) for value in values)),
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


def _as_texts(messages: Iterable[Message], calls: Mapping[str, ToolCallPart]) -> Iterator[Message]:
    for message in messages:
        if message.tool_calls:
            text = ", ".join(
                f"{call.name}({_name_values(call.arguments)})" for call in message.tool_calls
            )
            others_said = [
                piece for piece in message.content if not isinstance(piece, ToolCallPart)
            ]
            yield message.replace(
                content=_join_texts([*others_said, "\n" if others_said else "", f"Calls: {text}"])
            )
        elif message.tool_results:
            text = "\n".join(_line(result, calls) for result in message.tool_results)
            spoken = _words_of(message)
            yield message.replace(
                content=_join_texts(
                    [f"Results:\n{text}", *_media(message), "\n" if spoken else "", *spoken]
                )
            )
        else:
            yield message


def _words_of(message: Message) -> tuple[Content, ...]:
    return tuple(piece for piece in message.content if not isinstance(piece, ToolResultPart))


def _media(message: Message) -> Iterator[Content]:
    for result in message.tool_results:
        if result.is_content:
            yield from (piece for piece in result.result if not isinstance(piece, TextPart))


def _line(result: ToolResultPart, calls: Mapping[str, ToolCallPart]) -> str:
    call = calls.get(result.id)
    arguments = f" {_flat(list(call.arguments.values()))}" if call and call.arguments else ""
    return f"- {result.name or (call.name if call else 'tool')}{arguments}: {_flat(_value(result))}"


def _facts(message: Message, calls: Mapping[str, ToolCallPart]) -> Iterator[Content | str]:
    for result in message.tool_results:
        call = calls.get(result.id)
        name = (
            (result.name or (call.name if call else "result"))
            .removeprefix("get_")
            .replace("_", " ")
        )
        arguments = (
            f" for {_flat(list(call.arguments.values()))}" if call and call.arguments else ""
        )
        yield f"The {name}{arguments} is {_flat(_value(result))}. "
    yield from _media(message)


def _value(result: ToolResultPart) -> Any:
    return (
        [piece.text for piece in result.result if isinstance(piece, TextPart)]
        if result.is_content
        else result.result
    )


def _flat(value: Any) -> str:
    """A JSON value in the plainest words: no quotes, no braces, which a small model would repeat or
    drop."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _name_values(cast("JsonMap", value))
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_flat, cast("Sequence[Any]", value)))
    return _json(value)


def _name_values(values: JsonMap) -> str:
    return ", ".join(f"{name}: {_flat(value)}" for name, value in values.items())


def _request(tool: ToolSpec, arguments: Any) -> str:
    what = tool.description.strip().partition("\n")[0].rstrip(".") or tool.name.replace("_", " ")
    return f"{what} ({_flat(arguments)})" if arguments else what


def _example(schema: Any, root: JsonMap, turn: int, depth: int = 0) -> Any:
    """A value that the schema takes, another one each turn; `None` where a schema that holds itself
    has no end."""
    if depth > _DEEP:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _example(root["$defs"][reference.rpartition("/")[2]], root, turn, depth + 1)
    if values := schema.get("enum"):
        return values[turn % len(values)]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _example(choices[0], root, turn, depth + 1)
    if "const" in schema:
        return schema["const"]
    json_type: Any = schema.get("type")
    if isinstance(json_type, list):
        json_type = cast("list[Any]", json_type)[0]
    if json_type == "object":
        needed = schema.get("required", ())
        properties = enumerate(cast("Json", schema.get("properties", {})).items())
        return {
            name: _example(property_schema, root, turn + i, depth + 1)
            for i, (name, property_schema) in properties
            if name in needed
        }
    if json_type == "array":
        return [_example(schema.get("items", {}), root, turn, depth + 1)]
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


_KEPT = frozenset({
    "type", "const", "enum", "required", "additionalProperties", "minItems", "maxItems", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format",
})  # fmt: skip
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def arguments_schema(schema: JsonMap, most: int) -> Json:
    """A tool's input schema → the schema of a list of one to `most` argument objects, with nothing
    but what it names."""
    definitions: Json = {}
    item = lower(schema, definitions)
    if item.get("type", "object") == "object" and not any(
        name in item for name in (*_MANY, "$ref")
    ):
        item = {
            "additionalProperties": False,
            **item,
            "type": "object",
            "properties": item.get("properties", {}),
        }
    whole: Json = {"type": "array", "minItems": 1, "maxItems": most, "items": item}
    return {**whole, "$defs": definitions} if definitions else whole


def lower(schema: JsonMap, definitions: Json) -> Json:
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
        lowered: Json = {key: value for key, value in node.items() if key in _KEPT}
        for key in _MANY:
            if isinstance(choices := node.get(key), list):
                lowered[key] = [walk(subschema) for subschema in cast("list[Any]", choices)]
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), Mapping):
                lowered[key] = walk(node[key])
        if isinstance(properties := node.get("properties"), Mapping):
            lowered["properties"] = {
                name: walk(subschema)
                for name, subschema in cast("JsonMap", properties).items()
                if subschema is not False
            }
        return lowered

    def refer(reference: str) -> Json:
        if reference not in names:
            target = _find(schema, reference)
            if target is None:
                return {}
            names[reference] = f"d{len(definitions)}"
            # taken before it is walked: it may refer to itself
            definitions[names[reference]] = {}
            definitions[names[reference]].update(walk(target))
        return {"$ref": f"#/$defs/{names[reference]}"}

    return walk(schema)


def _find(schema: JsonMap, reference: str) -> Any:
    """What a reference within the schema (`#`, `#/$defs/Name`) points to; `None`: nothing."""
    root, *path = reference.split("/")
    target: Any = schema if root == "#" else None
    for step in path:
        key = step.replace("~1", "/").replace("~0", "~")
        target = cast("JsonMap", target).get(key) if isinstance(target, Mapping) else None
    return target
