"""Provider records, and the registry that finds one by name.

provider = providers.get("claude")          # by name or alias
providers.register(Provider(name="acme", …))  # one record is a whole OpenAI-compatible provider
"""

from dragoman.providers.provider import Provider
from dragoman.providers.registry import REGISTRY, Registry

__all__ = ["Provider", "Registry", "get", "register"]

get = REGISTRY.get
register = REGISTRY.register
