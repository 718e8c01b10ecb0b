"""What each model accepts: `ModelProfile`, and where it comes from.

profile = profiles.get("anthropic:claude-opus-5-5")                # what is known of a model
profiles.register("azure:my-deployment", like="openai:gpt-5.4")    # a name of your own
profiles.load("my-models.toml")                                    # a file of your own
request, losses = profiles.lower(request, profile, wire="anthropic")
"""

from dragoman.model_profile import ModelProfile
from dragoman.profiles.attach import attach_profile, lower_for, needs_profile
from dragoman.profiles.lower import DEFAULTS, is_forced, lower, may_think
from dragoman.profiles.profile_table import ProfileTable, load_shipped
from dragoman.profiles.refusals import find_refusals
from dragoman.profiles.registry import REGISTRY, ProfileRegistry

__all__ = [
    "DEFAULTS",
    "REGISTRY",
    "ModelProfile",
    "ProfileRegistry",
    "ProfileTable",
    "attach_profile",
    "find_refusals",
    "get",
    "is_forced",
    "learn",
    "load",
    "load_shipped",
    "lower",
    "lower_for",
    "may_think",
    "needs_profile",
    "register",
]

get = REGISTRY.get
learn = REGISTRY.learn
load = REGISTRY.load
register = REGISTRY.register
