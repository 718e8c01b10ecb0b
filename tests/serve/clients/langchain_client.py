"""LangChain's chat models as clients; runs where those are installed. langchain_client.py URL KEY
KIND … → one JSON object a line."""

import json
import sys

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool

URL, KEY, *KINDS = sys.argv[1:]
KIND = ""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def chat(key=KEY):
    if KIND in ("openai", "responses"):
        from langchain_openai import ChatOpenAI

        responses = KIND == "responses"
        return ChatOpenAI(
            model="m",
            base_url=f"{URL}/v1",
            api_key=key,
            max_retries=0,
            stream_usage=True,
            use_responses_api=responses,
        )
    if KIND == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="m", base_url=URL, api_key=key, max_retries=0, max_tokens=64)
    if KIND == "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model="m", base_url=URL, api_key=key, max_retries=1)
    if KIND == "ollama":
        from langchain_ollama import ChatOllama

        return ChatOllama(
            model="m", base_url=URL, client_kwargs={"headers": {"authorization": f"Bearer {key}"}}
        )
    if KIND == "mistral":
        from langchain_mistralai import ChatMistralAI

        return ChatMistralAI(model="m", endpoint=f"{URL}/mistral/v1", api_key=key, max_retries=1)
    from langchain_cohere import ChatCohere

    return ChatCohere(model="m", base_url=URL, cohere_api_key=key)


@tool
def get_weather(location: str) -> str:
    """The weather somewhere."""
    return f"Sunny in {location}"


def text(message):
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)


def whole():
    answer = chat().invoke("Say hello.")
    return {"text": text(answer), "usage": bool((answer.usage_metadata or {}).get("total_tokens"))}


def stream():
    chunks = list(chat().stream("Say hello."))
    return {"text": "".join(text(chunk) for chunk in chunks)}


def tools():
    model = chat().bind_tools([get_weather])
    messages = [HumanMessage("Two places?")]
    answer = model.invoke(messages)
    messages.append(answer)
    for call in answer.tool_calls:
        messages.append(
            ToolMessage(
                get_weather.invoke(call["args"]), tool_call_id=call["id"], name=call["name"]
            )
        )
    last = model.invoke(messages)
    return {
        "calls": [[call["name"], call["args"]["location"]] for call in answer.tool_calls],
        "text": text(last),
    }


def tools_streamed():
    whole = None
    for chunk in chat().bind_tools([get_weather]).stream("Two places?"):
        whole = chunk if whole is None else whole + chunk
    return {"calls": [[call["name"], call["args"]["location"]] for call in whole.tool_calls]}


def image():
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return {"text": text(chat().invoke([HumanMessage([{"type": "text", "text": "See."}, url])]))}


def wrong_key():
    try:
        chat("another-wrong-key").invoke("x")
    except Exception as error:
        return {"failed": True, "secret": KEY in str(error)}
    return {"failed": False}


for KIND in KINDS:
    for check in (whole, stream, tools, tools_streamed, image, wrong_key):
        try:
            result = check()
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps({"kind": KIND, "check": check.__name__, **result}), flush=True)
