"""What arguments of other libraries are called here, for people who come from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["unknown_arguments"]

_IN_SETTINGS = (
    "temperature",
    "max_tokens",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "tool_choice",
    "reasoning_effort",
)
_HERE: Mapping[str, str] = {
    "instructions": "system= of the Agent",
    "system_prompt": "system= of the Agent",
    "prompt": "system= of the Agent; the prompt is the first argument of send()",
    "message_history": "history=",
    "messages": "history=, or RunRequest(messages)",
    "chat_history": "history=",
    "output_type": "send_for(prompt, Type), or run(output_type=)",
    "result_type": "send_for(prompt, Type)",
    "response_model": "send_for(prompt, Type)",
    "response_format": "send_for(prompt, Type), or output_schema=",
    "model_settings": "settings=Settings(…)",
    "functions": "tools=",
    "toolsets": "tools=, which takes toolsets too",
    "mcp_servers": "tools=[mcp(…)]",
    "name": "display_name=",
    "session_id": "thread_id=",
    "conversation_id": "thread_id=",
    "user_id": "resource_id=",
    "stream": "send_stream()",
    "max_turns": "limits=Limits(model_calls=…)",
    "usage_limits": "limits=Limits(…)",
    "retries": "limits= and middleware=",
    "callbacks": "hooks=",
    "context": "deps= or context=",
    "extra_body": "options=",
    "timeout": "limits=Limits(seconds=…)",
    **{name: f"settings=Settings({name.removesuffix('_effort')}=…)" for name in _IN_SETTINGS},
}
"""Argument as other libraries have it → how that is written here."""


def unknown_arguments(call: str, names: Iterable[str], known: Iterable[str]) -> TypeError:
    """The error for arguments that there are not, with what was probably meant.

    Args:
        call: what was called, such as `Agent()`.
        names: the arguments that are not known.
        known: those that there are.
    """
    from difflib import get_close_matches

    known = list(known)
    names = sorted(names)
    meant = {
        name: _HERE.get(name)
        or next((f"{near}=" for near in get_close_matches(name, known, 1)), "")
        for name in names
    }
    hints = [
        f"{name}= is {here} here" if name in _HERE else f"did you mean {here}"
        for name, here in meant.items()
        if here
    ]
    takes = f"it takes {', '.join(known)}"
    return TypeError(f"{call} takes no argument {', '.join(names)}; {'; '.join([*hints, takes])}")
