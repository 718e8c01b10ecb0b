"""`dragoman mcp` as a program: the official client, and input that no client writes. Each test
starts processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from support.cli import SRC
from support.mcp import ERAS, Told, User, accepted, text

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MODULE = '''
import os, subprocess, sys, time
import anyio
from dragoman import Agent, ToolContext, tool
from dragoman.mcp import server
from dragoman.testing import ScriptedModel

print("printed while it is imported")

@tool
async def add(ctx: ToolContext, a: int, b: int) -> int:
    """Adds."""
    print("printed by a tool")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"])
    await ctx.progress(1, 1, f"input is empty: {sys.stdin.read() == ''}")
    return a + b

@tool(requires_approval=True)
def drop(path: str) -> str:
    """Drops."""
    return f"{path} dropped by {os.getpid()}"

@tool
async def wait(trace: str) -> str:
    """Waits."""
    with open(trace, "w") as file:
        file.write("began ")
    try:
        await anyio.sleep_forever()
    finally:
        with open(trace, "a") as file:
            file.write("ended")

agent = Agent(ScriptedModel(["I am an agent."]), tools=[add], display_name="My agent")
one = [add]
made = server(agent, name="made", expose="tools")
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "served_module.py").write_text(MODULE)
    return tmp_path


def command(module: Path, *arguments: str) -> StdioServerParameters:
    words = ["-m", "dragoman", "mcp", *arguments, "-C", str(module)]
    return StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": SRC})


@contextmanager
def started(module: Path, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "mcp", *arguments],
        cwd=module,
        env={**os.environ, "PYTHONPATH": SRC},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def stream(file: IO[bytes] | None) -> IO[bytes]:
    assert file is not None
    return file


def request(number: int, method: str, **params: Any) -> bytes:
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        + b"\n"
    )


HELLO = (
    request(
        0,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "x", "version": "1"},
    )
    + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)


def answers(output: bytes) -> dict[Any, dict[str, Any]]:
    """What was answered, by id. All that is written is the protocol's."""
    lines = [json.loads(line) for line in output.splitlines()]
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    return {line.get("id"): line for line in lines}


@pytest.mark.parametrize("era", ERAS)
async def test_the_official_client_starts_it_and_leaves_nothing_behind(
    module: Path, era: str
) -> None:
    user, told = User(accepted(approved=True)), Told()
    async with Client(
        command(module, "served_module"), mode=era, elicitation_callback=user
    ) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["add", "drop", "wait"]
        added = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=told)
        dropped = await client.call_tool("drop", {"path": "a"})
    assert text(added) == "3"
    assert told.words == ["input is empty: True"]
    process = re.fullmatch(r"a dropped by (\d+)", text(dropped))
    assert process is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(process[1]), 0)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["served_module:agent"], ["My_agent"]),
        (["served_module:agent", "--tools"], ["add"]),
        (["served_module:agent", "--both", "--name", "x"], ["x", "add"]),
        (["served_module:one"], ["add"]),
        (["served_module:made"], ["add"]),
    ],
)
async def test_what_is_served_is_named_on_the_command_line(
    module: Path, arguments: Sequence[str], names: Sequence[str]
) -> None:
    async with Client(command(module, *arguments)) as client:
        listed = (await client.list_tools()).tools
        assert [one.name for one in listed] == names
        if names[0] != "add":
            assert text(await client.call_tool(names[0], {"prompt": "Who?"})) == "I am an agent."


def test_what_is_no_request_is_answered_or_passed_over_and_the_server_goes_on(module: Path) -> None:
    lines = [
        HELLO,
        b"no json\n",
        b"\xff\xfe\x00\n",
        b"\n",
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "2.0"}\n',
        request(1, "no/such/method"),
        request(2, "tools/call", name=7),
        request(3, "tools/call", name="add", arguments=[1]),
        request(4, "tools/call", name="nobody", arguments={}),
        request(5, "tools/call", name="add", arguments={"a": "x" * 5_000_000}),
        request(6, "tools/call", name="add", arguments={"a": 1, "b": 2}),
    ]
    with started(module, "served_module") as process:
        stream(process.stdin).write(b"".join(lines))
        stream(process.stdin).flush()
        output = b""
        while (
            not {0, *range(1, 7)} <= answers(output).keys()
        ):  # the end of the input would end calls
            output += stream(process.stdout).readline()
        left, errors = process.communicate(timeout=20)
    found = answers(output + left)
    assert {number: found[number]["error"]["code"] for number in (1, 2, 3, 4)} == {
        1: -32601,
        2: -32602,
        3: -32602,
        4: -32602,
    }
    assert found[5]["result"]["isError"] is True
    assert len(found[5]["result"]["content"][0]["text"]) < 1000
    assert found[6]["result"]["content"][0]["text"] == "3"
    assert process.returncode == 0
    assert b"printed while it is imported" in errors


def test_the_end_of_the_input_ends_what_runs(module: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with started(module, "served_module") as process:
        stdin = stream(process.stdin)
        stdin.write(HELLO + request(1, "tools/call", name="wait", arguments={"trace": str(trace)}))
        stdin.flush()
        while not (trace.exists() and trace.read_text()):
            assert process.poll() is None
        stdin.close()
        assert process.wait(20) == 0
    assert trace.read_text() == "began ended"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [(), ("--http", "--port", "0")])
def test_it_ends_cleanly_when_it_is_asked_to(
    module: Path, number: signal.Signals, arguments: Sequence[str]
) -> None:
    with started(module, "served_module", *arguments) as process:
        if arguments:
            while b"serving at http://127.0.0.1:" not in stream(process.stderr).readline():
                assert process.poll() is None
        else:
            stream(process.stdin).write(HELLO)
            stream(process.stdin).flush()
            stream(process.stdout).readline()
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert process.returncode in (130, -number)
    assert output == b""
    assert b"Traceback" not in errors


async def test_over_http_the_address_is_told_for_a_clients_configuration(module: Path) -> None:
    with started(
        module, "served_module:agent", "--http", "--port", "0", "--token", "sesame"
    ) as process:
        errors = b""
        while b"\n}\n" not in errors:
            errors += await anyio.to_thread.run_sync(stream(process.stderr).readline)
        (entry,) = json.loads(errors[errors.index(b"\n{") :])["mcpServers"].values()
        assert entry["headers"] == {"Authorization": "Bearer TOKEN"}
        assert b"sesame" not in errors
        process.send_signal(signal.SIGINT)
        await anyio.to_thread.run_sync(process.wait)
