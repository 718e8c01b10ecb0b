"""A provider that speaks OpenAI's format, as one record: `own_provider.py
https://api.acme.example/v1`, and ACME_API_KEY."""

import sys

from dragoman import Agent, Capability, Provider

URL = "https://api.acme.example/v1"
ACME = Provider(
    name="acme",
    display_name="Acme",
    wire="openai_chat",
    base_url=URL,
    key_names=("ACME_API_KEY",),
    chat_model="acme-large",
    capabilities=frozenset({Capability.chat, Capability.tools}),
)


def main(base_url: str) -> None:
    with Agent(ACME, base_url=base_url) as agent:
        print(agent.send_sync("Name a river.").output)


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else URL)
