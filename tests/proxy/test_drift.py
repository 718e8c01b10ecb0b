"""What is reported of recorded answers (`proxy/drift.py`, `answer_names.py`), and their wires."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from dragoman import wires
from dragoman.proxy.drift import DriftReport, find_drift
from dragoman.proxy.recordings import load_recording
from dragoman.proxy.upstreams import client_keys, client_variables, find_upstreams
from dragoman.proxy.wire_of import find_wire
from dragoman.transport.exchange import Exchange
from support.traffic import FOLDER

URLS = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "book", "arguments": '{"zeppelin": {"mood_ring": 1}}'},
}


def chat(**fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hi", **fields}
    return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def drift(body: Any, wire: str = "openai_chat", **fields: Any) -> list[tuple[str, str]] | None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return find_drift(Exchange(url=URLS[wire], body=data, **fields))


def sse(*events: Mapping[str, Any]) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


ANSWER = (
    {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)  # fmt: skip


def test_an_answer_that_is_known_has_no_drift() -> None:
    assert drift(chat()) == []
    assert drift(sse(*ANSWER), "anthropic") == []


def test_new_fields_are_found_where_they_stand() -> None:
    assert drift({**chat(mood_ring={"colour": "red"}), "aura": None}) == [
        ("kept", "choices.message.mood_ring")
    ]
    # What is empty says nothing.
    assert drift(chat(mood_ring={}, aura_level=0, halo=False)) == []
    new = {**ANSWER[1], "content_block": {"type": "text", "text": "", "mood_ring": "red"}}
    assert drift(sse(ANSWER[0], new, *ANSWER[2:]), "anthropic") == [
        ("kept", "<content_block_start>.content_block<text>.mood_ring")
    ]


def test_names_that_the_model_chose_are_none() -> None:
    assert drift(chat(tool_calls=[CALL])) == []
    gemini = {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"zeppelin": {"type": "mood_ring"}}}}]}}]}  # fmt: skip
    url = "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"
    assert find_drift(Exchange(url=url, body=json.dumps(gemini).encode())) == []


def test_names_of_the_request_are_none() -> None:
    assert drift({**chat(), "aura_level": 3}, request_body={"aura_level": 3}) == []


def test_new_types_of_events_and_parts_are_found() -> None:
    new = {"type": "aura_changed", "colour": "violet"}
    assert drift(sse(*ANSWER[:3], new, *ANSWER[3:]), "anthropic") == [("type", "<aura_changed>")]
    block = {**ANSWER[1], "content_block": {"type": "aura", "colour": "violet"}}
    assert drift(sse(ANSWER[0], block, *ANSWER[3:]), "anthropic") == [
        ("type", "<content_block_start>.content_block<aura>")
    ]
    # One that repeats what was said is no news.
    again = {"type": "aura_repeated", "item_id": "x", "text": "Hi"}
    assert drift(sse(*ANSWER[:3], again, *ANSWER[3:]), "anthropic") == []


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"[]", b"\xff\xfe", b"data: {\n\n"])
def test_what_cannot_be_decoded_fails(body: bytes) -> None:
    for wire in URLS:
        found = drift(body, wire)
        assert found is not None
        assert [kind for kind, _ in found] == ["fails"]


def test_a_decoder_that_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_error(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(wires.get("openai_chat"), "decoder", raise_error)
    assert drift(chat()) == [("fails", "RuntimeError: boom")]


def test_what_a_provider_says_went_wrong_is_none() -> None:
    error = {"error": {"message": "no", "type": "invalid_request_error"}}
    assert drift(error, status=400) == []
    assert drift(b"<html>", status=502) == []
    assert drift(chat()["choices"], cut_after=3) is not None


def test_other_paths_are_not_decoded() -> None:
    assert find_drift(Exchange(url="https://api.openai.com/v1/files", body=b"{}")) is None
    assert find_drift(Exchange(url="https://api.openai.com/v1/models", method="GET")) is None


def test_hostile_answers_take_bounded_time() -> None:
    wide = {**chat(), **{f"aura_{number}": number + 1 for number in range(2_000)}}
    started = perf_counter()
    found = drift(wide)
    assert found is not None
    assert 5 <= len(found) <= 200
    assert drift(b"[" * 1_000_000) is not None
    assert drift({**chat(), "pad": "x" * 2**23}) == []
    assert perf_counter() - started < 20


@pytest.mark.parametrize(
    ("url", "wire"),
    [
        ("https://api.mistral.ai/v1/chat/completions", "mistral"),
        ("https://api.groq.com/openai/v1/chat/completions", "openai_chat"),
        ("https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=1", "openai_chat"),
        ("https://api.deepseek.com/chat/completions", "openai_chat"),
        ("http://localhost:11434/api/chat", "ollama"),
        ("https://api.cohere.com/v2/chat", "cohere"),
        ("https://api.cohere.com/v1/chat", None),
        ("https://h/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent", "google"),
        ("https://h/v1alpha/models/m:generateContent?alt=sse", "google"),
        ("https://openrouter.ai/api/v1/responses", "openai_responses"),
        ("https://h/anthropic/v1/messages?beta=true", "anthropic"),
        ("https://h/v1/messages/batches", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_wire_of_a_path(url: str, wire: str | None) -> None:
    found = find_wire("POST", url)
    assert (found and found.wire) == wire
    assert find_wire("GET", url) is None


def test_variables_lead_to_the_proxy_and_it_to_where_they_led() -> None:
    environment = {
        "OPENAI_BASE_URL": "https://gateway.example/team/v1/",
        "GROQ_BASE_URL": "https://g.example",
    }
    upstreams = find_upstreams(["acme=https://acme.example/api/v1"], environment)
    variables = client_variables(upstreams, "http://127.0.0.1:9")
    assert upstreams["openai"].origin == "https://gateway.example"
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:9/openai/team/v1"
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/anthropic"
    assert variables["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:9/google"
    assert variables["GROQ_BASE_URL"] == "http://127.0.0.1:9/groq"
    assert variables["OLLAMA_HOST"] == "http://127.0.0.1:9/ollama"
    # Who signs in otherwise than by a key is led only where the environment names a host.
    assert "AZURE_OPENAI_ENDPOINT" not in variables
    assert upstreams["acme"].client_url("http://p") == "http://p/acme/api/v1"
    assert client_keys({"COHERE_API_KEY": "x"}).keys().isdisjoint({"COHERE_API_KEY", "CO_API_KEY"})
    assert client_keys({})["CO_API_KEY"]


def test_each_provider_of_the_registry_can_be_led() -> None:
    """A base URL from the proxy is what our own clients send to, whatever the provider."""
    from dragoman.providers import REGISTRY
    from dragoman.providers.base_url import find_written_url

    upstreams = find_upstreams([], {})
    variables = client_variables(upstreams, "http://127.0.0.1:9")
    for name, upstream in upstreams.items():
        if upstream.variables:
            written = find_written_url(REGISTRY.get(name), system=variables)
            assert written == upstream.client_url("http://127.0.0.1:9")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_recorded_traffic_is_decoded() -> None:
    """All recordings of real providers: what is reported is theirs, and no answer fails."""
    if not FOLDER.is_dir():
        pytest.skip(f"recorded traffic is absent: {FOLDER} (set DRAGOMAN_TRAFFIC)")
    report = DriftReport()
    report.add_all(load_recording(file) for file in sorted(FOLDER.glob("*/*.json")))
    findings = report.list_findings()
    failing = {finding.example for finding in findings if finding.kind == "fails"}
    # A fixture that was recorded under the path of another endpoint.
    assert failing <= {"prism-mistral-embeddings-multiple-inputs-1-00"}
    paths = {finding.what for finding in findings}
    assert "<message>.content<tool_use>.caller" in paths
    assert not any(".args." in path or ".arguments." in path for path in paths)
    assert list(map(str, report.list_findings(without=report))) == []


def test_a_folder_of_another_machine_is_read(tmp_path: Path) -> None:
    record = {"request": {"url": None}, "response": {"status": 200}}
    (tmp_path / "any-name.json").write_text(json.dumps(record))
    recording, exchange = load_recording(tmp_path / "any-name.json")
    assert (recording.id, find_drift(exchange)) == ("any-name", None)
