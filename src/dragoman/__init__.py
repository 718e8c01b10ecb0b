"""dragoman: one conversation, every model provider.

    from dragoman import Agent, tool

    agent = Agent("local", tools=[...])
    result = await agent.send("Hello")

Values and the functions on them are loaded at once; what does something is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.capability import Capability
from dragoman.errors import DragomanError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)
from dragoman.fold import compact, fold, unfold
from dragoman.interrupt import Interrupt, Resume
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.repair import repair
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.result import BatchEmbeddingsResult, ChatResult, EmbeddingsResult, ModelInfo
from dragoman.run_request import RunRequest
from dragoman.saved import dump_messages, load_messages

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.chat import Chat
    from dragoman.embeddings.similarity import cosine_similarity, most_similar
    from dragoman.hooks import Hooks
    from dragoman.limits import Limits
    from dragoman.model.fallbacks import fallback
    from dragoman.prompt import RunOptions
    from dragoman.providers import Provider
    from dragoman.run import Run
    from dragoman.tools import (
        ParallelToolExecutor,
        Tool,
        ToolContext,
        ToolExecutionResult,
        ToolExecutor,
        ToolIdCoordinator,
        Toolset,
        handoff,
        tool,
        toolset,
    )

__all__ = [
    "Agent",
    "BatchEmbeddingsResult",
    "Capability",
    "Chat",
    "ChatResult",
    "Custom",
    "DataPart",
    "DragomanError",
    "EmbeddingsResult",
    "Event",
    "FilePart",
    "FinishReason",
    "Hooks",
    "Interrupt",
    "Limits",
    "LinkPart",
    "MarkPart",
    "Message",
    "MessageDropped",
    "MessageFinished",
    "MessageStarted",
    "ModelInfo",
    "ModelRequest",
    "Origin",
    "ParallelToolExecutor",
    "PartDelta",
    "PartFinished",
    "PartStarted",
    "Provider",
    "ProviderPart",
    "Resume",
    "Role",
    "Run",
    "RunError",
    "RunFinished",
    "RunOptions",
    "RunRequest",
    "RunStarted",
    "ServerTool",
    "Settings",
    "StateDelta",
    "StateSnapshot",
    "StepFinished",
    "StepStarted",
    "TextPart",
    "ThinkingPart",
    "Tool",
    "ToolCallPart",
    "ToolContext",
    "ToolExecutionResult",
    "ToolExecutor",
    "ToolIdCoordinator",
    "ToolResultPart",
    "ToolSpec",
    "Toolset",
    "Usage",
    "compact",
    "cosine_similarity",
    "dump_messages",
    "fallback",
    "fold",
    "handoff",
    "load_messages",
    "most_similar",
    "repair",
    "tool",
    "toolset",
    "unfold",
]

_LAZY = {
    "Agent": "dragoman.agent",
    "Chat": "dragoman.chat",
    "Hooks": "dragoman.hooks",
    "Limits": "dragoman.limits",
    "Provider": "dragoman.providers",
    "Run": "dragoman.run",
    "RunOptions": "dragoman.prompt",
    "fallback": "dragoman.model",
    "cosine_similarity": "dragoman.embeddings.similarity",
    "most_similar": "dragoman.embeddings.similarity",
    "ParallelToolExecutor": "dragoman.tools",
    "Tool": "dragoman.tools",
    "ToolContext": "dragoman.tools",
    "ToolExecutionResult": "dragoman.tools",
    "ToolExecutor": "dragoman.tools",
    "ToolIdCoordinator": "dragoman.tools",
    "Toolset": "dragoman.tools",
    "handoff": "dragoman.tools",
    "tool": "dragoman.tools",
    "toolset": "dragoman.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
