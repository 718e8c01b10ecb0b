"""What the coding agents that `dragoman run` starts read: their variables and options, as a table.

In a text of the table, `$url` is the gateway's address, `$key` the key of this run, `$model` the name
that the program asks for, and `$window` how many tokens that model takes. A text with something that
is not known is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from types import MappingProxyType

import msgspec

__all__ = ["CODING_AGENTS", "CodingAgent", "find_agent", "make_command"]


class CodingAgent(msgspec.Struct, frozen=True):
    """How a program learns of its gateway."""

    install: str
    """A command that installs it, for errors."""
    variables: Mapping[str, str]
    """Variables that it gets. Those that are empty are taken away."""
    options: Sequence[tuple[str, str]] = ()
    """Options with their texts, which go before those of the user."""
    files: Mapping[str, str] = {}
    """Variables that name a file → what is in it."""


_OPENAI = {"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"}
_GOOGLE = {
    "GOOGLE_GEMINI_BASE_URL": "$url",
    "GEMINI_API_KEY": "$key",
    "GEMINI_MODEL": "$model",
    "GOOGLE_GENAI_USE_VERTEXAI": "",
    "GOOGLE_GENAI_USE_GCA": "",
    "GOOGLE_API_KEY": "",
}
_GOOGLE_FILES = {
    # Else it signs in to Google, or refuses to run without a terminal.
    "GEMINI_CLI_SYSTEM_SETTINGS_PATH": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
}
_ANTHROPIC = {
    "ANTHROPIC_BASE_URL": "$url",
    "ANTHROPIC_MODEL": "$model",
    # Its aliases, and what it asks of a small model and in subagents.
    "ANTHROPIC_DEFAULT_OPUS_MODEL": "$model",
    "ANTHROPIC_DEFAULT_SONNET_MODEL": "$model",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "$model",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "$window",
    "CLAUDE_CODE_USE_BEDROCK": "",
    "CLAUDE_CODE_USE_VERTEX": "",
    "CLAUDE_CODE_USE_FOUNDRY": "",
}
_OPENCODE = (
    '{"model": "dragoman/$model", "small_model": "dragoman/$model", "provider": {"dragoman": {'
    '"npm": "@ai-sdk/openai-compatible", "name": "dragoman", '
    '"options": {"baseURL": "$url/v1", "apiKey": "$key"}, '
    '"models": {"$model": {"attachment": true, "reasoning": true, '
    '"modalities": {"input": ["text", "image"], "output": ["text"]}}}}}}'
)
_AIDER = {
    "OPENAI_API_BASE": "$url/v1",
    "OPENAI_API_KEY": "$key",
    "AIDER_MODEL": "openai/$model",
}
_CODEX = '{name = "dragoman", base_url = "$url/v1", env_key = "DRAGOMAN_RUN_KEY", wire_api = "responses"}'

CODING_AGENTS: Mapping[str, CodingAgent] = MappingProxyType(
    {
        "claude": CodingAgent(
            "npm install -g @anthropic-ai/claude-code",
            # With a key in ANTHROPIC_API_KEY it asks first whether it may use it.
            {**_ANTHROPIC, "ANTHROPIC_AUTH_TOKEN": "$key", "ANTHROPIC_API_KEY": ""},
        ),
        "codex": CodingAgent(
            "npm install -g @openai/codex",
            {"DRAGOMAN_RUN_KEY": "$key"},
            (
                ("-c", 'model_provider="dragoman"'),
                ("-c", f"model_providers.dragoman={_CODEX}"),
                ("-c", "model_context_window=$window"),
                ("-m", "$model"),
            ),
        ),
        "gemini": CodingAgent("npm install -g @google/gemini-cli", _GOOGLE, files=_GOOGLE_FILES),
        "qwen": CodingAgent(
            "npm install -g @qwen-code/qwen-code",
            {**_OPENAI, "OPENAI_MODEL": "$model"},
            (("--auth-type", "openai"),),
        ),
        "opencode": CodingAgent(
            "npm install -g opencode-ai", {"OPENCODE_CONFIG_CONTENT": _OPENCODE}
        ),
        "aider": CodingAgent("python -m pip install aider-install && aider-install", _AIDER),
    }
)
"""Name of a program → what it reads."""
_ANY = CodingAgent(
    "",
    {
        **_ANTHROPIC,
        "ANTHROPIC_API_KEY": "$key",
        "ANTHROPIC_AUTH_TOKEN": "$key",
        **_OPENAI,
        "OPENAI_MODEL": "$model",
        **_AIDER,
        **_GOOGLE,
        "OPENCODE_CONFIG_CONTENT": _OPENCODE,
        "DRAGOMAN_RUN_KEY": "$key",
    },
    files=_GOOGLE_FILES,
)
"""What a program gets that is not in the table: it may be a script that starts one."""


def find_agent(program: str) -> CodingAgent:
    """Returns how a program learns of its gateway."""
    return CODING_AGENTS.get(Path(program).stem.lower(), _ANY)


def make_command(
    command: Sequence[str],
    *,
    url: str,
    key: str,
    model: str | None,
    window: int | None,
    folder: Path,
) -> tuple[list[str], dict[str, str | None]]:
    """Returns the command with which a program asks the gateway, and its variables; None: it must
    not have it.

    Args:
        command: the program and its options.
        url: the gateway's address.
        key: what the gateway lets in.
        model: the name that the program is to ask for; None leaves that to the program.
        window: how many tokens that model takes, or None if that is not known.
        folder: where files are written that only this run reads.
    """
    agent = find_agent(command[0])
    window_text = None if window is None else str(window)
    known = {"url": url, "key": key, "model": model, "window": window_text}
    names = {name: text for name, text in known.items() if text}
    options = [
        part
        for option, text in agent.options
        if (filled := _fill(text, names)) is not None
        for part in (option, filled)
    ]
    variables: dict[str, str | None] = {}
    for name, text in agent.variables.items():
        if text == "":
            variables[name] = None
        elif (filled := _fill(text, names)) is not None:
            variables[name] = filled
    for name, text in agent.files.items():
        file = folder / f"{name}.json"
        file.write_text(text, "utf-8")
        variables[name] = str(file)
    return [command[0], *options, *command[1:]], variables


def _fill(text: str, names: Mapping[str, str]) -> str | None:
    """Returns a text of the table with its names replaced, or None if one is not known."""
    try:
        return Template(text).substitute(names)
    except KeyError:
        return None
