"""The clients of docs/guides/clients.md talk to a server, as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.guides import GUIDE_KEY, Program, output, programs
from support.serving import in_a_thread

pytestmark = pytest.mark.service
CLIENTS = programs("clients.md")


@pytest.mark.parametrize(
    "client", CLIENTS, ids=[f"{each.language}{n}" for n, each in enumerate(CLIENTS)]
)
def test_each_client_gets_an_answer(client: Program, tmp_path: Path) -> None:
    app = serve.app({"local": Agent(ScriptedModel(["Rhine"] * 4))}, auth=GUIDE_KEY)
    with in_a_thread(app) as url:
        printed = output(client, url, tmp_path)
    assert "Rhine" in printed.replace('"', "").replace("\\n", "")


def test_the_guides_gateway_answers(tmp_path: Path) -> None:
    [client] = programs("gateway.md")
    with in_a_thread(serve.app(gateway=serve.Gateway({"fast": ScriptedModel(["Rhine"])}))) as url:
        assert '"text":"Rhine"' in output(client, url, tmp_path)


def test_there_are_clients_in_each_language() -> None:
    assert {client.language for client in CLIENTS} == {"sh", "py", "js"}


def test_each_api_of_the_table_has_a_client() -> None:
    shown = "\n".join(client.code for client in CLIENTS)
    paths = ["/v1", "/v1/messages", "/v1beta", "/api/chat", "/mistral", "/cohere", "/anthropic"]
    assert [path for path in paths if f"http://127.0.0.1:8000{path}" not in shown] == []
