"""Scenes of ten turns before a strict provider: what applications do between two requests.

Each scene is a coroutine over a `Stage`, which makes agents for the provider and asks them, streamed
or whole. A scene names in `SCENES` what it changes knowingly, so that a test knows what may be lost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel

from dragoman import Chat, Message, dump_messages, handoff, load_messages
from dragoman.codec.memos import is_memo
from dragoman.mcp import mcp
from dragoman.memory import Memory, Recall, WorkingMemory
from dragoman.tools import Tool, toolset
from prefix.served import CHANGED, SERVED
from prefix.stage import TURNS, Stage, dig, fill, look, measure, paint
from support.embedder import WordEmbedder


async def talk(stage: Stage) -> None:
    """Text alone."""
    async with stage.agent(system="You dig.") as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn}")


async def tools(stage: Stage) -> None:
    """Rounds of parallel calls."""
    async with stage.agent(system="You dig.", tools=[look, measure]) as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn} tools {turn % 3}")


async def approvals(stage: Stage) -> None:
    """Two calls that wait, answered one by one, each with another agent from stored messages."""
    stored = dump_messages([])
    for turn in range(TURNS):
        async with stage.agent(system="You dig.", tools=[dig, fill]) as agent:
            history = load_messages(stored)
            result = await stage.ask(agent, f"turn {turn} tools 1", history=history)
            stored = dump_messages([*history, *result.messages])
        while result.pending:
            async with stage.agent(system="You dig.", tools=[dig, fill]) as agent:
                history = load_messages(stored)
                result = await stage.ask(
                    agent, None, history=history, resume=[result.pending[0].approve()]
                )
                stored = dump_messages([*history, *result.messages])


class Place(BaseModel):
    name: str


async def typed(stage: Stage) -> None:
    """Answers of a type, of which each needs a second try and fails; the talk goes on."""
    async with stage.agent(system="You dig.", tools=[look, measure]) as agent:
        history: list[Message] = []
        for turn in range(TURNS):
            if turn % 3:
                result = await stage.ask(agent, f"turn {turn} tools 1", history=history)
                history += result.messages
                continue
            try:
                result = await agent.send_for(f"turn {turn} tools 0", Place, history=history)
                history += result.messages
            except Exception as error:
                history += getattr(getattr(error, "result", None), "messages", [])


async def fallback_and_back(stage: Stage) -> None:
    """Another model of the provider for three turns, then back."""
    async with stage.agent(system="You dig.", tools=[look, measure]) as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            other = {"model": "anthropic:claude-sonnet-5-5"} if turn in (3, 4, 5) else {}
            await stage.ask(chat, f"turn {turn} tools {turn % 2}", **other)


async def hand_off(stage: Stage) -> None:
    """The conversation goes to another agent and returns."""
    async with (
        stage.agent(system="You measure.", tools=[look, measure], display_name="Surveyor") as two,
        stage.agent(system="You dig.", tools=[handoff(two), look], display_name="Digger") as one,
    ):
        chat = Chat(one)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn} tools {1 if turn in (2, 6) else 0}")


async def agents_in_tools(stage: Stage) -> None:
    """A tool that asks another agent."""
    surveyor = stage.agent(system="You measure.", display_name="Surveyor")
    tools = [surveyor.as_tool(description="Measures."), look]
    async with surveyor, stage.agent(system="You dig.", tools=tools) as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn} tools {turn % 2}")


async def changing_toolset(stage: Stage) -> None:
    """A toolset that lists other tools in every third turn."""
    turn = 0

    @toolset
    def shed(context: Any) -> list[Tool]:
        return [look, measure, paint] if turn // 3 % 2 else [look, measure]

    async with stage.agent(system="You dig.", tools=[shed]) as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn} tools 1")


async def late_tool(stage: Stage) -> None:
    """A tool that comes in the middle of the conversation and stays."""
    history: list[Message] = []
    for turn in range(TURNS):
        late = [paint] if turn >= 5 else []
        async with stage.agent(system="You dig.", tools=[look, measure, *late]) as agent:
            result = await stage.ask(agent, f"turn {turn} tools 1", history=history)
            history += result.messages


async def changing_system(stage: Stage) -> None:
    """A system text with the number of the turn."""
    history: list[Message] = []
    for turn in range(TURNS):
        async with stage.agent(
            system=f"You dig. It is day {turn // 2}.", tools=[look, measure]
        ) as agent:
            result = await stage.ask(agent, f"turn {turn} tools 1", history=history)
            history += result.messages


async def window(stage: Stage, **size: Any) -> None:
    """A thread in memory of which a window is sent."""
    memory = Memory(**size)
    async with stage.agent(system="You dig.", tools=[look, measure], memory=memory) as agent:
        for turn in range(TURNS):
            await stage.ask(agent, f"turn {turn} tools 1", thread_id="one")


async def window_of_messages(stage: Stage) -> None:
    """The newest messages of a thread."""
    await window(stage, last_messages=8)


async def window_of_tokens(stage: Stage) -> None:
    """As many messages of a thread as fit."""
    await window(stage, tokens=300)


async def working_memory(stage: Stage) -> None:
    """A working memory, which the model changes in every second turn, and others at times."""
    memory = Memory(working=WorkingMemory(), last_messages=1000)
    async with stage.agent(system="You dig.", tools=[look], memory=memory) as agent:
        for turn in range(TURNS):
            if turn in (3, 6):
                await memory.merge_working(f"# Facts\n- day {turn}", resource_id="ann")
            prompt = f"turn {turn} tools {turn % 2}"
            await stage.ask(agent, prompt, thread_id="one", resource_id="ann")


async def recalled(stage: Stage) -> None:
    """Memos of another conversation in every second turn, and of this one."""
    recall = Recall(WordEmbedder(), scope="resource", around=1)
    memory = Memory(last_messages=1000, recall=recall)
    facts = [Message.user(f"fact {number} of turn {number}") for number in range(0, TURNS, 2)]
    await memory.save(facts, "old", resource_id="ann")
    async with stage.agent(system="You dig.", tools=[look, measure], memory=memory) as agent:
        for turn in range(TURNS):
            prompt = f"turn {turn} tools {turn % 2} fact {turn}"
            await stage.ask(agent, prompt, thread_id="one", resource_id="ann")
    stored = (await memory.recall("one", per_page=None)).items
    assert sum(map(is_memo, stored)) >= 2


async def stored_history(stage: Stage) -> None:
    """A history that an earlier release stored: its origins have one digest."""
    history: list[Message] = []
    async with stage.agent(system="You dig.", tools=[look, measure]) as agent:
        for turn in range(TURNS):
            result = await stage.ask(agent, f"turn {turn} tools 1", history=history)
            history = load_messages(dump_messages([*history, *result.messages]))
            if turn < TURNS // 2:
                history = [as_stored_before(message) for message in history]


def as_stored_before(message: Message) -> Message:
    """A message as the release before stored it: it knew neither of openings nor of rules."""
    if message.origin is None:
        return message
    origin = msgspec.structs.replace(message.origin, system=None, tools=None, binds=None)
    return message.replace(origin=origin, native=None)


async def mcp_tools(stage: Stage) -> None:
    """Tools of an MCP server, which is asked for them before each model call."""
    command = [sys.executable, "-m", "dragoman", "mcp", "prefix.stage:SHED"]
    folders = [str(Path(__file__).parents[1]), *sys.path]
    server = mcp(command, env={"PYTHONPATH": os.pathsep.join(folders)})
    async with stage.agent(system="You dig.", tools=[server]) as agent:
        chat = Chat(agent)
        for turn in range(TURNS):
            await stage.ask(chat, f"turn {turn} tools {turn % 2}")


class Scene(NamedTuple):
    """A scene, and what in it breaks the prefix knowingly."""

    play: Callable[[Stage], Awaitable[None]]
    breaks: frozenset[str] = frozenset()


SCENES: Mapping[str, Scene] = {
    "talk": Scene(talk),
    "tools": Scene(tools),
    "approvals": Scene(approvals),
    "typed": Scene(typed),
    "fallback and back": Scene(fallback_and_back),
    "hand-off": Scene(hand_off),
    "agents in tools": Scene(agents_in_tools),
    "changing toolset": Scene(changing_toolset),
    "late tool": Scene(late_tool),
    "changing system": Scene(changing_system),
    "window of messages": Scene(window_of_messages, frozenset({"window"})),
    "window of tokens": Scene(window_of_tokens, frozenset({"window"})),
    "working memory": Scene(working_memory),
    "recall": Scene(recalled),
    "stored history": Scene(stored_history),
    "MCP tools": Scene(mcp_tools),
    **{name: Scene(play) for name, play in SERVED.items()},
    # What a gateway had to change is told to its client in a header, not in the result.
    **{name: Scene(play, frozenset({"system"})) for name, play in CHANGED.items()},
}
