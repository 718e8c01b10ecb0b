"""The official clients against their endpoints: plain, streamed, tools, pictures, typed answers,
lists, errors."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

pytestmark = pytest.mark.service

KEY = "one-secret-key"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 32).decode()
WEATHER = {
    "type": "object",
    "properties": {"location": {"type": "string"}},
    "required": ["location"],
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SECRETS = ("sk-upstream-secret", "up.example", KEY)


def no_secrets(error: BaseException) -> None:
    """What a client reads of an error holds nothing of ours, nor of the upstream's."""
    text = repr(error) + str(getattr(error, "body", "")) + str(getattr(error, "message", ""))
    assert not [
        secret
        for secret in SECRETS
        if secret in text.replace(KEY, "") or (secret != KEY and secret in text)
    ]


def test_openai_chat(url: str) -> None:
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert client.chat.completions.create(**ask).choices[0].message.content == "Hello."
    picture = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "text", "text": "What is it?"},
    ]
    seen = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": picture}]
    )  # type: ignore[list-item,misc]
    assert seen.choices[0].message.content == "Hello a picture."
    with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
        assert list(stream)
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "Hello."
    assert final.usage is not None
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
    first = client.chat.completions.create(**ask, tools=tools).choices[0]
    assert first.finish_reason == "tool_calls"
    calls = first.message.tool_calls or []
    assert [json.loads(call.function.arguments)["location"] for call in calls] == [
        "Oakland",
        "Rome",
    ]  # type: ignore[union-attr]
    history = [*ask["messages"], first.message.model_dump(exclude_none=True)]
    history += [
        {"role": "tool", "tool_call_id": call.id, "content": f"{at} degrees"}
        for at, call in enumerate(calls, 20)
    ]
    after = client.chat.completions.create(model="m", messages=history, tools=tools)
    assert after.choices[0].message.content == "Hello 20 degrees and 21 degrees."
    typed = client.chat.completions.create(
        **ask,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "p", "schema": PERSON, "strict": True},
        },
    )
    assert json.loads(typed.choices[0].message.content or "") == {"name": "Ada", "age": 36}
    assert client.models.list().data
    with pytest.raises(openai.RateLimitError) as busy:
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "too many"}]
        )
    assert busy.value.response.headers["retry-after"] == "7"
    no_secrets(busy.value)
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="m", messages=5)  # type: ignore[call-overload]
    with pytest.raises(openai.AuthenticationError) as wrong:
        client.with_options(api_key="another-key").chat.completions.create(**ask)
    no_secrets(wrong.value)


def test_anthropic(url: str) -> None:
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
    ask: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi."}]}
    assert client.messages.create(**ask).content[0].text == "Hello."  # type: ignore[union-attr]
    picture: Any = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PICTURE},
    }
    seen = client.messages.create(
        model="m",
        max_tokens=50,
        messages=[{"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}],
    )
    assert seen.content[0].text == "Hello a picture."  # type: ignore[union-attr]
    with client.messages.stream(**ask) as stream:
        assert "".join(stream.text_stream) == "Hello."
    tools: Any = [{"name": "get_weather", "input_schema": WEATHER}]
    first = client.messages.create(**ask, tools=tools)
    assert first.stop_reason == "tool_use"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input["location"] for call in calls] == ["Oakland", "Rome"]
    results: Any = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"{at} degrees"}
        for at, call in enumerate(calls, 20)
    ]
    history: Any = [
        *ask["messages"],
        {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]},
        {"role": "user", "content": results},
    ]
    after = client.messages.create(model="m", max_tokens=50, messages=history, tools=tools)
    assert after.content[0].text == "Hello 20 degrees and 21 degrees."  # type: ignore[union-attr]
    assert client.messages.count_tokens(model="m", messages=ask["messages"]).input_tokens > 0
    assert client.models.list().data
    with pytest.raises(anthropic.RateLimitError) as busy:
        client.messages.create(
            model="m", max_tokens=50, messages=[{"role": "user", "content": "too many"}]
        )
    no_secrets(busy.value)
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="another-key").messages.create(**ask)


def test_google(url: str) -> None:
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
    assert client.models.generate_content(model="m", contents="Hi.").text == "Hello."
    picture = types.Part.from_bytes(data=base64.b64decode(PICTURE), mime_type="image/png")
    assert (
        client.models.generate_content(model="m", contents=[picture, "What is it?"]).text
        == "Hello a picture."
    )
    assert (
        "".join(
            each.text or ""
            for each in client.models.generate_content_stream(model="m", contents="Hi.")
        )
        == "Hello."
    )
    declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    first = client.models.generate_content(model="m", contents="Hi.", config=config)
    calls = first.function_calls or []
    assert [(call.args or {})["location"] for call in calls] == ["Oakland", "Rome"]
    results = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response={"output": f"{at} degrees"}
            )
        )
        for at, call in enumerate(calls, 20)
    ]
    assert first.candidates is not None
    history: Any = [
        types.Content(role="user", parts=[types.Part(text="Hi.")]),
        first.candidates[0].content,
        types.Content(role="user", parts=results),
    ]
    after = client.models.generate_content(model="m", contents=history, config=config)
    assert after.text is not None
    assert "20 degrees" in after.text
    assert "21 degrees" in after.text
    typed = types.GenerateContentConfig(
        response_mime_type="application/json", response_json_schema=PERSON
    )
    assert json.loads(
        client.models.generate_content(model="m", contents="Hi.", config=typed).text or ""
    ) == {
        "name": "Ada",
        "age": 36,
    }
    assert (client.models.count_tokens(model="m", contents="Hi.").total_tokens or 0) > 0
    assert list(client.models.list())
    with pytest.raises(errors.ClientError) as busy:
        client.models.generate_content(model="m", contents="too many")
    assert busy.value.code == 429
    no_secrets(busy.value)
    other = genai.Client(api_key="another-key", http_options=types.HttpOptions(base_url=url))
    with pytest.raises(errors.ClientError) as wrong:
        other.models.generate_content(model="m", contents="Hi.")
    assert wrong.value.code in (400, 401, 403)


def test_google_interactions(url: str) -> None:
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
    asked: Any = {"model": "m", "input": "Hi."}
    whole = client.interactions.create(**asked)
    assert whole.status == "completed" and whole.output_text == "Hello."
    told = list(client.interactions.create(**asked, stream=True))
    assert told[0].event_type == "interaction.created"
    assert told[-1].event_type == "interaction.completed"
    texts = [
        each.delta.text
        for each in told
        if getattr(each, "delta", None) and each.delta.type == "text"
    ]
    assert "".join(texts) == "Hello."
    picture = [
        {"type": "image", "data": PICTURE, "mime_type": "image/png"},
        {"type": "text", "text": "What is it?"},
    ]
    seen: Any = client.interactions.create(model="m", input=picture)
    assert seen.output_text == "Hello a picture."
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": WEATHER}]
    first = client.interactions.create(**asked, tools=tools)
    calls = [step for step in first.steps or () if step.type == "function_call"]
    assert first.status == "requires_action"
    assert [call.arguments["location"] for call in calls] == ["Oakland", "Rome"]
    history: Any = [
        {"type": "user_input", "content": [{"type": "text", "text": "Hi."}]},
        *[step.model_dump(exclude_none=True) for step in first.steps or ()],
        *[
            {
                "type": "function_result",
                "call_id": call.id,
                "name": call.name,
                "result": f"{at} degrees",
            }
            for at, call in enumerate(calls, 20)
        ],
    ]
    last = client.interactions.create(model="m", input=history, tools=tools)
    assert last.status == "completed" and last.output_text
    other = genai.Client(api_key="another-key", http_options=types.HttpOptions(base_url=url))
    with pytest.raises(Exception, match="key"):
        other.interactions.create(**asked)


def test_ollama(url: str) -> None:
    import ollama

    client = ollama.Client(url, headers={"authorization": f"Bearer {KEY}"})
    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert client.chat(**ask).message.content == "Hello."
    seen = client.chat(
        model="m", messages=[{"role": "user", "content": "What is it?", "images": [PICTURE]}]
    )
    assert seen.message.content == "Hello a picture."
    assert (
        "".join(each.message.content or "" for each in client.chat(**ask, stream=True)) == "Hello."
    )
    assert client.generate(model="m", prompt="Hi.").response == "Hello."
    tools: Any = [
        {
            "type": "function",
            "function": {"name": "get_weather", "description": "", "parameters": WEATHER},
        }
    ]
    first = client.chat(**ask, tools=tools)
    calls = first.message.tool_calls or []
    assert [call.function.arguments["location"] for call in calls] == ["Oakland", "Rome"]
    history: Any = [
        *ask["messages"],
        first.message,
        *[
            {"role": "tool", "tool_name": "get_weather", "content": f"{at} degrees"}
            for at in (20, 21)
        ],
    ]
    after = client.chat(model="m", messages=history, tools=tools)
    assert after.message.content == "Hello 20 degrees and 21 degrees."
    assert json.loads(client.chat(**ask, format=PERSON).message.content or "") == {
        "name": "Ada",
        "age": 36,
    }
    assert client.list().models
    assert client.show("m").capabilities
    with pytest.raises(ollama.ResponseError) as busy:
        client.chat(model="m", messages=[{"role": "user", "content": "too many"}])
    assert busy.value.status_code == 429
    no_secrets(busy.value)
    with pytest.raises(ollama.ResponseError) as wrong:
        ollama.Client(url).chat(**ask)
    assert wrong.value.status_code == 401


def test_mistral(url: str) -> None:
    from mistralai.client import Mistral
    from mistralai.client.errors import SDKError

    client = Mistral(api_key=KEY, server_url=f"{url}/mistral")
    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert client.chat.complete(**ask).choices[0].message.content == "Hello."  # type: ignore[union-attr]
    with client.chat.stream(**ask) as stream:
        assert "".join(str(each.data.choices[0].delta.content or "") for each in stream) == "Hello."
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
    first: Any = client.chat.complete(**ask, tools=tools).choices[0]
    calls = first.message.tool_calls
    assert [json.loads(call.function.arguments)["location"] for call in calls] == [
        "Oakland",
        "Rome",
    ]
    history: Any = [
        *ask["messages"],
        first.message,
        *[
            {
                "role": "tool",
                "tool_call_id": call.id,
                "name": "get_weather",
                "content": f"{at} degrees",
            }
            for at, call in enumerate(calls, 20)
        ],
    ]
    after: Any = client.chat.complete(model="m", messages=history, tools=tools)
    assert after.choices[0].message.content == "Hello 20 degrees and 21 degrees."
    assert client.models.list().data or []
    with pytest.raises(SDKError) as busy:
        client.chat.complete(model="m", messages=[{"role": "user", "content": "too many"}])
    assert busy.value.status_code == 429
    no_secrets(busy.value)


def test_cohere(url: str) -> None:
    import cohere

    client = cohere.ClientV2(KEY, base_url=f"{url}/cohere", max_retries=0)
    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert client.chat(**ask).message.content[0].text == "Hello."  # type: ignore[index,union-attr]
    pieces: list[str] = []
    for event in client.chat_stream(**ask):
        if event.type == "content-delta":
            pieces.append(event.delta.message.content.text)  # type: ignore[union-attr,arg-type]
    assert "".join(pieces) == "Hello."
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
    first: Any = client.chat(**ask, tools=tools)
    calls = first.message.tool_calls
    assert [json.loads(call.function.arguments)["location"] for call in calls] == [
        "Oakland",
        "Rome",
    ]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"{at} degrees"}
        for at, call in enumerate(calls, 20)
    ]
    after: Any = client.chat(
        model="m", messages=[*ask["messages"], first.message, *results], tools=tools
    )
    assert after.message.content[0].text == "Hello 20 degrees and 21 degrees."
    with pytest.raises(cohere.TooManyRequestsError) as busy:
        client.chat(model="m", messages=[{"role": "user", "content": "too many"}])
    no_secrets(busy.value)
    with pytest.raises(cohere.UnauthorizedError):
        cohere.ClientV2("another-key", base_url=f"{url}/cohere", max_retries=0).chat(**ask)
