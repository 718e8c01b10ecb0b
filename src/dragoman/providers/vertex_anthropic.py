"""Anthropic's models on Google's Vertex AI, for a project and a location, with an access token or the
credentials that Google's own tools use."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.capability import Capability
from dragoman.providers.anthropic import PROVIDER as ANTHROPIC
from dragoman.providers.anthropic import SIGNERS
from dragoman.providers.auth import Auth
from dragoman.providers.google_auth import vertex_auth
from dragoman.wires.anthropic.quirks import Quirks

__all__ = ["PROVIDER"]

_NAMES = {
    "ANTHROPIC_VERTEX_PROJECT_ID": "GOOGLE_CLOUD_PROJECT",
    "CLOUD_ML_REGION": "GOOGLE_CLOUD_LOCATION",
}
"""Variables of Anthropic's own client → those of Google that they go before."""


def _vertex_auth(environment: Mapping[str, str], key: str | None) -> Auth | None:
    """Returns as `vertex_auth` how requests are authorized and where they go."""
    named = {google: value for name, google in _NAMES.items() if (value := environment.get(name))}
    return vertex_auth({**environment, **named}, key, express=False)


PROVIDER = msgspec.structs.replace(
    ANTHROPIC,
    name="vertex-anthropic",
    display_name="Anthropic on Vertex AI",
    base_url=None,
    base_url_names={},
    aliases=("anthropic-vertex",),
    key_names=("CLOUDSDK_AUTH_ACCESS_TOKEN",),
    key_header="authorization",
    key_prefix="Bearer ",
    auth=_vertex_auth,
    auth_names=("GOOGLE_APPLICATION_CREDENTIALS",),
    headers={},
    media_model=None,
    media_ways=(),
    models_path=None,
    capabilities=ANTHROPIC.capabilities - {Capability.media, Capability.models},
    calls=None,
    quirks=Quirks(in_path=True, reads=SIGNERS),
    family="anthropic",
    priced_as="google",
    otel_name="gcp.vertex_ai",
)
