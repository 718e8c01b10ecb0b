"""The loop: model call, tools, model call."""
