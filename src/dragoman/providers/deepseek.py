"""DeepSeek. Its models think unless told not to, and while they think no tool can be forced."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="deepseek",
    display_name="DeepSeek",
    wire="openai_chat",
    base_url="https://api.deepseek.com",
    base_url_names={"DEEPSEEK_BASE_URL": ""},
    key_names=("DEEPSEEK_API_KEY",),
    chat_model="deepseek-flash",
    capabilities=HOSTED - {Capability.typed_output, Capability.forced_tools},
    quirks=Quirks(reasoning="thinking reasoning_effort", developer=False, json_schema=False),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(3.1, 0, 1.07, 226, 2.1, 1.04, 34),
    priced_as="deepseek",
)
