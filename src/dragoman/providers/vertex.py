"""Google's Vertex AI. As it stands, the record is its express mode, which needs an API key and no project.

With a project and a location, these are the base URL, `https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/
locations/LOCATION`, and the key is an access token (`gcloud auth print-access-token`) or an API key of the project.
Tokens are good for an hour; getting one from a service account's key file needs a library that signs, such as google-auth.
"""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
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
    chat_model="gemini-3.5-flash",
    models_path="/../../../../../v1beta1/publishers/google/models?pageSize=300",  # of no project: from the root
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
            Capability.server_tools,
            Capability.models,
        }
    ),
    quirks=Quirks(models="publishers/google/models"),
)
