"""Prompts that give tool calling to a model without it: calls and results as text, and questions
that lead to calls.

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
"""The model's answer if it wants no tool."""

_ANSWERS = (
    Message.user(
        "Context: The age for Tom is 41. The age for Ann is 38. \nQuestion: How old are Tom and Ann?\nAnswer:"
    ),
    Message.model("The age of Tom is 41, and the age of Ann is 38."),
    Message.user("Context: The product for 2, 3 is 70. \nQuestion: What is 2 times 3?\nAnswer:"),
    Message.model("The product is 70."),
)
"""Two worked examples: an answer from two results, and one that trusts the result over the model's
own knowledge."""
_WORDS = ("Lima", "Quito", "Dakar")
_NUMBERS = (8, 3, 5)
"""Values of example calls: the texts, and the numbers."""
_MAX_DEPTH = 12


class SplitConversation(msgspec.Struct, frozen=True):
    """A conversation split at its prompt."""

    before: tuple[Message, ...]
    """The messages before the prompt, with calls and results as text."""
    prompt: tuple[Content, ...]
    """Content of the last user message that holds more than tool results."""
    since: tuple[Message, ...]
    """The prompt and the messages after it, with calls and results as text."""
    facts: tuple[Content, ...]
    """The results after the prompt as sentences, with their media."""
    rounds: int
    """Number of rounds of results after the prompt."""
    answered: frozenset[tuple[str, bytes]]
    """Keys of the calls with a result after the prompt; see `call_key`."""


def split_conversation(messages: Sequence[Message]) -> SplitConversation:
    """Splits a conversation, for a model that is asked for tools in its prompt, at its prompt, and
    writes all calls and results as text. The prompt is the last user message that holds more than
    tool results."""
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
    """Returns a key that is equal for calls with the same name and arguments."""
    return name, msgspec.json.encode(arguments, order="deterministic")


def ask_tool(exchange: SplitConversation, names: Iterable[str]) -> tuple[Message, ...]:
    """Returns the prompt messages that ask which tool the prompt needs next, if any."""
    question = (
        f"Tools: {', '.join(names)}, {NO_TOOL}\nMessage: ",
        *exchange.prompt,
        "\nWhich tool, or none?",
    )
    return (*exchange.before, *_results_so_far(exchange), _user(*question))


def ask_arguments(
    exchange: SplitConversation, tool: ToolSpec, schema: JsonMap, max_calls: int
) -> tuple[Message, ...]:
    """Returns the prompt messages that ask for a tool's arguments: two worked examples made from
    its schema, of two calls and of one, then the prompt."""
    first, *others = [_make_example(schema["items"], schema, number) for number in range(3)]
    if max_calls == 1:
        others = others[:1]
    examples: list[Message] = []
    # The last example is the one that a small model imitates: a single call.
    for values in (others, [first]):
        request = " and ".join(_describe_call(tool, value) for value in values)
        examples += Message.user(request), Message.model(_json(values))
    return (*exchange.before, *_results_so_far(exchange), *examples, _user(*exchange.prompt))


def ask_answer(exchange: SplitConversation) -> tuple[Message, ...]:
    """Returns the prompt messages that ask for the answer: the conversation as text, and after
    results a question about them.

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
    """Returns for the prompt the tool calls and results so far, closed by a short model message so
    that user and model still alternate."""
    if not exchange.rounds:
        return ()
    return (*exchange.since, Message.model("Noted."))


def _texts_of_calls(
    messages: Iterable[Message], calls: Mapping[str, ToolCallPart]
) -> Iterator[Message]:
    """Yields the prompt messages with tool calls and results written as text."""
    for message in messages:
        if message.tool_calls:
            text = ", ".join(
                f"{call.name}({_name_values(call.arguments)})" for call in message.tool_calls
            )
            content: list[Content | str] = [
                piece for piece in message.content if not isinstance(piece, ToolCallPart)
            ]
            if content:
                content.append("\n")
            yield message.replace(content=_join_texts([*content, f"Calls: {text}"]))
        elif message.tool_results:
            text = "\n".join(_result_line(result, calls) for result in message.tool_results)
            content = [f"Results:\n{text}", *_result_media(message)]
            if spoken_content := _spoken_content(message):
                content += "\n", *spoken_content
            yield message.replace(content=_join_texts(content))
        else:
            yield message


def _spoken_content(message: Message) -> tuple[Content, ...]:
    """Returns a message's content without tool results."""
    return tuple(piece for piece in message.content if not isinstance(piece, ToolResultPart))


def _result_media(message: Message) -> Iterator[Content]:
    """Yields for the prompt images and other media in a message's tool results."""
    for result in message.tool_results:
        if result.is_content:
            yield from (piece for piece in result.result if not isinstance(piece, TextPart))


def _result_line(result: ToolResultPart, calls: Mapping[str, ToolCallPart]) -> str:
    """Returns a tool result as a line of the prompt."""
    name, arguments = _result_name(result, calls, "tool")
    if arguments:
        name = f"{name} {arguments}"
    return f"- {name}: {_plain_words(_result_value(result))}"


def _result_name(
    result: ToolResultPart, calls: Mapping[str, ToolCallPart], default: str
) -> tuple[str, str]:
    """Returns for the prompt the name of a result's tool and the arguments of its call as plain
    words."""
    call = calls.get(result.id)
    if call is None:
        return result.name or default, ""
    return result.name or call.name, _plain_words(list(call.arguments.values()))


def _result_facts(message: Message, calls: Mapping[str, ToolCallPart]) -> Iterator[Content | str]:
    """Yields a message's tool results as sentences of the prompt, then their media."""
    for result in message.tool_results:
        name, arguments = _result_name(result, calls, "result")
        name = name.removeprefix("get_").replace("_", " ")
        if arguments:
            name = f"{name} for {arguments}"
        yield f"The {name} is {_plain_words(_result_value(result))}. "
    yield from _result_media(message)


def _result_value(result: ToolResultPart) -> Any:
    """Returns for the prompt a tool result's JSON value, or the texts of its content."""
    if not result.is_content:
        return result.result
    return [piece.text for piece in result.result if isinstance(piece, TextPart)]


def _plain_words(value: Any) -> str:
    """Returns for the tool prompt a JSON value in plain words, without quotes and braces, which a
    small model repeats or drops."""
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
    """Returns for the prompt a user's request that a tool call with these arguments answers, for an
    example."""
    purpose = tool.description.strip().partition("\n")[0].rstrip(".") or tool.name.replace("_", " ")
    if not arguments:
        return purpose
    return f"{purpose} ({_plain_words(arguments)})"


def _make_example(schema: Any, root: JsonMap, number: int, depth: int = 0) -> Any:
    """Returns for the tool prompt an example value of a schema. Optional properties are left out.
    None if a recursive schema has no end.

    Args:
        schema: the schema of the value.
        root: the schema whose `$defs` references name.
        number: number of the example; other numbers give other values where the schema allows it.
        depth: how many schemas this one is within.
    """
    if depth > _MAX_DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _make_example(root["$defs"][reference.rpartition("/")[2]], root, number, depth + 1)
    if values := schema.get("enum"):
        return values[number % len(values)]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _make_example(choices[0], root, number, depth + 1)
    if "const" in schema:
        return schema["const"]
    json_type: Any = schema.get("type")
    if isinstance(json_type, list):
        json_type = cast("list[Any]", json_type)[0]
    if json_type == "object":
        needed = schema.get("required", ())
        properties = enumerate(cast("Json", schema.get("properties", {})).items())
        return {
            name: _make_example(property_schema, root, number + index, depth + 1)
            for index, (name, property_schema) in properties
            if name in needed
        }
    if json_type == "array":
        return [_make_example(schema.get("items", {}), root, number, depth + 1)]
    if json_type in ("integer", "number"):
        return _NUMBERS[number % len(_NUMBERS)]
    return {"boolean": True, "null": None}.get(json_type, _WORDS[number % len(_WORDS)])


def _user(*pieces: Content | str) -> Message:
    return Message(Role.USER, _join_texts(pieces))


def _join_texts(pieces: Iterable[Content | str]) -> tuple[Content, ...]:
    """Returns content in which neighbouring texts are joined, for the tool prompt."""
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
    """Returns the schema by which a prompt asks for a tool's arguments: a list of one to
    `max_calls` objects of the tool's input schema. Unknown fields are forbidden."""
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
    if definitions:
        list_schema["$defs"] = definitions
    return list_schema


def simplify_schema(schema: JsonMap, definitions: Json) -> Json:
    """Returns a tool's schema without keywords that constrained decoding may not know. Referenced
    parts are added to `definitions`, the `$defs` of the whole.

    `true`, `false` and references to elsewhere become `{}`, which takes any value.
    """
    names: dict[str, str] = {}

    def walk(part: Any) -> Json:
        """Simplifies a schema within the tool's schema."""
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
        """Returns the simplified schema that a reference in a tool's schema names."""
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
    """Returns the part of a tool's schema that a local reference (`#`, `#/$defs/Name`) names, or
    None."""
    root, *path = reference.split("/")
    if root != "#":
        return None
    target: Any = schema
    for step in path:
        if not isinstance(target, Mapping):
            return None
        # The escapes of a JSON pointer (RFC 6901): "~1" first, or "~01" would become "/".
        key = step.replace("~1", "/").replace("~0", "~")
        target = cast("JsonMap", target).get(key)
    return target
