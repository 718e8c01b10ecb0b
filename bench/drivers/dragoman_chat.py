"""dragoman: Agent.send_stream and a run with tools, through every layer."""

WIRE, VENV, DISTS, IMPORT = "chat", "dragoman", "dragoman", "from dragoman import Agent"
import tools

from dragoman import Agent

AGENTS = {}


def agent(base_url, functions=()):
    key = (base_url, bool(functions))
    if key not in AGENTS:
        AGENTS[key] = Agent("openai:gpt-4o", base_url=base_url + "/v1", tools=functions, system=tools.SYSTEM)
    return AGENTS[key]


async def text_stream(base_url, n):
    async for chunk in agent(base_url).send_stream(tools.PROMPT):
        if chunk.output:
            yield chunk.output


async def tool_round(base_url):
    text = []
    async for chunk in agent(base_url, tuple(tools.FUNCS.values())).send_stream(tools.PROMPT):
        if chunk.output:
            text.append(chunk.output)
    return "".join(text).lstrip("\n")


async def short(base_url):
    return (await agent(base_url).send(tools.PROMPT)).output


async def close():
    for one in AGENTS.values():
        await one.close()
