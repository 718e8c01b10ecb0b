"""`fetch_files`: files by their URL for providers that take bytes alone, each fetched once, and the
same from turn to turn."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import anyio
import msgspec
import pytest

from dragoman import (
    Agent,
    DataPart,
    LinkPart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    tool,
    wires,
)
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import InvalidRequestError, ProviderError, SettingsError, StreamCutError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.model import cache, fallback, fetch_files, link_files
from dragoman.model.link_files import LinkedFiles, find_link_positions
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, call
from dragoman.transport import AddressPolicy
from support.gateway import answered, gated
from support.socket_server import answer, serving
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
CAT, DOG = LinkPart("https://a.test/cat.png"), LinkPart("https://a.test/dog.png")
POLICY = AddressPolicy(["a.test"])


class Net:
    """Stands in the place of `fetch`. A URL's answers come one after another, the last one for
    ever."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            name: list(given) if isinstance(given, list) else [given]
            for name, given in answers.items()
        }
        self.asked: list[str] = []
        self.most: list[int] = []

    async def __call__(
        self, url: str, policy: AddressPolicy, *, max_bytes: int, seconds: float
    ) -> DataPart:
        name = url.partition("?")[0].rpartition("/")[2].partition(".")[0]
        policy.check_url(url)
        self.asked.append(name)
        self.most.append(max_bytes)
        left = self.answers.get(name, [PNG])
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, DataPart) else DataPart(given, "image/png", f"{name}.png")


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    made = Net()
    monkeypatch.setattr(link_files, "fetch", made)
    return made


async def no_wait(seconds: float) -> None:
    WAITS.append(seconds)


WAITS: list[float] = []


def model(*script: Any, wire: str = "ollama", **how: Any) -> ScriptedModel:
    return ScriptedModel(list(script) or ["A cat."], wire=wire, **how)


def agent(there: Any, **how: Any) -> Agent[None]:
    return Agent(there, middleware=[fetch_files(POLICY, sleep=no_wait, **how)])


def sent(there: ScriptedModel, number: int = -1) -> list[Any]:
    return [part for message in there.requests[number].messages for part in message.content]


async def test_a_provider_that_takes_bytes_alone_is_sent_the_bytes(net: Net) -> None:
    there = model()
    async with agent(there) as asked:
        result = await asked.send("What is it?", attachments=[CAT])
    [image] = [part for part in sent(there) if isinstance(part, DataPart)]
    assert image.data == PNG
    assert not result.losses or all(loss.is_minor for loss in result.losses)
    assert result.messages[0].content[-1] == CAT, "the history keeps the link"


async def test_a_provider_that_takes_the_url_is_sent_the_url(net: Net) -> None:
    there = model(wire="openai_chat")
    async with agent(there) as asked:
        await asked.send("What is it?", attachments=[CAT])
    assert net.asked == []
    assert any(isinstance(part, LinkPart) for part in sent(there))


async def test_every_link_is_fetched_where_that_is_asked_for(net: Net) -> None:
    there = model(wire="openai_chat")
    detail = LinkPart(CAT.url, native={"openai_chat": {"image_url": {"detail": "low"}}})
    async with agent(there, every=True) as asked:
        await asked.send("What is it?", attachments=[detail])
    assert net.asked == ["cat"]
    block = there.bodies[0]["messages"][0]["content"][1]
    assert block["image_url"]["url"].startswith("data:image/png;base64,")
    assert block["image_url"]["detail"] == "low"


@pytest.mark.parametrize(
    "url",
    [
        "https://b.test/cat.png",
        "http://a.test/cat.png",
        "https://a.test:22/cat.png",
        "https://user@a.test/cat.png",
        "ftp://a.test/x",
        "https://10.0.0.1/x",
    ],
)
async def test_what_is_not_allowed_is_passed_on_and_its_loss_is_named(net: Net, url: str) -> None:
    there = model()
    async with agent(there) as asked:
        result = await asked.send("What is it?", attachments=[LinkPart(url)])
    assert net.asked == []
    assert [loss.what for loss in result.losses if not loss.is_minor] == ["link"]


async def test_each_turn_begins_as_the_one_before_and_nothing_is_fetched_twice(net: Net) -> None:
    net.answers["cat"] = [PNG, PNG + b"changed"]
    there = model("A cat.", "Grey.", "Yes.")
    async with agent(there) as asked:
        first = await asked.send("What is it?", attachments=[CAT])
        second = await asked.send("Its colour?", history=first.messages)
        await asked.send("Sure?", history=[*first.messages, *second.messages], attachments=[DOG])
    assert net.asked == ["cat", "dog"]
    bodies = [body["messages"] for body in there.bodies]
    assert bodies[1][: len(bodies[0])] == bodies[0]
    assert bodies[2][: len(bodies[1])] == bodies[1]


async def test_signed_thinking_survives_since_the_digest_is_that_of_what_was_sent(net: Net) -> None:
    from dragoman import ThinkingPart

    signed = Message.model(ThinkingPart("Grey.", {"anthropic": {"signature": "c2ln"}}), "A cat.")
    clip = LinkPart("https://a.test/notes.txt", "text/plain")
    net.answers["notes"] = [DataPart(b"hello", "text/plain", "notes.txt")]
    there = model(signed, "Yes.", wire="anthropic")
    async with agent(there) as asked:
        first = await asked.send("What is it?", attachments=[clip])
        await asked.send("Sure?", history=first.messages)
    assert [block["type"] for block in there.bodies[1]["messages"][1]["content"]] == [
        "thinking",
        "text",
    ]
    assert net.asked == ["notes"]


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_on_every_wire_a_conversation_grows_at_its_end(net: Net, wire: str) -> None:
    @tool
    def photo() -> Any:
        """A photo."""
        return [TextPart("here"), DOG]

    there = ScriptedModel.like(
        PROVIDERS[wire], [call("photo"), "A cat and a dog.", "Yes."], key_required=False
    )
    async with Agent(there, tools=[photo], middleware=[fetch_files(POLICY, every=True)]) as asked:
        first = await asked.send("What is it?", attachments=[CAT])
        await asked.send("Sure?", history=first.messages)
    assert net.asked == ["cat", "dog"]
    assert not any(
        isinstance(part, LinkPart) for number in range(3) for part in sent(there, number)
    )
    texts = [msgspec.json.encode(body).decode() for body in there.bodies]
    assert all("a.test" not in text for text in texts)
    assert b64encode(PNG).decode()[:12] in texts[0]
    for before, after in pairwise(there.requests):
        if "previous_response_id" in after.options:  # the digest of what was sent still holds
            continue
        assert (
            chain_neutral_digests(after.messages)[: len(before.messages)]
            == chain_neutral_digests(before.messages)[:-1]
        )


async def test_a_provider_that_nobody_registered_on_a_wire_that_a_test_registers(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "_REGISTERED", {})
    wires.register(SimpleNamespace(**{**vars(wires.get("ollama")), "name": "mine"}))
    there = ScriptedModel(["A cat."], name="acme", wire="mine")
    async with agent(there) as asked:
        await asked.send("What is it?", attachments=[CAT])
    assert any(isinstance(part, DataPart) for part in sent(there))


async def test_without_links_nothing_stands_between(net: Net) -> None:
    async def following(request: ModelRequest) -> Any:
        yield []

    events = following(ModelRequest("m"))
    layer = fetch_files(POLICY)
    request = ModelRequest("m", (Message.user("Hi.", DataPart(PNG, "image/png")),))
    assert (
        layer.batches(
            request, lambda _: events, lambda _: pytest.fail("nobody asks whom it goes to")
        )
        is events
    )
    await events.aclose()


async def test_another_message_and_another_user_fetch_anew(net: Net) -> None:
    net.answers["cat"] = [PNG, PNG + b"later", PNG + b"hers"]
    there = model(*["A cat."] * 4)
    async with agent(there) as asked:
        for prompt, user in (
            ("What is it?", "he"),
            ("And now?", "he"),
            ("What is it?", "she"),
            ("What is it?", "he"),
        ):
            await asked.send(prompt, attachments=[CAT], resource_id=user)
    images = [
        part.data
        for number in range(4)
        for part in sent(there, number)
        if isinstance(part, DataPart)
    ]
    assert images == [PNG, PNG + b"later", PNG + b"hers", PNG]


async def test_one_url_twice_is_fetched_once(net: Net) -> None:
    there = model()
    async with agent(there) as asked:
        await asked.send(["Compare", CAT, CAT, DOG])
    assert sorted(net.asked) == ["cat", "dog"]
    assert len([part for part in sent(there) if isinstance(part, DataPart)]) == 3


async def test_links_in_results_of_tools(net: Net) -> None:
    @tool
    def photo() -> Any:
        """A photo."""
        return [TextPart("here"), CAT]

    there = model(call("photo"), "A cat.")
    async with Agent(there, tools=[photo], middleware=[fetch_files(POLICY)]) as asked:
        await asked.send("Look.")
    assert net.asked == ["cat"]


async def test_a_fallback_is_sent_what_it_can_take(net: Net) -> None:
    first = ScriptedModel([ProviderError("down")], name="first", wire="openai_chat")
    second = ScriptedModel(["A cat."], name="second", wire="ollama")
    async with Agent(fallback(first, second), middleware=[fetch_files(POLICY)]) as asked:
        assert (await asked.send("What is it?", attachments=[CAT])).output == "A cat."
    assert [any(isinstance(part, DataPart) for part in sent(each)) for each in (first, second)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequestError("the URL's host a.test is not one"),
        ProviderError("down"),
        StreamCutError("cut"),
    ],
)
async def test_a_file_that_cannot_be_fetched_is_an_error_for_who_sent_the_url(
    net: Net, error: Exception
) -> None:
    net.answers["cat"] = [error]
    WAITS.clear()
    there = model()
    async with agent(there) as asked:
        with pytest.raises(InvalidRequestError) as caught:
            await asked.send(
                "What is it?", attachments=[LinkPart("https://a.test/cat.png?sig=secret&x=1")]
            )
    assert caught.value.message.startswith(
        "https://a.test/cat.png cannot be fetched for the model: "
    )
    assert "sig" not in caught.value.message
    assert caught.value.__cause__ is error
    refused = isinstance(error, InvalidRequestError)
    assert len(net.asked) == (1 if refused else 4)
    assert ([] if refused else [0.25, 0.5, 1.0]) == WAITS
    assert there.requests == []


async def test_retries_are_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*url: Any, **how: Any) -> DataPart:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(link_files, "fetch", never)
    async with agent(model(), seconds=0.01) as asked:
        with pytest.raises(InvalidRequestError, match=r"within 0\.01 s"):
            await asked.send("What is it?", attachments=[CAT])


async def test_a_server_that_fails_once_is_asked_again(net: Net) -> None:
    net.answers["cat"] = [ProviderError("down"), PNG]
    there = model()
    async with agent(there) as asked:
        await asked.send("What is it?", attachments=[CAT])
    assert net.asked == ["cat", "cat"]


async def test_a_failure_may_be_a_loss_instead(net: Net) -> None:
    net.answers["cat"] = [InvalidRequestError("gone")]
    there = model()
    async with agent(there, on_failure="tell") as asked:
        result = await asked.send("What is it?", attachments=[CAT, DOG])
    assert [str(loss.which) for loss in result.losses if not loss.is_minor] == [
        "image/png https://a.test/cat.png"
    ]
    assert len([part for part in sent(there) if isinstance(part, DataPart)]) == 1


async def test_what_is_wrong_on_our_side_is_not_for_who_sent_the_url(net: Net) -> None:
    net.answers["cat"] = [SettingsError("no certificates could be read from here")]
    for on_failure in ("error", "tell"):
        async with agent(model(), on_failure=on_failure) as asked:
            with pytest.raises(SettingsError, match="no certificates"):
                await asked.send("What is it?", attachments=[CAT, DOG])


async def test_what_was_passed_on_once_is_passed_on_again(net: Net) -> None:
    """A file that came only for the next request would change how it begins."""
    net.answers["cat"] = [InvalidRequestError("gone"), PNG]
    there = model("I see none.", "None.")
    async with agent(there, on_failure="tell") as asked:
        first = await asked.send("What is it?", attachments=[CAT])
        await asked.send("Sure?", history=first.messages)
    assert net.asked == ["cat"]
    assert there.bodies[1]["messages"][:1] == there.bodies[0]["messages"][:1]


async def test_what_failed_is_asked_for_again_with_the_next_request(net: Net) -> None:
    net.answers["cat"] = [InvalidRequestError("gone"), PNG]
    async with agent(model()) as asked:
        with pytest.raises(InvalidRequestError):
            await asked.send("What is it?", attachments=[CAT])
        await asked.send("What is it?", attachments=[CAT])
    assert net.asked == ["cat", "cat"]


async def test_a_page_in_the_place_of_an_image_is_an_error(net: Net) -> None:
    net.answers["cat"] = [DataPart(b"<html>", "text/html")]
    async with agent(model()) as asked:
        with pytest.raises(InvalidRequestError, match="no image, but text/html"):
            await asked.send("What is it?", attachments=[LinkPart(CAT.url, "image/png")])


async def test_bounds_of_a_request(net: Net) -> None:
    there = model("A cat.", "Both.")
    async with agent(there, most=1) as asked:
        with pytest.raises(InvalidRequestError, match="names 2 files"):
            await asked.send("What is it?", attachments=[CAT, DOG])
        await asked.send("What is it?", attachments=[CAT])
    assert net.asked == ["cat"]
    async with agent(there, max_bytes=100, total_bytes=20, at_once=1) as asked:
        await asked.send("What is it?", attachments=[CAT, DOG])
    assert net.most[-2:] == [20, 4]


async def test_answers_that_are_kept_are_those_to_the_bytes(net: Net) -> None:
    """Before a cache of answers it counts what the model is sent."""
    net.answers["cat"] = [PNG, PNG + b"later"]
    there = model("A cat.", "Another cat.")
    async with Agent(there, middleware=[fetch_files(POLICY, kept_bytes=0), cache()]) as asked:
        answers = [(await asked.send("What is it?", attachments=[CAT])).output for _ in range(2)]
    assert answers == ["A cat.", "Another cat."]


async def test_a_gateways_clients_send_urls_to_a_provider_that_takes_bytes_alone(net: Net) -> None:
    there = gated("openai_chat", "ollama", "A cat.", middleware=[fetch_files(POLICY)])
    request = ModelRequest("gated", (Message.user("What is it?", CAT),))
    [message] = fold(await answered(there.client, request))
    assert message.text == "A cat."
    assert any(isinstance(part, DataPart) for part in sent(there.upstream))
    net.answers["dog"] = [
        InvalidRequestError("there is no file at the URL: a.test answers with HTTP 404")
    ]
    last = (await answered(there.client, ModelRequest("gated", (Message.user("And it?", DOG),))))[
        -1
    ]
    assert isinstance(last, RunError)
    assert isinstance(last.error, InvalidRequestError)
    assert "https://a.test/dog.png cannot be fetched" in last.error.message
    assert there.transport.statuses[-1] == 400


async def test_over_the_network() -> None:
    async def here(host: str) -> Sequence[str]:
        return ["127.0.0.1"]

    async with serving(answer(PNG, headers={"content-type": "image/png"})) as server:
        policy = AddressPolicy(
            ["a.test", "127.0.0.0/8"], schemes=["http"], ports=[server.port], resolve=here
        )
        there = model()
        async with Agent(there, middleware=[fetch_files(policy)]) as asked:
            await asked.send(
                "What is it?", attachments=[LinkPart(f"http://a.test:{server.port}/cat.png")]
            )
    assert [part.data for part in sent(there) if isinstance(part, DataPart)] == [PNG]


def test_where_links_stand() -> None:
    messages = [
        Message.user("a", CAT, LinkPart("gs://bucket/x"), LinkPart("HTTPS://a.test/x"), LinkPart("data:image/png;base64,AA==")),
        Message.model(ToolCallPart("1", "t", {})),
        Message.user(ToolResultPart("1", "t", (TextPart("x"), DOG)), ToolResultPart("2", "t", {"url": CAT.url})),
        Message.model(ToolResultPart("3", "web", (CAT,), run_by="provider")),
    ]  # fmt: skip
    assert dict(find_link_positions(messages)) == {0: [1, 3], 2: [0]}


def key(name: str) -> Any:
    return None, "", name


def test_files_are_kept_up_to_a_number_of_bytes() -> None:
    files = LinkedFiles(10, 60.0)
    for name in "abc":
        files.put(key(name), DataPart(b"1234", "x/y"))
        files.get(key("a"))
    assert [files.get(key(name)) is not None for name in "abc"] == [True, False, True]
    files.put(key("a"), DataPart(b"12345678901", "x/y"))
    assert [files.get(key(name)) is not None for name in "abc"] == [False, False, False]
    files.put(key("d"), DataPart(b"1234567890", "x/y"))
    assert files.get(key("d")) is not None
    few = LinkedFiles(4096, 60.0)
    for number in range(10):
        few.put(key(str(number)), None)
    found = [few.get(key(str(number))) for number in range(10)]
    assert [each is not None for each in found] == [False] * 6 + [True] * 4
    assert found[-1] is not None
    assert found[-1].file is None


def test_files_are_kept_as_long_as_they_are_needed() -> None:
    now = [0.0]
    files = LinkedFiles(100, 60.0, lambda: now[0])
    for name in "ab":
        files.put(key(name), DataPart(b"1", "x/y"))
    for now[0] in (50.0, 100.0):
        assert files.get(key("a")) is not None
    assert files.get(key("b")) is None
    now[0] = 161.0
    assert files.get(key("a")) is None


@pytest.mark.parametrize(
    "how",
    [
        {"max_bytes": 0},
        {"total_bytes": 0},
        {"seconds": 0},
        {"at_once": 0},
        {"most": 0},
        {"retries": -1},
        {"kept_bytes": -1},
        {"kept_seconds": -1},
        {"on_failure": "never"},
    ],
    ids=str,
)
def test_settings_that_mean_nothing(how: Mapping[str, Any]) -> None:
    with pytest.raises(SettingsError):
        fetch_files(POLICY, **how)


@pytest.mark.parametrize(
    ("policy", "how"),
    [
        ("*", {}),
        (None, {}),
        (POLICY, {"every": 1}),
        (POLICY, {"sleep": 1}),
        (POLICY, {"most": 1.5}),
        (POLICY, {"max_bytes": "1"}),
    ],
)
def test_arguments_of_another_type(policy: Any, how: Any) -> None:
    with pytest.raises(TypeError):
        fetch_files(policy, **how)
