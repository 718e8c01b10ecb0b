"""Listing a provider's models: rule D-80, against recorded answers and the documented shapes."""

import asyncio
import json

import pytest

from dragoman import providers, wires
from dragoman.errors import AuthenticationError, DecodeError, SettingsError
from dragoman.model.access import Access
from dragoman.model.model_list import find_kinds, list_models, load_models, next_page
from dragoman.providers.provider import Provider
from support.traffic import exchanges


class Stub:
    """A transport that answers from a list, in small reads, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.closed = 0

    async def send(self, request):
        self.asked.append(request)
        status, body = self.answers.pop(0)
        return StubResponse(
            self, status, body if isinstance(body, bytes) else json.dumps(body).encode()
        )

    async def close(self):
        pass


class StubResponse:
    def __init__(self, stub, status, body):
        self.stub, self.status, self.body, self.headers = (
            stub,
            status,
            body,
            {"content-type": "application/json"},
        )

    async def read(self):
        data, self.body = self.body[:1000], self.body[1000:]
        return data

    async def close(self):
        self.stub.closed += 1


def models_of(name, *answers, **kwargs):
    stub = Stub(*answers)
    found = asyncio.run(
        list_models(Access(providers.get(name), stub, api_key="k", environment={}, **kwargs))
    )
    assert stub.closed == len(stub.asked)
    return found, [request.path for request in stub.asked]


def recorded(vendor, status=200):
    return next(listings(vendor, status))


def listings(vendor, status=200):
    folders = ("openai_chat", "openai_compatible", "anthropic", "google", "mistral", "cohere")
    return (
        e
        for e in exchanges(*folders)
        if (e.vendor, e.endpoint, e.status) == (vendor, "models", status)
    )


def test_d80_openais_models_have_kinds_guessed_from_their_ids():
    found, asked = models_of("openai", (200, recorded("openai").body))
    assert asked == ["https://api.openai.com/v1/models"]
    kinds = {model.name: model.kinds for model in found}
    assert len(kinds) == 135
    assert kinds["gpt-4o"] == kinds["gpt-5.5-pro"] == kinds["o3-deep-research"] == ("chat",)
    assert kinds["text-embedding-3-small"] == kinds["text-embedding-ada-002"] == ("embeddings",)
    assert kinds["tts-1-hd"] == kinds["gpt-4o-mini-tts-2025-12-15"] == ("tts",)
    assert (
        kinds["whisper-1"] == kinds["gpt-4o-transcribe"] == kinds["gpt-realtime-mini"] == ("audio",)
    )
    assert kinds["gpt-audio-mini"] == kinds["gpt-4o-audio-preview"] == ("chat", "audio")
    assert kinds["gpt-image-2"] == kinds["dall-e-3"] == kinds["chatgpt-image-latest"] == ("image",)
    assert kinds["sora-2-pro"] == ("media",)
    assert (
        kinds["omni-moderation-latest"]
        == kinds["davinci-002"]
        == kinds["gpt-3.5-turbo-instruct"]
        == ("other",)
    )
    assert found[0].model == "openai:text-embedding-ada-002"
    assert found[0].extra["owned_by"] == "openai-internal"


def test_d80_anthropics_models_have_display_names_and_what_else_was_told():
    found, asked = models_of("anthropic", (200, recorded("anthropic").body))
    assert asked == ["https://api.anthropic.com/v1/models?limit=1000"]
    first = found[0]
    assert (first.name, first.display_name, first.kinds) == (
        "claude-opus-4-7",
        "Claude Opus 4.7",
        ("chat",),
    )
    assert first.extra["max_input_tokens"] == 1_000_000
    assert "display_name" not in first.extra
    assert len(found) == 9


def test_d80_googles_models_do_what_their_methods_say_over_all_pages():
    pages = [(200, e.body) for e in listings("google")]
    found, asked = models_of("google", *pages)
    first = json.loads(pages[0][1])
    assert asked == [
        "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
        f"https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000&pageToken={first['nextPageToken']}",
    ]
    kinds = {model.name: model.kinds for model in found}
    assert len(kinds) == sum(len(json.loads(page)["models"]) for _, page in pages)
    assert kinds["gemini-2.5-flash"] == kinds["gemma-3-1b-it"] == ("chat", "count_tokens")
    assert kinds["gemini-embedding-001"] == ("embeddings", "count_tokens")
    assert (
        kinds["gemini-2.5-flash-image"]
        == kinds["nano-banana-pro-preview"]
        == ("image", "chat", "count_tokens")
    )
    assert kinds["gemini-2.5-pro-preview-tts"] == ("tts", "count_tokens")
    assert kinds["gemini-2.5-flash-native-audio-latest"] == ("audio", "count_tokens")
    assert (kinds["imagen-4.0-generate-001"], kinds["veo-3.0-generate-001"], kinds["aqa"]) == (
        ("image",),
        ("media",),
        ("other",),
    )
    flash = next(model for model in found if model.name == "gemini-2.5-flash")
    assert (flash.display_name, flash.extra["inputTokenLimit"]) == ("Gemini 2.5 Flash", 1048576)
    assert flash.description
    assert flash.model == "google:gemini-2.5-flash"


def test_d80_vertex_lists_what_its_publisher_has_outside_of_any_project():
    page = {
        "publisherModels": [
            {
                "name": "publishers/google/models/gemini-3.5-flash",
                "versionId": "default",
                "launchStage": "GA",
            },
            {"name": "publishers/google/models/text-embedding-005", "versionId": "default"},
        ],
        "nextPageToken": "t/+",
    }
    root = "https://europe-west4-aiplatform.googleapis.com"
    found, asked = models_of(
        "vertex", (200, page), (200, {}), base_url=f"{root}/v1/projects/p/locations/europe-west4"
    )
    assert asked == [
        f"{root}/v1beta1/publishers/google/models?pageSize=300",
        f"{root}/v1beta1/publishers/google/models?pageSize=300&pageToken=t%2F%2B",
    ]
    assert [(model.name, model.kinds, model.display_name) for model in found] == [
        ("gemini-3.5-flash", ("chat",), None),
        ("text-embedding-005", ("embeddings",), None),
    ]
    assert found[0].extra == {"versionId": "default", "launchStage": "GA"}
    _, asked = models_of("vertex", (200, page | {"nextPageToken": ""}))
    assert asked == [
        "https://aiplatform.googleapis.com/v1beta1/publishers/google/models?pageSize=300"
    ]


def test_d80_mistrals_models_do_what_their_capabilities_say():
    found, _ = models_of("mistral", (200, recorded("mistral").body))
    kinds = {model.name: model.kinds for model in found}
    assert len(kinds) == len(found)  # told twice: voxtral-mini-2507, by another alias
    assert kinds["mistral-large-2512"] == kinds["codestral-2508"] == ("chat",)
    assert kinds["voxtral-small-2507"] == ("chat", "audio")
    assert kinds["voxtral-mini-transcribe-2507"] == ("audio",)
    assert kinds["mistral-embed"] == ("embeddings",)
    assert kinds["mistral-moderation-2411"] == kinds["mistral-ocr-2512"] == ("other",)
    medium = next(model for model in found if model.name == "mistral-medium-2508")
    assert medium.extra["aliases"] == ["mistral-medium-latest", "mistral-medium"]


def test_d80_coheres_models_do_what_their_endpoints_say():
    found, asked = models_of("cohere", (200, recorded("cohere").body))
    assert asked == ["https://api.cohere.com/v1/models?page_size=1000"]
    assert [(model.name, model.kinds) for model in found] == [("command-r-plus-08-2024", ("chat",))]
    assert found[0].extra["context_length"] == 128000
    more = {
        "models": [
            {"name": "embed-v4.0", "endpoints": ["embed", "classify"]},
            {"name": "rerank-v4.0", "endpoints": ["rerank"]},
            {"name": "command-light", "endpoints": ["generate", "summarize"]},
        ],
        "next_page_token": "n",
    }
    found, asked = models_of("cohere", (200, more), (200, {"models": []}))
    assert asked[1] == "https://api.cohere.com/v1/models?page_size=1000&page_token=n"
    assert [model.kinds for model in found] == [("embeddings",), ("other",), ("other",)]


def test_d80_azures_and_ollamas_capabilities_are_read():
    azure = {
        "id": "a-4o",
        "capabilities": {"inference": True, "completion": False, "chat_completion": True},
    }
    vectors = {"id": "b", "capabilities": {"chat_completion": False, "embeddings": True}}
    assert [model.kinds for model in load_models("azure", {"data": [azure, vectors]})] == [
        ("chat",),
        ("embeddings",),
    ]
    ollama = [
        {
            "name": "qwen3:4b",
            "model": "qwen3:4b",
            "capabilities": ["completion", "tools", "thinking"],
        },
        {"name": "own:latest", "model": "own:latest", "capabilities": ["embedding"]},
        {"name": "all-minilm:22m", "model": "all-minilm:22m", "details": {"family": "bert"}},
    ]
    found, asked = models_of("ollama", (200, {"models": ollama}))
    assert asked == ["http://localhost:11434/api/tags"]
    assert [model.kinds for model in found] == [("chat",), ("embeddings",), ("embeddings",)]
    assert [model.display_name for model in found] == [None] * 3


def test_every_recorded_list_is_read_whole():
    for exchange in exchanges(
        "openai_chat", "openai_compatible", "anthropic", "google", "mistral", "cohere"
    ):
        if exchange.endpoint == "models" and exchange.status == 200:
            body = json.loads(exchange.body)
            found = load_models("x", body)
            assert len(found) == len(body.get("data") or body["models"]), exchange
            assert all(model.name and model.kinds for model in found), exchange


def test_llama_cpps_models_are_listed_once_though_told_twice():
    found, _ = models_of("llamacpp", (200, recorded("llama.cpp").body))
    assert [model.name for model in found] == ["/REDACTED_PATH/Qwen3-1.7B-Q4_K_M.gguf"]


def test_a_models_modalities_are_read_where_they_are_told():
    found = load_models("huggingface", json.loads(recorded("huggingface").body))
    assert len(found) == 127
    assert {model.kinds for model in found} == {("chat",)}
    assert all(model.display_name is None for model in found)


def test_anthropics_pages_are_all_read():
    pages = [
        (200, {"data": [{"id": "a"}, {"id": "b"}], "has_more": True, "last_id": "b"}),
        (200, {"data": [{"id": "c"}], "has_more": False, "last_id": "c"}),
    ]
    found, asked = models_of("anthropic", *pages)
    assert [model.name for model in found] == ["a", "b", "c"]
    assert asked[1] == "https://api.anthropic.com/v1/models?limit=1000&after_id=b"


def test_openrouters_pages_are_all_read_from_its_own_host_only():
    next_url = "https://elsewhere.example/steal?offset=1&output_modalities=all"
    entry = {
        "id": "a/b",
        "name": "A: B",
        "description": "d",
        "architecture": {"output_modalities": ["text", "image"]},
    }
    other = {"id": "c/d", "name": "C: D", "architecture": {"output_modalities": ["embeddings"]}}
    found, asked = models_of(
        "openrouter",
        (200, {"data": [entry], "links": {"next": next_url}}),
        (200, {"data": [other]}),
    )
    assert [(m.name, m.display_name, m.description, m.kinds) for m in found] == [
        ("a/b", "A: B", "d", ("chat", "image")),
        ("c/d", "C: D", None, ("embeddings",)),
    ]
    assert asked == [
        "https://openrouter.ai/api/v1/models?output_modalities=all",
        "https://openrouter.ai/api/v1/models?offset=1&output_modalities=all",
    ]


def test_a_provider_that_repeats_its_page_is_not_asked_for_ever():
    page = {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}
    _, asked = models_of("anthropic", *[(200, page)] * 9)
    assert len(asked) == 2


def test_togethers_bare_list_tells_types():
    body = [
        {"id": "a/chat", "type": "chat", "display_name": "A"},
        {"id": "b/m2", "type": "embedding"},
        {"id": "c/x", "type": "image"},
        {"id": "d/y", "type": "rerank"},
    ]
    found, _ = models_of("together", (200, body))
    assert [model.kinds for model in found] == [("chat",), ("embeddings",), ("image",), ("other",)]
    assert found[0].display_name == "A"


def test_ollamas_two_lists_are_read_alike():
    openai_like = {
        "object": "list",
        "data": [{"id": "qwen3:4b", "object": "model", "owned_by": "library"}],
    }
    own = {"models": [{"name": "qwen3:4b", "size": 1}]}
    assert [m.model for m in load_models("ollama", openai_like)] == ["ollama:qwen3:4b"]
    assert [(m.model, m.display_name) for m in load_models("ollama", own)] == [
        ("ollama:qwen3:4b", None)
    ]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("mistral-embed", ("embeddings",)),
        ("BAAI/bge-large-en-v1.5", ("embeddings",)),
        ("meta-llama/Llama-Guard-4-12B", ("other",)),
        ("openai/gpt-oss-safeguard-20b", ("chat",)),
        ("whisper-large-v3-turbo", ("audio",)),
        ("grok-2-image-1212", ("image",)),
        ("black-forest-labs/FLUX.1-schnell", ("image",)),
        ("never-heard-of-it", ("chat",)),
        *((name, ("embeddings",)) for name in ("x-Embed", "MiniLM", "bge-m3", "gte-x", "e5-y")),
        *((name, ("other",)) for name in ("moderation", "rerank", "prompt-guard", "x-ocr", "davinci", "babbage", "gpt-35-turbo-instruct")),
        *((name, ("audio",)) for name in ("transcribe", "whisper", "realtime")),
        *((name, ("chat", "audio")) for name in ("gpt-audio", "audio-preview", "voxtral")),
        *((name, ("image", "chat")) for name in ("gemini-3-image", "nano-banana")),
        *((name, ("image",)) for name in ("dall-e-4", "an-image", "imagen", "imagine", "flux", "stable-diffusion")),
        *((name, ("media",)) for name in ("sora", "veo-3", "some-video")),
        ("my-tts", ("tts",)),
        *((name, ("chat",)) for name in ("ambge-x", "locr", "ttsx", "veon", "soran", "imagex")),
    ],
)  # fmt: skip
def test_d80_kinds_of_other_vendors_names(name, kinds):
    assert find_kinds(name, {}) == kinds


MODALITIES = {
    "text": "chat",
    "embeddings": "embeddings",
    "image": "image",
    "audio": "audio",
    "speech": "tts",
    "video": "media",
}
TOLD = {
    "type": {
        "chat": "chat", "llm": "chat", "vlm": "chat", "embedding": "embeddings", "embeddings": "embeddings", "image": "image",
        "audio": "tts", "transcribe": "audio", "video": "media", "language": "other", "code": "other", "moderation": "other",
        "rerank": "other",
    },
    "architecture.output_modalities": MODALITIES,
    "supported_output_modalities": MODALITIES,
    "supportedGenerationMethods": {
        "generateContent": "chat", "embedContent": "embeddings", "embedText": "embeddings", "predict": "image",
        "predictLongRunning": "media", "bidiGenerateContent": "audio", "generateAnswer": "other",
    },
    "endpoints": {
        "chat": "chat", "embed": "embeddings", "embed_image": "embeddings", "transcribe": "audio",
        "audio_transcriptions": "audio", "rerank": "other", "classify": "other", "summarize": "other", "generate": "other",
        "rate": "other",
    },
    "capabilities": {
        "completion_chat": "chat", "chat_completion": "chat", "completion": "chat", "embeddings": "embeddings",
        "embedding": "embeddings", "audio": "audio", "audio_transcription": "audio", "audio_transcription_realtime": "audio",
        "audio_speech": "tts", "image": "image", "moderation": "other", "classification": "other", "ocr": "other",
    },
}  # fmt: skip
"""Where providers tell what a model does → their words → what is meant."""


@pytest.mark.parametrize(
    ("path", "word", "kind"),
    [(path, *pair) for path, words in TOLD.items() for pair in words.items()],
)
def test_d80_every_word_of_every_provider_means_a_kind(path, word, kind):
    *above, last = path.split(".")
    for value in (word, [word], {word: True, "other-word": True}):
        told = {last: value}
        for key in above:
            told = {key: told}
        assert find_kinds("x", told) == (kind,)
        # what is told goes before what the name says
        assert find_kinds("tts-1", told) == (("tts",) if kind == "chat" else (kind,))
    assert find_kinds("x", {last: {word: False}}) == find_kinds("x", {last: {word: 1}}) == ("chat",)


def test_d80_kinds_have_an_order_and_what_is_other_says_nothing_beside_them():
    assert find_kinds(
        "x", {"capabilities": ["ocr", "audio", "audio_speech", "image", "embedding", "completion"]}
    ) == (
        "chat",
        "embeddings",
        "image",
        "tts",
        "audio",
    )
    assert find_kinds("x", {"supported_output_modalities": ["video", "audio", "speech"]}) == (
        "media",
        "tts",
        "audio",
    )
    methods = {"supportedGenerationMethods": ["countTokens"]}
    assert find_kinds("x", methods) == ("chat", "count_tokens")
    assert find_kinds("embed", methods) == ("embeddings", "count_tokens")
    both = {"supportedGenerationMethods": ["countTokens", "predict"]}
    assert find_kinds("embed", both) == ("image", "count_tokens")
    # of two places the first that says anything counts
    assert find_kinds("x", {"type": "image", "capabilities": ["embedding"]}) == ("image",)
    assert find_kinds("x", {"type": "unheard-of", "capabilities": ["embedding"]}) == ("embeddings",)
    assert find_kinds("x", {"capabilities": ["completion", "audio"]}) == ("chat", "audio")
    # the name tells what a chat answers with, unless that is told too
    assert find_kinds("whisper", {"capabilities": ["completion", "audio"]}) == ("chat", "audio")
    assert find_kinds("voxtral", {"capabilities": ["completion"]}) == ("chat",)
    assert find_kinds("x", {"capabilities": 3, "type": [3, None]}) == ("chat",)
    assert find_kinds("x", {"architecture": "odd"}) == ("chat",)


def test_headers_and_base_url_of_the_caller_are_used():
    stub = Stub((200, {"data": []}))
    asyncio.run(
        list_models(
            Access(
                providers.get("openai"),
                stub,
                base_url="http://127.0.0.1:1/x/",
                api_key="k",
                headers={"X-Team": "a"},
            )
        )
    )
    request = stub.asked[0]
    assert (request.path, request.method, request.body) == (
        "http://127.0.0.1:1/x/models",
        "GET",
        None,
    )
    assert request.headers == {"authorization": "Bearer k", "x-team": "a"}


def test_d72_no_request_is_made_without_the_key():
    stub = Stub()
    with pytest.raises(AuthenticationError, match="GROQ_API_KEY is required for Groq provider"):
        asyncio.run(
            list_models(Access(providers.get("groq"), stub, environment={"GROQ_API_KEY": ""}))
        )
    assert stub.asked == []


@pytest.mark.parametrize(
    "body", [{"error": "x"}, {"data": None}, {"data": ["a"]}, {"data": [{}]}, "text", 3]
)
def test_an_answer_without_models_is_an_error(body):
    with pytest.raises(DecodeError, match="no list of models"):
        models_of("openai", (200, body))


@pytest.mark.parametrize("body", [b"<html>not here</html>", b'{"data": "\xff"}'])
def test_an_answer_that_is_no_json_asks_whether_the_base_url_is_right(body):
    with pytest.raises(DecodeError, match="is the base URL right") as caught:
        models_of("openai", (200, body))
    assert (caught.value.provider, caught.value.body) == ("openai", body)


def test_a_provider_that_lists_nothing_says_so():
    silent = Provider(name="silent", display_name="Silent", wire="openai_chat", models_path=None)
    with pytest.raises(SettingsError, match="Silent provider does not list its models"):
        asyncio.run(list_models(Access(silent, Stub())))


@pytest.mark.parametrize(
    ("name", "vendor"), [("openai", "openai"), ("groq", "groq"), ("anthropic", "anthropic")]
)
def test_a_refusal_is_read_by_the_providers_wire(name, vendor, monkeypatch):
    exchange = recorded(vendor, 401)

    class Wire:
        def load_error(self, status, headers, body):
            assert (status, body) == (401, exchange.body)
            return AuthenticationError("refused")

    asked = []
    monkeypatch.setattr(wires, "get", lambda wire: asked.append(wire) or Wire())
    with pytest.raises(AuthenticationError) as caught:
        models_of(name, (401, exchange.body))
    assert (caught.value.provider, caught.value.status, caught.value.body) == (
        name,
        401,
        exchange.body,
    )
    assert asked == [providers.get(name).wire]


def test_a_page_of_cursors_alone_is_empty():
    for body in (
        {},
        {"nextPageToken": "a"},
        {"last_id": "a", "nextPageToken": "b", "next_page_token": "c"},
    ):
        assert load_models("x", body) == []
    with pytest.raises(DecodeError) as caught:
        load_models("x", {"nextPageToken": "a", "error": 1})
    assert (caught.value.provider, caught.value.body) == ("x", b'{"nextPageToken":"a","error":1}')


def test_the_last_page_has_no_next():
    assert next_page("http://x/models", []) is None
    assert next_page("http://x/models", {"has_more": False, "last_id": "a"}) is None
    assert next_page("http://x/models", {"links": {"next": None}}) is None
