"""A model that cannot be reached, and the one that answers in its place: who did, and what it
cost."""

from dragoman import Agent, Capability, Hooks, Provider

DOWN = Provider(
    name="down",
    display_name="A server that is down",
    wire="openai_chat",
    base_url="http://127.0.0.1:9/v1",
    chat_model="nobody",
    capabilities=frozenset({Capability.chat, Capability.tools}),
)


def main() -> None:
    hooks = Hooks(retry=lambda retry: print(f"{retry.provider} failed, {retry.fallback} is asked"))
    with Agent([DOWN, "local"], hooks=hooks) as agent:
        result = agent.send_sync("Say hello.")
    answered = result.messages[-1].origin
    print(result.output)
    print(
        f"{answered.provider if answered else '?'} answered; usage {result.usage}; calls {len(result.calls)}"
    )


if __name__ == "__main__":
    main()
