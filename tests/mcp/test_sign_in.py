"""Signing in to MCP servers by OAuth: what waits, what ends it, and where tokens are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from dragoman import Agent, dump_messages, load_messages
from dragoman.errors import ToolError
from dragoman.mcp import MemoryTokenStore, OAuth, TokenStore, mcp
from dragoman.testing import ScriptedModel
from dragoman.testing import call as calls
from dragoman.tools import SignIn
from support.answered import answered
from support.mcp_http import Accounts, go_to, serving_with_accounts

pytestmark = pytest.mark.anyio
BACK = "http://127.0.0.1:1/callback"


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


@pytest.fixture(params=["auto", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(accounts: Accounts) -> Iterator[str]:
    with serving_with_accounts(accounts) as served:
        yield served


async def test_a_sign_in_is_an_interrupt_that_another_process_may_end(
    url: str, protocol: str, accounts: Accounts
):
    store: TokenStore = MemoryTokenStore()

    def agent() -> Agent[None]:
        return Agent(
            model, tools=[mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK, store=store))]
        )

    model = ScriptedModel([calls("sign_in_to_127_0_0_1"), calls("whoami"), "Done."])
    first = await agent().send("Who am I?")
    assert [tool.name for tool in model.requests[0].tools] == ["sign_in_to_127_0_0_1"]
    (wait,) = first.pending
    assert (wait.reason, wait.message) == ("auth", "Please sign in to 127.0.0.1.")
    back = go_to(wait.metadata["url"])

    history = load_messages(dump_messages(first.messages))
    result = await agent().send(None, history=history, resume=[wait.answer(back)])
    assert result.output == "Done."
    assert [tool.name for tool in model.requests[1].tools] == ["whoami"]
    assert model.requests[2].messages[-1].tool_results[0].result == "you"
    assert len(accounts.clients) == 1

    assert await mcp(url, oauth=OAuth(redirect_uri=BACK, store=store)).call_tool("whoami") == "you"


async def test_it_may_be_done_before_any_run(url: str, protocol: str):
    server = mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK))
    async with server:
        address = await server.sign_in()
        assert address is not None
        assert await server.sign_in() == address
        assert await server.sign_in(go_to(address)) is None
        assert await server.call_tool("whoami") == "you"
        assert await server.sign_in() is None


@pytest.mark.slow
async def test_a_token_that_is_over_is_renewed_and_one_that_is_revoked_is_asked_for(
    url: str, protocol: str, accounts: Accounts
):
    store = MemoryTokenStore()
    server = mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK, store=store))
    address = await server.sign_in()
    assert address is not None
    await server.sign_in(go_to(address))
    kept = msgspec.json.decode(await store.load(url) or b"")
    await store.save(url, msgspec.json.encode({**kept, "expires_at": 1.0}))
    assert await server.call_tool("whoami") == "you"
    assert accounts.refreshed == 1

    async with server:
        assert await server.call_tool("whoami") == "you"
        accounts.access.clear()
        accounts.refresh.clear()
        with pytest.raises(SignIn) as needed:
            await server.call_tool("whoami", {}, answered())
        back = go_to(str(needed.value.metadata["url"]))
        assert await server.call_tool("whoami", {}, answered(back)) == "you"


async def test_an_answer_of_another_sign_in_changes_nothing(url: str, protocol: str):
    server = mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK))
    address = await server.sign_in()
    assert await server.sign_in(f"{BACK}?code=stolen&state=other") == address


async def test_who_does_not_agree_is_not_asked_for_that_again(url: str, protocol: str):
    server = mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK))
    address = await server.sign_in()
    assert address is not None
    state = address.partition("state=")[2].partition("&")[0]
    with pytest.raises(ToolError, match="the sign-in failed: access_denied"):
        await server.sign_in(f"{BACK}?error=access_denied&state={state}")
    assert await server.sign_in() != address


async def test_a_code_that_the_server_does_not_take_is_an_error(url: str, protocol: str):
    server = mcp(url, protocol=protocol, oauth=OAuth(redirect_uri=BACK))
    address = await server.sign_in()
    assert address is not None
    state = address.partition("state=")[2].partition("&")[0]
    with pytest.raises(ToolError, match="signing in failed"):
        await server.sign_in(f"{BACK}?code=wrong&state={state}")


async def test_a_client_that_the_server_knows_is_not_registered(
    url: str, protocol: str, accounts: Accounts
):
    known = OAuthClientInformationFull(
        client_id="me",
        client_secret="s3cret",
        redirect_uris=[AnyUrl(BACK)],
        token_endpoint_auth_method="client_secret_post",
    )
    accounts.clients["me"] = known
    oauth = OAuth(redirect_uri=BACK, client_id="me", client_secret="s3cret", scope="read")
    server = mcp(url, protocol=protocol, oauth=oauth)
    address = await server.sign_in()
    assert address is not None
    assert "client_id=me" in address
    assert await server.sign_in(go_to(address)) is None
    assert list(accounts.clients) == ["me"]


def test_no_secret_is_shown():
    assert "s3cret" not in repr(OAuth(redirect_uri=BACK, client_id="me", client_secret="s3cret"))
