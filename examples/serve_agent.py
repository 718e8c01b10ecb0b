"""An agent of yours behind the endpoints of models: here it is served, and asked by a client of
OpenAI's API.

Run: python examples/serve_agent.py     (dragoman serve examples.serve_agent:agent serves it until Ctrl-C)
"""

import asyncio

from dragoman import Agent, serve, tool


@tool
def stock(article: str) -> int:
    """How many of an article there are."""
    return 4


agent = Agent(tools=[stock], system="You look after a shop.")


async def main() -> None:
    app = serve.app({"shop": agent}, auth="a-key-of-the-shop")
    url = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve.serve_http(app, port=0, ready=url.set_result))
    base_url = f"{await url}/v1"
    async with Agent("openai:shop", base_url=base_url, api_key="a-key-of-the-shop") as client:
        print((await client.send("How many umbrellas are there?")).output)
    server.cancel()
    await asyncio.wait([server])


if __name__ == "__main__":
    asyncio.run(main())
