"""A gateway: a client of Anthropic's API in front of another provider's model.

Run: python examples/gateway.py     (dragoman serve --gateway examples/gateway.toml serves it until Ctrl-C)
"""

import asyncio
from pathlib import Path

from dragoman import Agent, serve


async def main() -> None:
    gateway = serve.Gateway.from_toml(Path(__file__).with_name("gateway.toml"))
    url = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(
        serve.serve_http(serve.app(gateway=gateway), port=0, ready=url.set_result)
    )
    base_url = f"{await url}/anthropic/v1"
    async with Agent("anthropic:small", base_url=base_url, api_key="none") as client:
        print((await client.send("Name a river.")).output)
    server.cancel()
    await asyncio.wait([server])


if __name__ == "__main__":
    asyncio.run(main())
