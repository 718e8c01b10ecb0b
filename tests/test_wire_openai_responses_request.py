"""The openai_responses wire's requests: rules D-134…D-136, D-143r…D-145r, settings, tools, schemas, and linking."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.codec.digest import chain
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.fold import fold
from dragoman.message import FinishReason, Message, Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import openai_responses as wire

OPENAI = Origin("openai-responses", "https://api.openai.com/v1", "gpt-5")
HI = Message.user("Hi")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def dump(*messages, losses=None, target=None, quirks=None, **fields):
    request = ModelRequest("gpt-5", messages or (HI,), **fields)
    return wire.dump_request(request, losses=losses, target=target, quirks=quirks)


def reads_back(**body):
    """A body that survives, and what it says."""
    body = {"model": "m", "input": "x", **body}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    return request


def test_the_plainest_request():
    assert dump() == {"model": "gpt-5", "input": [{"role": "user", "content": "Hi"}]}


def test_settings():
    settings = Settings(temperature=0.5, top_p=0.9, max_tokens=9, parallel_tool_calls=False, tool_choice="required")
    told = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 9,
        "parallel_tool_calls": False,
        "tool_choice": "required",
    }
    assert dump(settings=settings) == {**dump(), **told}
    assert reads_back(**told).settings == settings


def test_settings_that_the_api_does_not_have_are_told():
    losses = []
    settings = Settings(top_k=1, presence_penalty=1, frequency_penalty=1, stop=("x",), seed=1)
    assert dump(settings=settings, losses=losses) == dump()
    assert [loss.what for loss in losses] == ["top_k", "presence_penalty", "frequency_penalty", "stop", "seed"]


@pytest.mark.parametrize(
    ("setting", "effort"),
    [
        ("off", "none"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        (1024, "low"),
        (4096, "medium"),
        (9000, "high"),
    ],
)
def test_d143r_reasoning_asks_for_a_detailed_summary(setting, effort):
    summary = {} if effort == "none" else {"summary": "detailed"}
    assert dump(settings=Settings(reasoning=setting))["reasoning"] == {"effort": effort, **summary}
    told = dump(settings=Settings(reasoning=setting), quirks=wire.Quirks(summary=None))
    assert told["reasoning"] == {"effort": effort}


def test_d143r_a_summary_that_is_set_is_kept():
    told = dump(settings=Settings(reasoning="low"), options={"reasoning": {"summary": "concise"}})
    assert told["reasoning"] == {"effort": "low", "summary": "concise"}


@pytest.mark.parametrize(
    ("reasoning", "neutral"),
    [
        ({"effort": "low"}, "low"),
        ({"effort": "none"}, "off"),
        ({"effort": "high", "summary": "auto"}, "high"),
        ({"effort": "high", "summary": "detailed"}, "high"),
        ({"effort": "medium", "summary": None, "context": "all_turns"}, "medium"),
        ({"effort": "xhigh"}, None),
        ({"effort": None, "summary": "auto"}, None),
        ({"context": "auto"}, None),
        (None, None),
    ],
)
def test_reasoning_is_read_and_written_as_it_was(reasoning, neutral):
    request = reads_back(reasoning=reasoning)
    assert request.settings.reasoning == neutral
    assert not request.options


@pytest.mark.parametrize(
    "body",
    [
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "name": "f"}},
        {"tool_choice": {"type": "web_search"}},
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        {"tool_choice": None, "tools": None, "temperature": None, "stream": None, "instructions": None},
        {"tools": [], "instructions": "", "max_output_tokens": "9"},
        {"stream": False},
        {"stream": True},
        {"store": False},
        {"store": False, "include": ["reasoning.encrypted_content"]},
        {"store": None, "previous_response_id": None, "truncation": "auto", "metadata": {"a": "b"}, "background": True},
        {"text": {"verbosity": "low"}},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"text": {"format": {"type": "json_object"}}},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "high"}},
        {
            "text": {
                "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True, "description": "d"}
            }
        },
        {"input": ""},
        {"input": []},
        {"input": None, "prompt": {"id": "p"}},
        {"model": None},
    ],
    ids=repr,
)
def test_fields_survive(body):
    reads_back(**body)


def test_a_request_without_input_goes_on_from_what_it_names():
    body = {"model": "m", "previous_response_id": "resp_1"}
    assert wire.dump_request(wire.load_request(body)) == body
    with pytest.raises(HistoryError):
        wire.load_request({"model": "m"})


def test_options_have_the_last_word_and_are_added_to():
    told = dump(output_schema=SCHEMA, options={"text": {"verbosity": "low"}, "model": "other", "x": 1})
    assert told["text"]["verbosity"] == "low" and told["text"]["format"]["type"] == "json_schema"
    assert (told["model"], told["x"]) == ("other", 1)


def test_tools_are_flat_and_not_strict_unless_they_say_so():
    strict = ToolSpec("g", "does", SCHEMA, {"openai_responses": {"strict": True}})
    assert dump(tools=[ToolSpec("f"), strict])["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "g", "description": "does", "parameters": SCHEMA, "strict": True},
    ]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": None},
        {"type": "function", "name": "f g", "description": "", "parameters": {}, "strict": True, "defer_loading": True},
        {"type": "function", "name": "f", "parameters": None},
        {"type": "function", "name": "f"},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "custom", "name": "sh", "format": {"type": "text"}},
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "file_search", "vector_store_ids": ["v"]},
    ],
)
def test_tools_survive(tool):
    reads_back(tools=[tool])


def test_what_is_no_tool_is_an_error():
    with pytest.raises(HistoryError):
        wire.load_request({"input": "x", "tools": ["f"]})


def test_tool_names_that_the_api_does_not_take_are_mapped_wherever_they_stand():
    call = Message.model(ToolCallPart("1", "my tool"))
    told = dump(HI, call, tools=[ToolSpec("my tool")], settings=Settings(tool_choice="my tool"))
    name = told["tools"][0]["name"]
    assert name != "my tool" and told["input"][1]["name"] == name
    assert told["tool_choice"] == {"type": "function", "name": name}


def test_server_tools_have_the_names_of_here():
    tools = [ServerTool("web_search", {"filters": {}}), ServerTool("code_execution")]
    assert dump(tools=tools)["tools"] == [
        {"type": "web_search", "filters": {}},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]


def test_d144r_file_search_without_stores_is_left_out():
    losses = []
    assert "tools" not in dump(tools=[ServerTool("file_search")], losses=losses)
    assert [loss.what for loss in losses] == ["file_search"]


GOLDEN = [
    (
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "format": "date"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        True,
    ),
    (
        {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}}}},
        {
            "type": "object",
            "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
            "required": ["n"],
            "additionalProperties": False,
            "$defs": {
                "N": {
                    "type": "object",
                    "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
                    "required": ["n"],
                    "additionalProperties": False,
                }
            },
        },
        True,
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        False,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent", "strict"), GOLDEN)
def test_d145r_schemas_are_lowered_to_the_strict_form_where_they_have_one(schema, sent, strict):
    assert dump(output_schema=schema)["text"]["format"] == {
        "type": "json_schema",
        "name": "dartantic_output",
        "schema": sent,
        "strict": strict,
    }


def test_any_object_is_json_mode():
    assert dump(output_schema={"type": "object"})["text"] == {"format": {"type": "json_object"}}
    assert reads_back(text={"format": {"type": "json_object"}}).output_schema == {"type": "object"}


def test_a_schema_that_is_taken_away_leaves_nothing_of_its_format():
    request = reads_back(text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "low"})
    assert wire.dump_request(request.replace(output_schema=None))["text"] == {"verbosity": "low"}


def test_encrypted_reasoning_is_asked_for_where_nothing_is_stored():
    assert dump(options={"store": False})["include"] == ["reasoning.encrypted_content"]
    assert "include" not in dump(options={"store": True}) and "include" not in dump()
    assert dump(options={"store": False, "include": []})["include"] == []
    assert "include" not in dump(options={"store": False}, quirks=wire.Quirks(encrypted=False))


def test_the_path_and_d136_nothing_to_send():
    http = wire.dump_http(ModelRequest("m", (HI,), stream=True))
    assert (http.path, http.body["stream"]) == ("/responses", True)
    with pytest.raises(InvalidRequestError, match="No new input provided"):
        wire.dump_http(ModelRequest("m", (Message.system("be"),)))
    assert wire.dump_http(ModelRequest("m", options={"previous_response_id": "resp_1"})).body["input"] == []


# linking


def answer(before, id_="resp_1", text="Hello", **fields):
    """What the provider answered to a conversation, as `ChatModel` hands it on."""
    origin = msgspec.structs.replace(OPENAI, prefix=chain(before)[-1])
    item = {"type": "message", "id": f"msg_{id_}", "role": "assistant", "status": "completed"}
    output = [{**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    body = {"id": id_, "object": "response", "status": "completed", "model": "gpt-5-x", "output": output, **fields}
    (message,) = fold(wire.load_response(body, origin=origin))
    return Message.from_json(message.to_json())


SYSTEM = Message.system("be")
FIRST = [SYSTEM, HI, answer([SYSTEM, HI])]
MORE = Message.user("more")


def linked(*messages, target=OPENAI, **fields):
    told = dump(*messages, target=target, **fields)
    return told.get("previous_response_id"), [item.get("content", item.get("output")) for item in told["input"]]


def test_d135_only_what_follows_the_newest_response_is_sent_and_the_instructions_again():
    told = dump(*FIRST, MORE, target=OPENAI)
    assert told == {
        "model": "gpt-5",
        "instructions": "be",
        "previous_response_id": "resp_1",
        "input": [{"role": "user", "content": "more"}],
    }


def test_without_a_target_nothing_is_linked():
    assert linked(*FIRST, MORE, target=None)[0] is None


def test_all_that_follows_is_sent():
    assert linked(*FIRST, MORE, Message.user("and this")) == ("resp_1", ["more", "and this"])


def test_the_newest_of_several_is_taken():
    second = [*FIRST, MORE]
    history = [*second, answer(second, "resp_2"), Message.user("again")]
    assert linked(*history) == ("resp_2", ["again"])


def test_what_others_said_in_between_is_sent():
    """Back from another provider, the conversation goes on from the last response that is stored here."""
    other = Message.model("Bonjour").replace(origin=Origin("google", prefix=chain([*FIRST, MORE])[-1]))
    assert linked(*FIRST, MORE, other, Message.user("again")) == ("resp_1", ["more", "Bonjour", "again"])


def test_results_of_tools_are_what_follows_a_call():
    output = [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}]
    history = [HI, answer([HI], output=output), Message.user(ToolResultPart("call_1", "f", "42"))]
    assert linked(*history) == ("resp_1", ["42"])


@pytest.mark.parametrize("store", [None, True])
def test_d134_store_counts_as_true_where_it_is_null(store):
    assert linked(*FIRST, MORE, options={"store": store}) == ("resp_1", ["more"])


def test_without_a_store_everything_is_sent():
    everything = (None, ["Hi", "Hello", "more"])
    assert linked(*FIRST, MORE, options={"store": False}) == everything
    unstored = [SYSTEM, HI, answer([SYSTEM, HI], store=False)]
    assert linked(*unstored, MORE)[0] is None
    assert linked(*FIRST, MORE, quirks=wire.Quirks(links=False)) == everything


def edited(message, text):
    return message.replace(content=(TextPart(text, message.content[0].native),))


@pytest.mark.parametrize(
    "history",
    [
        [SYSTEM, Message.user("Hi!"), FIRST[2], MORE],
        [Message.system("be kind"), HI, FIRST[2], MORE],
        [HI, FIRST[2], MORE],
        [SYSTEM, HI, edited(FIRST[2], "Hello?"), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, provider="azure-responses")), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, endpoint="https://x")), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, prefix=None)), MORE],
        [SYSTEM, HI, FIRST[2].replace(finish_reason=FinishReason.error), MORE],
        [SYSTEM, HI, FIRST[2]],
    ],
)  # fmt: skip
def test_everything_is_sent_when_anything_before_is_not_as_it_was(history):
    told = dump(*history, target=OPENAI)
    assert "previous_response_id" not in told
    assert len(told["input"]) == len(history) - (history[0].role == "system")


def test_an_older_response_serves_when_the_newest_was_edited():
    second = [*FIRST, MORE]
    newest = edited(answer(second, "resp_2", "fine"), "changed")
    id_, items = linked(*second, newest, Message.user("again"))
    assert (id_, items[0], items[1][0]["text"], items[2]) == ("resp_1", "more", "changed", "again")


@pytest.mark.parametrize("metadata", [{"_responses_session": {"response_id": "resp_9"}}, {"response_id": "resp_9"}])
def test_d134_and_seed_003_histories_that_carry_the_session_in_their_metadata(metadata):
    imported = Message.model("Hello").replace(metadata=metadata)
    assert linked(HI, imported, MORE) == ("resp_9", ["more"])


@pytest.mark.parametrize(
    "metadata", [{"response_id": "chatcmpl-9"}, {"_responses_session": "resp_9"}, {"response_id": 9}]
)
def test_other_metadata_is_no_session(metadata):
    assert linked(HI, Message.model("Hello").replace(metadata=metadata), MORE)[0] is None


@pytest.mark.parametrize(
    "options", [{"previous_response_id": "resp_x"}, {"previous_response_id": None}, {"conversation": "conv_1"}]
)
def test_who_links_himself_is_left_alone(options):
    told = dump(*FIRST, MORE, target=OPENAI, options=options)
    assert {key: told[key] for key in options} == options
    assert len(told["input"]) == 3


def test_when_the_provider_has_forgotten_its_items_have_no_ids():
    """`previous_response_id: null` is what the fallback says: nothing that was stored can be named any more."""
    told = dump(*FIRST, MORE, target=OPENAI, options={"previous_response_id": None})
    assert told["input"][1] == {"role": "assistant", "content": "Hello"}


def test_append_only_a_linked_conversation_is_sent_once():
    """What the linked requests send, one after the other, is the conversation without what the model said itself."""
    history, sent = [SYSTEM], []
    for turn in range(4):
        history.append(Message.user(f"turn {turn}"))
        _, items = linked(*history)
        sent += items
        history.append(answer(list(history), f"resp_{turn}"))
    assert sent == [f"turn {turn}" for turn in range(4)]
