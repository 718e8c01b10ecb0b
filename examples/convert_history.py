"""A history of one provider's format, written in another's."""

import json

from dragoman import wires

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather in Oslo?"},
]


def main() -> None:
    messages = wires.get("openai_chat").load_messages(HISTORY)
    print(json.dumps(wires.get("anthropic").dump_messages(messages), indent=2))


if __name__ == "__main__":
    main()
