"""The rows of `bench/goals.py` that LangChain has.

PYTHON bench/peers/rows_langchain.py      PYTHON: one that has langchain-openai and langchain-google-genai
"""

from __future__ import annotations

import measure
from langchain_core.messages import convert_to_messages, messages_from_dict, messages_to_dict
from langchain_google_genai.chat_models import _parse_chat_history
from langchain_openai.chat_models.base import (
    _construct_responses_api_input,
    _convert_message_to_dict,
)


def main() -> None:
    messages = convert_to_messages(measure.chat_history())
    written = messages_to_dict(messages)
    rows = {
        "dump openai_chat": lambda: [_convert_message_to_dict(each) for each in messages],
        "dump openai_responses": lambda: _construct_responses_api_input(messages),
        "dump google": lambda: _parse_chat_history(messages),
        "langchain load": lambda: messages_from_dict(written),
        "langchain dump": lambda: messages_to_dict(messages),
    }
    for row, work in rows.items():
        measure.tell(row, measure.best(work))


if __name__ == "__main__":
    main()
