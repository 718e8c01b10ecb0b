"""What wires are made with: values out of JSON, frames, ids, native fields, the emitter of events,
error rules. Sans-I/O."""

__all__: list[str] = []
