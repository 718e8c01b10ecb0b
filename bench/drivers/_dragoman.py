"""What every driver of ours does: Agent.send_stream, a run with tools, and a short answer, through
every layer."""

import tools

from dragoman import Agent


def make(model, path):
    """The driver's functions. `path` follows the scenario's URL."""
    agents = {}

    def agent(base_url, functions=()):
        key = (base_url, bool(functions))
        if key not in agents:
            agents[key] = Agent(
                model, base_url=base_url + path, api_key="k", tools=functions, system=tools.SYSTEM
            )
        return agents[key]

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
        for one in agents.values():
            await one.close()

    return text_stream, tool_round, short, close
