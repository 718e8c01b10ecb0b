"""OpenAI's Responses API, both ways, and the vendors that speak it. The conversation is
`{"instructions": …, "input": …}`.

What is not kept to the letter:

- of a request: an `input` that is a string becomes a list when a message is added;
- of a response: what is null, empty or zero; of what only repeats the request, `instructions`,
  `tools`, `include`
  and `prompt`, which would stand in every message again (a gateway gives them as its envelope); deltas' log probabilities
  (those of the whole item count); of reasoning that is encrypted twice, the first ciphertext;
- written: counts that are not known are 0, but for `cache_write_tokens`, which is left out.
"""

from dragoman.wires.openai_responses.approvals import (
    answer_call,
    dump_interrupt,
    load_interrupt,
    load_resume,
)
from dragoman.wires.openai_responses.decode import decoder, load_response
from dragoman.wires.openai_responses.encode import (
    dump_response,
    encoder,
    envelope,
    ping,
    stream_type,
)
from dragoman.wires.openai_responses.errors import dump_error, load_error
from dragoman.wires.openai_responses.files import dump_download, load_files
from dragoman.wires.openai_responses.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.openai_responses.quirks import NAME, Quirks
from dragoman.wires.openai_responses.request import (
    background,
    count_field,
    dump_count,
    dump_http,
    dump_request,
    load_request,
    routes,
)
from dragoman.wires.openai_responses.serving import (
    LINKS,
    bodies,
    dump_deleted,
    dump_input_items,
    dump_model,
    dump_models,
    dump_seal,
    dump_token_count,
    dump_unfinished,
    find_item_references,
    forward,
    index_items,
    is_lasting,
    load_seal,
    read_call_id,
    replace_items,
    request_fields,
    seal,
)
from dragoman.wires.openai_responses.serving_allowed import allowed

name = NAME

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_download", "load_files"]
__all__ += [
    "dump_input_items",
    "dump_model",
    "dump_models",
    "dump_token_count",
    "dump_count",
    "count_field",
]
__all__ += ["dump_seal", "load_seal"]
__all__ += ["is_lasting"]
__all__ += ["read_call_id", "dump_deleted", "LINKS", "dump_unfinished"]
__all__ += ["find_item_references", "index_items", "replace_items"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]
__all__ += ["dump_interrupt", "load_interrupt", "load_resume", "answer_call"]
__all__ += ["seal", "background"]
