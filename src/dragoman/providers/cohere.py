"""Cohere, by its Chat API, version 2. The list of models is of version 1 still. A schema and tools
exclude each other."""

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider, TokenRates

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="cohere",
    display_name="Cohere",
    wire="cohere",
    base_url="https://api.cohere.com/v2",
    base_url_names={"CO_API_URL": "/v2"},
    key_names=("CO_API_KEY", "COHERE_API_KEY"),
    chat_model="command-a-03-2025",
    embeddings_model="embed-v4.0",
    models_path="/../v1/models?page_size=1000",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.thinking,
            Capability.models,
        }
    ),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(490, 0, 1.2, 370, 0, 0, 32),
    priced_as="cohere",
)
