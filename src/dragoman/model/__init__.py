"""A provider, its wire and a transport put together."""
