"""Agents behind AG-UI in other libraries, for `bench/ag_ui_server.py` and `bench/goals.py`: what
their model says is given. Each library is imported only where it is served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

__all__ = ["APPS"]

Says = Callable[[], AsyncIterator[str]]


def pydantic_ai(says: Says) -> tuple[Any, str]:
    """Returns an app with an agent whose model is a function, and its path."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    agent = Agent(FunctionModel(stream_function=lambda *_: says()))

    async def run(request: Any) -> Any:
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/", run, methods=["POST"])]), "/"


def agno(says: Says) -> tuple[Any, str]:
    """Returns an app with an agent whose model streams what is said, and its path."""
    from agno.agent import Agent
    from agno.models.base import Model
    from agno.models.response import ModelResponse
    from agno.os import AgentOS
    from agno.os.interfaces.agui import AGUI

    class Saying(Model):
        def invoke(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        async def ainvoke(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        def invoke_stream(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        async def ainvoke_stream(self, *args: Any, **how: Any) -> AsyncIterator[Any]:
            async for text in says():
                yield ModelResponse(content=text)

        def _parse_provider_response(self, response: Any, **how: Any) -> Any:
            return response

        def _parse_provider_response_delta(self, response: Any, **how: Any) -> Any:
            return response

    agent = Agent(model=Saying(id="saying"), telemetry=False)
    system = AgentOS(agents=[agent], interfaces=[AGUI(agent=agent)], telemetry=False)
    return system.get_app(), "/agui"


APPS: Mapping[str, Callable[[Says], tuple[Any, str]]] = {"pydantic_ai": pydantic_ai, "agno": agno}
"""Library → what makes its app."""
