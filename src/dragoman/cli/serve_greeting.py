"""What `dragoman serve` prints: where it is, and lines that talk to it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

__all__ = ["greeting"]

_MOST_NAMES = 8

_TEXT = """\
serving {names} at {url}; Ctrl-C ends it

# curl
curl {url}/v1/chat/completions -H "content-type: application/json"{header} \\
  -d '{{"model": {model}, "messages": [{{"role": "user", "content": "Name a river."}}]}}'

# Python: pip install openai
{python_imports}from openai import OpenAI
client = OpenAI(base_url="{url}/v1", api_key={python_key})
print(client.chat.completions.create(model={model}, messages=[{{"role": "user", "content": "Name a river."}}]).choices[0].message.content)

// JavaScript: npm install openai
import OpenAI from "openai";
const client = new OpenAI({{ baseURL: "{url}/v1", apiKey: {javascript_key} }});
const answer = await client.chat.completions.create({{ model: {model}, messages: [{{ role: "user", content: "Name a river." }}] }});
console.log(answer.choices[0].message.content);
"""
_PROTOCOLS = """
# agents, in every protocol
AG-UI   {url}/ag-ui          for CopilotKit, assistant-ui and HttpAgent of @ag-ui/client
AI SDK  {url}/ai-sdk         for useChat: new DefaultChatTransport({{ api: … }})
A2A     {url}/a2a            its card: {url}/.well-known/agent-card.json
"""


def greeting(names: Sequence[str], url: str, variable: str | None, *, agents: bool = False) -> str:
    """Where the server is, and clients in three languages.

    `names`: what clients may ask for; `*` stands for any characters. `variable`: of the environment, which holds the key that clients send; `None`: they need none. `agents`: whether agents are among them,
    which are served in agent protocols too.
    """
    known = next((name for name in names if "*" not in name), "MODEL")
    shown = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    text = _TEXT + (_PROTOCOLS if agents else "")
    return text.format(
        url=url,
        names=shown or "models",
        model=msgspec.json.encode(known).decode(),
        header=f' -H "authorization: Bearer ${variable}"' if variable else "",
        python_imports="import os\n" if variable else "",
        python_key=f'os.environ["{variable}"]' if variable else '"none"',
        javascript_key=f"process.env.{variable}" if variable else '"none"',
    )
