"""What of a client's fields a gateway passes on: an allow list for each wire, since a deny list
cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from serve.test_gateway_same_api import PATHS, Behind

from dragoman import wires
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.wires.serving import get_serving
from support.allow_lists import REFUSED, allow_list, kinds
from support.sdk_fields import Fields
from support.switching import FOLDERS
from support.traffic import exchanges

pytestmark = [pytest.mark.anyio, pytest.mark.mend("1.5")]

WIRES = sorted(PATHS)
HI: Mapping[str, dict[str, Any]] = {
    **{wire: {"messages": [{"role": "user", "content": "Hi."}]} for wire in WIRES},
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]},
    "google": {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
    "openai_responses": {"input": [{"role": "user", "content": "Hi."}]},
}
SECRET = "of-another-client"
NAMED = {
    "cachedContent", "container", "conversation", "mcp_servers", "model", "models", "preset", "previous_response_id",
    "prompt", "route", "thread",
}  # fmt: skip
"""Fields of a body that are answered with an error, or that the server itself reads."""


def spoken(wire: str, *parts: Any) -> dict[str, Any]:
    """A request whose only message has these parts beside its text."""
    body = {**HI[wire]}
    if wire == "google":
        return {**body, "contents": [{"role": "user", "parts": [{"text": "Hi."}, *parts]}]}
    field = "input" if wire == "openai_responses" else "messages"
    text = {"type": "input_text" if field == "input" else "text", "text": "Hi."}
    return {**body, field: [{"role": "user", "content": [text, *parts]}]}


REFERENCES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("anthropic", {**HI["anthropic"], **fields})
        for fields in (
            {"fallbacks": [{"model": SECRET}]},
            {"user_profile_id": SECRET},
            {"workspace_id": SECRET},
            {"billing_policy": {"type": "billing_policy", "bill_to": SECRET}},
            {"fallback_credit_token": {"token": SECRET}},
            {"diagnostics": {"previous_message_id": SECRET}},
            {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": SECRET}]},
            {"of_next_month": {"id": SECRET}},
        )
    ),
    ("anthropic", spoken("anthropic", {"type": "document", "source": {"type": "file", "file_id": SECRET}})),
    ("anthropic", spoken("anthropic", {"type": "container_upload", "file_id": SECRET})),
    *(
        ("openai_responses", {**HI["openai_responses"], **fields})
        for fields in (
            {"tools": [{"type": "file_search", "vector_store_ids": [SECRET]}]},
            {"tools": [{"type": "code_interpreter", "container": SECRET}]},
            {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": [SECRET]}}]},
            {"tools": [{"type": "mcp", "server_label": "x", "connector_id": SECRET}]},
            {"tools": [{"type": "mcp", "server_label": "x", "server_url": f"https://{SECRET}.example"}]},
            {"tools": [{"type": "shell", "environment": {"type": "container_reference", "container_id": SECRET}}]},
            {"tools": [{"type": "image_generation", "model": SECRET}]},
            {"background_options": {"continuation_id": SECRET}},
        )
    ),
    ("openai_responses", spoken("openai_responses", {"type": "input_file", "file_id": SECRET})),
    ("openai_responses", spoken("openai_responses", {"type": "input_image", "file_id": SECRET})),
    ("openai_responses", {"input": [*HI["openai_responses"]["input"], {"id": SECRET, "status": "completed"}]}),
    ("openai_chat", spoken("openai_chat", {"type": "file", "file": {"file_id": SECRET}})),
    ("openai_chat", {"messages": [*HI["openai_chat"]["messages"], {"role": "assistant", "audio": {"id": SECRET}}]}),
    *(
        ("google", {**HI["google"], **fields})
        for fields in (
            {"tools": [{"fileSearch": {"fileSearchStoreNames": [SECRET]}}]},
            {"tools": [{"file_search": {"file_search_store_names": [SECRET]}}]},
            {"tools": [{"mcpServers": [{"name": SECRET}]}]},
            {"continuationToken": SECRET},
            {"generationConfig": {"routingConfig": {"manualMode": {"modelName": SECRET}}}},
            {"generation_config": {"routing_config": {"manual_mode": {"model_name": SECRET}}}},
        )
    ),
    ("google", spoken("google", {"fileData": {"fileUri": f"https://generativelanguage.googleapis.com/v1beta/files/{SECRET}"}})),
    ("google", spoken("google", {"file_data": {"file_uri": f"gs://bucket/{SECRET}"}})),
    ("google", spoken("google", {"fileData": {"fileUri": f"files/{SECRET}"}})),
    ("mistral", {**HI["mistral"], "tools": [{"type": "document_library", "library_ids": [SECRET]}]}),
    ("mistral", {**HI["mistral"], "tools": [{"type": "connector", "connector_id": SECRET}]}),
    ("mistral", spoken("mistral", {"type": "file", "file_id": SECRET})),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "body"), REFERENCES)
@pytest.mark.parametrize("upstream", ["own", "anthropic", "openai_responses"])
async def test_what_others_have_in_the_account_is_not_to_be_named(
    wire: str, body: dict[str, Any], upstream: str
) -> None:
    there = Behind(
        wire, "Hello.", upstream=None if upstream == "own" else Behind(upstream, "Hello.").upstream
    )
    answer = await there.post(body)
    assert answer["status"] == 200
    assert SECRET not in str(there.body)
    assert there.losses


@pytest.mark.parametrize(("wire", "body"), REFERENCES)
async def test_who_may_name_it_does(wire: str, body: dict[str, Any]) -> None:
    if "status" in str(body):
        pytest.skip("an item that is none")
    there = Behind(wire, "Hello.", references=True)
    await there.post(body)
    assert SECRET in str(there.body)
    assert not there.losses


@pytest.mark.parametrize(("wire", "body"), REFERENCES)
async def test_a_gateway_that_refuses_losses_refuses_it(wire: str, body: dict[str, Any]) -> None:
    there = Behind(wire, "Hello.", on_loss="refuse")
    answer = await there.post(body)
    assert answer["status"] == 400
    assert not there.upstream.sent


@pytest.mark.parametrize("wire", WIRES)
def test_an_allow_list_is_the_fields_of_the_official_library_that_name_nothing(wire: str) -> None:
    """A library that has a field more fails here: somebody says what it is.
    `PYTHONPATH=tests:scripts python -m support.allow_lists` writes the tables."""
    allowed = get_serving(wires.get(wire)).allowed
    assert allowed is not None
    assert allowed.table.strip() == allow_list(wire).strip()


def chains(
    fields: Mapping[str, Fields], kind: str = "request", seen: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """Each field of the library: its path of kinds, and a body that has it with a secret in it,
    down to where kinds come again."""
    for name, inner in fields[kind].fields.items():
        if name == fields[kind].tag:
            continue
        around = {fields[kind].tag: min(fields[kind].values)} if fields[kind].tag else {}
        yield f"{kind}.{name}", {**around, name: SECRET}
        for below in inner:
            if below in seen or len(seen) > 3:
                continue
            for path, value in chains(fields, below, (*seen, kind)):
                yield path, {**around, name: [value]}


@pytest.mark.parametrize("wire", WIRES)
def test_no_field_of_a_library_passes_that_the_list_has_not(wire: str) -> None:
    allowed = get_serving(wires.get(wire)).allowed
    assert allowed is not None
    library, refused = kinds(wire), set(REFUSED[wire])
    checked = 0
    for path, body in chains(library):
        kind, _, name = path.rpartition(".")
        plain = kind.partition("~")[0]
        if f"{plain}.{name}" not in refused and plain not in refused:
            continue
        checked += 1
        passed, left_out = allowed.filter_body(body)
        same_tag = [
            one
            for one in library.values()
            if one.values & library[kind].values and name in one.fields
        ]
        if plain in refused and len(same_tag) > 1:
            continue
        assert SECRET not in str(passed), path
        assert left_out, path
    assert checked or not refused


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_recorded_passes_apart_from_what_it_names(wire: str) -> None:
    allowed = get_serving(wires.get(wire)).allowed
    assert allowed is not None
    count = 0
    for exchange in exchanges(*FOLDERS[wire]):
        body = exchange.request
        if not isinstance(body, dict) or not {"messages", "contents", "input"} & body.keys():
            continue
        try:
            wires.get(wire).load_request(body, path=exchange.url, headers=exchange.request_headers)
        except (HistoryError, InvalidRequestError):
            continue
        count += 1
        passed, left_out = allowed.filter_body(body)
        if set(left_out) - RECORDED[wire]:
            assert "embed" in exchange.url or exchange.status >= 400, (exchange.id, left_out)
        if not left_out:
            assert passed is body
    assert count > 20


RECORDED: Mapping[str, set[str]] = {
    "anthropic": {
        "container", "messages.content.container_upload", "messages.content.content.source.file",
        "messages.content.source.file", "tools.advisor_20260301",
    },
    "openai_chat": {"messages.content.file.file_id", "models", "moderation", "preset"},
    "openai_responses": {"input.content.file_id", "tools.container.file_ids", "tools.file_search"},
    "google": {
        "cachedContent", "contents.parts.fileData.fileUri", "contents.parts.fileData.file_uri",
        "contents.parts.file_data.file_uri", "generateContentRequest", "modelArmorConfig", "tools.fileSearch",
    },
    "mistral": set(),
    "ollama": set(),
    # the last is version 1 of the API, whose clients the recordings have too
    "cohere": {
        "messages.content.output", "messages.tool_calls.tool_call", "tools.description", "tools.name",
        "tools.parameter_definitions",
    },
}  # fmt: skip
"""Wire → what was recorded and names objects of an account, or another model."""


@pytest.mark.parametrize("wire", WIRES)
async def test_what_was_recorded_goes_through_a_gateway_as_it_is(wire: str) -> None:
    allowed = get_serving(wires.get(wire)).allowed
    assert allowed is not None
    there = Behind(wire, lambda _: "Hello.")
    count = 0
    for exchange in [*exchanges(*FOLDERS[wire])][::7]:
        body = exchange.request
        if (
            not isinstance(body, dict)
            or exchange.status != 200
            or body.keys().isdisjoint(HI[wire])
            or body.keys() & SERVERS
        ):
            continue
        if wire == "google" and "generatecontent" not in exchange.url.lower():
            continue
        passed, _ = allowed.filter_body(body)
        sent = len(there.upstream.sent)
        await there.post(body)
        if len(there.upstream.sent) == sent:  # refused, for what it names
            continue
        count += 1
        model = {} if wire == "google" else {"model": there.upstream.chat_model}
        assert there.body == {**passed, **model}, exchange.id
    assert count > 2


SERVERS = {"n", "background", "previous_response_id", "conversation"}
"""Fields that the server itself answers to."""


async def test_options_of_vectors_pass_by_the_list_too() -> None:
    allowed = get_serving(wires.get("openai_chat")).allowed
    assert allowed is not None
    body = {"model": "m", "input": "x", "dimensions": 3, "store_id": SECRET}
    assert allowed.filter_body(body, "embeddings") == (
        {"model": "m", "input": "x", "dimensions": 3},
        ["store_id"],
    )
