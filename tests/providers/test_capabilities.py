"""Capabilities: the records against recorded traffic, and the table in the documentation against
the records."""

import json
import re
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from pages.capabilities import RECORDED_MEDIA, TYPED, UNSPECIFIC, markdown

from dragoman import PartDelta, PartFinished, ToolCallPart, wires
from dragoman.capability import Capability
from dragoman.providers.capability_table import capability_table
from dragoman.providers.registry import Registry
from support.traffic import exchanges

FOLDERS = (
    "openai_chat",
    "openai_compatible",
    "openrouter",
    "together",
    "ollama_openai",
    "ollama_native",
    "cohere",
    "anthropic",
    "google",
    "google_interactions",
    "mistral",
    "openai_embeddings",
    "openai_responses",
)
VENDORS = {
    ("anthropic", "anthropic"): "anthropic",
    ("google", "google"): "google",
    ("google", "vertex"): "vertex",
    ("google_interactions", "google"): "google-interactions",
    ("mistral", "mistral"): "mistral",
    ("openai_chat", "openai"): "openai",
    ("openai_embeddings", "openai"): "openai",
    ("openai_embeddings", "llama.cpp"): "llamacpp",
    ("openai_embeddings", "azure"): "azure",
    ("openai_compatible", "llama.cpp"): "llamacpp",
    ("openai_compatible", "groq"): "groq",
    ("openai_compatible", "deepseek"): "deepseek",
    ("openai_compatible", "xai"): "xai",
    ("openai_compatible", "azure"): "azure",
    ("openai_compatible", "cerebras"): "cerebras",
    ("openai_compatible", "perplexity"): "perplexity",
    ("openai_embeddings", "perplexity"): "perplexity",
    ("openai_compatible", "sambanova"): "sambanova",
    ("openai_compatible", "vllm"): "vllm",
    ("openai_compatible", "huggingface"): "huggingface",
    ("together", "together-via-hf-router"): "huggingface",
    ("openai_compatible", "bedrock-mantle"): "bedrock-mantle",
    ("openai_responses", "bedrock-mantle"): "bedrock-responses",
    ("openai_responses", "openai"): "openai-responses",
    ("openai_responses", "azure"): "azure-responses",
    ("openrouter", "openrouter"): "openrouter",
    ("together", "together"): "together",
    ("ollama_openai", "ollama"): "ollama",
    ("ollama_native", "ollama"): "ollama",
    ("cohere", "cohere"): "cohere",
}
NOT_DECLARED = {
    "google": {
        "typed_output_with_tools"
    },  # by models since Gemini 3 only; two phases work with all
    "groq": {"typed_output"},  # never streamed, and by some models only
    "deepseek": {"forced_tools"},  # not while it thinks, which is its default
}
"""Seen in traffic, and not declared because it does not hold of the provider's usual models,
streamed."""
NOT_RECORDED = {
    "anthropic": {"media"},  # code that ran and wrote no file
    "openai": {"images", "speech", "transcription"},
    "google": {
        "media",
        "images",
        "speech",
        "transcription",
    },  # an image model that was asked for text
    "google-interactions": {
        "vision",
        "audio",
        "files",
        "typed_output",
        "models",
    },
    "vertex": {"embeddings", "forced_tools", "thinking", "media", "server_tools", "models"},
    "azure": {
        "images",
        "speech",
        "transcription",
        "typed_output_with_tools",
        "forced_tools",
        "vision",
        "models",
    },  # recorded in their plainest use
    "azure-responses": {
        "embeddings",
        "images",
        "speech",
        "transcription",
        "parallel_tools",
        "typed_output",
        "typed_output_with_tools",
        "forced_tools",
        "vision",
        "files",
        "models",
    },  # the same; it is OpenAI's own API
    "openai-responses": {
        "embeddings",
        "images",
        "speech",
        "transcription",
        "models",
    },  # the endpoint of openai
    "openrouter": {"models"},
    "together": {"embeddings", "images", "models"},
    "groq": {"transcription", "models"},
    "mistral": {"transcription"},
    "deepseek": {"models"},
    "ollama": {"models"},
    "cerebras": {"forced_tools", "models", "parallel_tools", "typed_output"},
    "perplexity": {"typed_output", "vision"},
    "sambanova": {
        "embeddings",
        "forced_tools",
        "models",
        "parallel_tools",
        "thinking",
        "tools",
        "typed_output",
        "vision",
    },
    "vllm": {
        "audio",
        "embeddings",
        "forced_tools",
        "models",
        "parallel_tools",
        "thinking",
        "tools",
        "typed_output",
        "vision",
    },
    "huggingface": {"thinking"},
    "bedrock-mantle": {
        "forced_tools",
        "parallel_tools",
        "thinking",
        "tools",
        "typed_output",
        "vision",
    },
    "bedrock-responses": {"forced_tools", "models", "parallel_tools", "vision"},
    "xai": {
        "images",
        "parallel_tools",
        "typed_output",
        "forced_tools",
        "vision",
        "models",
    },  # recorded without requests
}
"""Declared because the vendor documents it; no recording shows it."""


def shown(exchange):
    """The capabilities that a successful exchange shows."""
    request, response = exchange.request or {}, exchange.body.decode()
    messages = json.dumps(request.get("messages", ""))
    answers = _answers(response)
    calls = {call for answer in answers for call in _calls(answer)}
    form = (
        request.get("response_format")
        or request.get("output_format")
        or (request.get("output_config") or {}).get("format")
    )
    typed = isinstance(form, dict) and form.get("type") == "json_schema"
    choice = request.get("tool_choice")
    forced = choice in ("required", "any") or (
        isinstance(choice, dict) and choice.get("type") not in ("auto", "none")
    )
    return {
        capability
        for capability, is_shown in {
            "chat": exchange.endpoint in ("chat", "messages"),
            "embeddings": exchange.endpoint == "embed",
            "models": exchange.endpoint == "models",
            "tools": calls,
            "parallel_tools": len(calls) > 1,
            "typed_output": typed,
            "typed_output_with_tools": typed and request.get("tools"),
            "forced_tools": forced and calls,
            "vision": '"image_url"' in messages or '"type": "image"' in messages,
            "audio": '"input_audio"' in messages,
            "files": any(
                f'"type": "{kind}"' in messages
                for kind in ("file", "file_url", "document", "document_url")
            ),
            "thinking": any(_thinks(answer) for answer in answers),
            "server_tools": ('"server_tool_use"' in response and '"srvtoolu_' in response)
            or any(":" in str(tool.get("type")) for tool in request.get("tools") or ()),
        }.items()
        if is_shown
    }


def shown_by_google(exchange):
    """The same of Gemini's API, which has other words for all of it."""
    request, response = exchange.request or {}, exchange.body.decode()
    contents = json.dumps(request.get("contents", "")).replace(" ", "")
    config = request.get("generationConfig") or {}
    answers = _answers(response)
    said = [
        p
        for a in answers
        for c in a.get("candidates") or ()
        for p in c.get("content", {}).get("parts", ())
    ]
    calls = [part for part in said if part.get("functionCall", {}).get("name")]
    typed = config.keys() & {"responseSchema", "responseJsonSchema"}
    forced = ((request.get("toolConfig") or {}).get("functionCallingConfig") or {}).get(
        "mode"
    ) == "ANY"
    return {
        capability
        for capability, is_shown in {
            "chat": exchange.endpoint == "generate" and said,
            "embeddings": exchange.endpoint == "embed",
            "models": exchange.endpoint == "models",
            "tools": calls,
            "parallel_tools": len(calls) > 1,
            "typed_output": typed,
            "typed_output_with_tools": typed and request.get("tools"),
            "forced_tools": forced and calls,
            "vision": re.search(r'mime_?[tT]ype":"image/', contents),
            "audio": re.search(r'mime_?[tT]ype":"audio/', contents),
            "files": re.search(r'mime_?[tT]ype":"(application/pdf|text/|video/)', contents),
            "thinking": any(part.get("thought") for part in said),
            "server_tools": any(
                part.get("executableCode") or part.get("toolCall") for part in said
            ),
        }.items()
        if is_shown
    }


def shown_by_responses(exchange):
    """The same of the Responses API, whose items say what they are."""
    request, response = exchange.request or {}, exchange.body.decode()
    asked = json.dumps(request.get("input", ""))
    answers = [answer.get("response") or answer for answer in _answers(response)]
    items = [item for answer in answers[-1:] for item in answer.get("output") or ()]
    calls = [item for item in items if item["type"] == "function_call"]
    typed = ((request.get("text") or {}).get("format") or {}).get("type") == "json_schema"
    choice = request.get("tool_choice")
    forced = choice == "required" or (isinstance(choice, dict) and choice.get("mode") != "auto")
    return {
        capability
        for capability, is_shown in {
            "chat": exchange.endpoint == "responses",
            "tools": calls,
            "parallel_tools": len(calls) > 1,
            "typed_output": typed,
            "typed_output_with_tools": typed and request.get("tools"),
            "forced_tools": forced and calls,
            "vision": '"input_image"' in asked,
            "audio": '"input_audio"' in asked,
            "files": '"input_file"' in asked,
            "thinking": any(item["type"] == "reasoning" for item in items),
            "server_tools": any(
                item["type"] in ("web_search_call", "code_interpreter_call") for item in items
            ),
            "media": ways_shown(exchange),
        }.items()
        if is_shown
    }


def ways_shown(exchange):
    """The ways of making media by which an answer of the Responses API has a file."""
    body = exchange.body.decode()
    ways = {"image_generation"} if re.search(r'"result": ?"[^"]', body) else set()
    return ways | ({"code_interpreter"} if '"container_file_citation"' in body else set())


def shown_by_ollama(exchange):
    """The same of Ollama's own API. A schema beside tools is not counted: no recorded model called
    one then."""
    request, answers = (
        exchange.request or {},
        [json.loads(line) for line in exchange.body.splitlines()],
    )
    said = [answer.get("message") or {} for answer in answers]
    calls = [call for message in said for call in message.get("tool_calls") or ()]
    return {
        capability
        for capability, is_shown in {
            "chat": any(said),
            "embeddings": exchange.endpoint == "embed",
            "tools": calls,
            "parallel_tools": len(calls) > 1,
            "typed_output": isinstance(request.get("format"), dict),
            "vision": any(message.get("images") for message in request.get("messages") or ()),
            "thinking": any(message.get("thinking") for message in said),
        }.items()
        if is_shown
    }


def shown_by_cohere(exchange):
    """The same of Cohere's Chat API."""
    request, answers = exchange.request or {}, _answers(exchange.body.decode())
    said = [(answer.get("delta") or answer).get("message") or {} for answer in answers]
    calls = [
        call for message in said for call in _listed(message.get("tool_calls")) if call.get("id")
    ]
    blocks = [block for message in said for block in _listed(message.get("content"))]
    form = request.get("response_format") or {}
    typed = {"schema", "json_schema"} & form.keys()
    return {
        capability
        for capability, is_shown in {
            "chat": exchange.endpoint == "chat",
            "embeddings": exchange.endpoint == "embed",
            "models": exchange.endpoint == "models",
            "tools": calls,
            "parallel_tools": len(calls) > 1,
            "typed_output": typed,
            "typed_output_with_tools": typed and request.get("tools"),
            "forced_tools": request.get("tool_choice") == "REQUIRED" and calls,
            "vision": '"image_url"' in json.dumps(request.get("messages", "")),
            "thinking": any(block.get("thinking") for block in blocks),
        }.items()
        if is_shown
    }


def _listed(value):
    return value if isinstance(value, list) else [value] if value else []


def shown_by_interactions(exchange):
    """The same of Google's Interactions API."""
    request, body = exchange.request or {}, exchange.body.decode()
    steps = [
        step
        for answer in _answers(body)
        for step in _listed(answer.get("steps") or answer.get("step"))
    ]
    kinds = [step["type"] for step in steps]
    choice = (request.get("generation_config") or {}).get("tool_choice")
    return {
        capability
        for capability, is_shown in {
            "chat": kinds,
            "tools": "function_call" in kinds,
            "parallel_tools": kinds.count("function_call") > 1,
            "forced_tools": choice == "any" and "function_call" in kinds,
            "thinking": '"thought_summary"' in body,
            "server_tools": "google_search_call" in kinds,
        }.items()
        if is_shown
    }


LOOKS = {
    "google_interactions": shown_by_interactions,
    "cohere": shown_by_cohere,
    "google": shown_by_google,
    "ollama_native": shown_by_ollama,
    "openai_responses": shown_by_responses,
}


def _answers(body):
    texts = (
        [body]
        if body.lstrip().startswith("{")
        else [line[5:] for line in body.splitlines() if line.startswith("data:")]
    )
    return [
        json.loads(text)
        for text in texts
        if text.strip().startswith("{") and text.strip().endswith("}")
    ]


def _pieces(answer):
    for choice in answer.get("choices") or ():
        yield choice.get("delta") or choice.get("message") or {}
    yield from answer.get("content") or ()
    yield answer.get("content_block") or {}


def _calls(answer):
    for piece in _pieces(answer):
        if piece.get("type") == "tool_use":
            yield piece["id"]
        yield from (call["id"] for call in piece.get("tool_calls") or () if call.get("id"))


def _thinks(answer):
    return any(
        p.get("reasoning_content")
        or p.get("reasoning")
        or p.get("type") == "thinking"
        or "thinking" in str(_types(p))
        for p in _pieces(answer)
    )


def _types(piece):
    content = piece.get("content")
    return [chunk.get("type") for chunk in content] if isinstance(content, list) else []


@pytest.mark.slow
def test_decision_11_the_records_say_what_the_traffic_shows():
    recorded = {}
    for exchange in exchanges(*FOLDERS):
        provider = VENDORS.get((exchange.path.parent.name, exchange.vendor))
        if provider and exchange.status == 200:
            look = LOOKS.get(exchange.path.parent.name, shown)
            recorded.setdefault(provider, set()).update(look(exchange))
    assert set(recorded) == set(VENDORS.values())
    registry = Registry(plug_ins=lambda: ())
    for name, capabilities in recorded.items():
        declared = set(registry.get(name).capabilities)
        assert capabilities - declared == NOT_DECLARED.get(name, set()), name
        assert declared - capabilities == NOT_RECORDED.get(name, set()), name


def test_the_page_says_which_providers_are_recorded():
    """Issue R: each new provider is `recorded` or `typed, not recorded`."""
    names = {provider.name for provider in Registry(plug_ins=lambda: ()).providers()}
    assert names - set(VENDORS.values()) - UNSPECIFIC == TYPED


def test_seed_003_the_matrix_says_how_the_traffic_tells_of_calls():
    """Ids of calls given or minted, arguments in pieces or whole, response linking."""
    given, sizes, linked = {}, {}, set()
    for exchange in exchanges(*FOLDERS):
        folder = exchange.path.parent.name
        provider = VENDORS.get((folder, exchange.vendor))
        if (
            not provider
            or exchange.status != 200
            or exchange.endpoint in ("embed", "models")
            or folder == "ollama_openai"
        ):
            continue
        if (exchange.request or {}).get("previous_response_id"):
            linked.add(provider)
        wire = wires.get(Registry(plug_ins=lambda: ()).get(provider).wire)
        numbers = count()
        decoder = wire.decoder(new_id=lambda numbers=numbers: f"minted-{next(numbers)}")
        pieces = Counter()
        for event in [*decoder.feed(exchange.body), *decoder.close()]:
            if isinstance(event, PartDelta):
                pieces[event.message_id, event.index] += 1
            part = event.part if isinstance(event, PartFinished) else None
            if isinstance(part, ToolCallPart) and part.run_by != "provider":
                given.setdefault(provider, Counter())[not part.id.startswith("minted")] += 1
                if exchange.framing != "json" and part.arguments and part.state == "complete":
                    sizes.setdefault(provider, set()).add(
                        min(pieces[event.message_id, event.index], 2)
                    )
    providers = Registry(plug_ins=lambda: ()).providers()
    rows = {row.provider: row for row in capability_table(providers)}
    measured = {name for name, row in rows.items() if row.calls is not None}
    assert set(given) == measured - {*TYPED}
    for provider, seen in given.items():
        minted = seen[False] / seen.total()
        assert (rows[provider].calls.ids == "given or minted") == (minted > 0.05), (provider, seen)
    for provider, seen in sizes.items():
        assert (rows[provider].calls.arguments == "in pieces") == (2 in seen), (provider, seen)
    assert (
        {name for name, row in rows.items() if row.links}
        == {"openai-responses", "azure-responses", "bedrock-responses"}
        >= linked
    )
    assert linked == {"openai-responses"}


@pytest.mark.slow
def test_the_page_says_which_media_are_recorded():
    folder = "openai_responses"
    recorded = {
        (VENDORS[folder, exchange.vendor], way)
        for exchange in exchanges(folder)
        if (folder, exchange.vendor) in VENDORS
        for way in ways_shown(exchange)
    }
    assert recorded == RECORDED_MEDIA
    for exchange in exchanges("anthropic", "google"):
        answered = exchange.body.decode()
        assert '"code_execution_output"' not in answered
        assert not re.search(r'"mimeType": ?"image/', answered)


def test_the_documented_table_is_the_records_table():
    documented = Path(__file__).parents[2] / "docs" / "capabilities.md"
    assert documented.read_text("utf-8") == markdown(), "run: make pages"


@pytest.mark.parametrize("capability", Capability)
def test_rows_hold_exactly_the_records_capabilities(capability):
    providers = Registry(plug_ins=lambda: ()).providers()
    rows = {row.provider: row for row in capability_table(providers)}
    assert [p.name for p in providers if capability in p.capabilities] == [
        name for name, row in rows.items() if capability in row.capabilities
    ]
