"""Google's Vertex AI: with an API key alone in its express mode, else for a project and a location,
with an access token or the credentials that Google's own tools use."""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.google import MEDIA
from dragoman.providers.google_auth import vertex_auth
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.google.quirks import Quirks

__all__ = ["PROVIDER"]

_TOKEN = ("authorization", "Bearer ")

PROVIDER = Provider(
    name="vertex",
    display_name="Vertex AI",
    wire="google",
    base_url="https://aiplatform.googleapis.com/v1",
    base_url_names={"VERTEX_BASE_URL": ""},
    aliases=("vertexai", "google-vertex"),
    key_names=("CLOUDSDK_AUTH_ACCESS_TOKEN", "VERTEX_API_KEY"),
    key_header="x-goog-api-key",
    key_prefix="",
    key_kinds=MappingProxyType({"ya29.": _TOKEN, "eyJ": _TOKEN}),
    auth=vertex_auth,
    auth_names=("GOOGLE_APPLICATION_CREDENTIALS",),
    chat_model="gemini-3.5-flash",
    embeddings_model="gemini-embedding-001",
    embeddings_batch=1,
    media_model="gemini-3.1-flash-image",
    media_ways=MEDIA,
    # of no project: from the root
    models_path="/../../../../../v1beta1/publishers/google/models?pageSize=300",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
            Capability.media,
            Capability.server_tools,
            Capability.models,
        }
    ),
    quirks=Quirks(models="publishers/google/models", vertex_embeddings=True),
    calls=Calls("given or minted", "whole"),
    token_rates=TokenRates(0, 0, 0.98, 0, 0, 0.37, 4, "flat", 258, 0),
    priced_as="google",
    family="google",
    otel_name="gcp.vertex_ai",
)
