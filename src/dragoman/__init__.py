"""dragoman: one conversation, every model provider.

    from dragoman import Agent, tool

    agent = Agent("local", tools=[...])
    result = await agent.send("Hello")

Values and the functions on them are loaded at once; what does something is loaded when it is first
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.capability import Capability
from dragoman.errors import DragomanError, ModelRetry
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
    Citation,
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
    dump_messages,
    load_messages,
)
from dragoman.repair import repair
from dragoman.request import ModelRequest, RunRequest, ServerTool, Settings, ToolSpec
from dragoman.result import BatchEmbeddingsResult, ChatResult, EmbeddingsResult, ModelInfo
from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.chat import Chat
    from dragoman.embeddings.similarity import cosine_similarity, most_similar
    from dragoman.history import MessageList
    from dragoman.hooks import Hooks
    from dragoman.limits import Limits
    from dragoman.memory import Memory
    from dragoman.model.fallbacks import fallback
    from dragoman.partial import Partial
    from dragoman.prompt import RunOptions
    from dragoman.providers import Provider
    from dragoman.remote import remote_agent
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
    from dragoman.tracing import trace

__all__ = [
    "Agent",
    "BatchEmbeddingsResult",
    "Capability",
    "Chat",
    "ChatResult",
    "Citation",
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
    "Memory",
    "Message",
    "MessageDropped",
    "MessageFinished",
    "MessageList",
    "MessageStarted",
    "ModelInfo",
    "ModelRequest",
    "ModelRetry",
    "Origin",
    "ParallelToolExecutor",
    "PartDelta",
    "PartFinished",
    "PartStarted",
    "Partial",
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
    "remote_agent",
    "repair",
    "tool",
    "toolset",
    "trace",
    "unfold",
]

_MODULES = {
    "Agent": "agent",
    "Chat": "chat",
    "Hooks": "hooks",
    "Limits": "limits",
    "Memory": "memory",
    "MessageList": "history",
    "Partial": "partial",
    "Provider": "providers",
    "Run": "run",
    "RunOptions": "prompt",
    "fallback": "model",
    "cosine_similarity": "embeddings.similarity",
    "most_similar": "embeddings.similarity",
    "ParallelToolExecutor": "tools",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolExecutionResult": "tools",
    "ToolExecutor": "tools",
    "ToolIdCoordinator": "tools",
    "Toolset": "tools",
    "handoff": "tools",
    "remote_agent": "remote",
    "tool": "tools",
    "toolset": "tools",
    "trace": "tracing",
}

__getattr__ = lazy("dragoman", _MODULES)


def __dir__() -> list[str]:
    return __all__
