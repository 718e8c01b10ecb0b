"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: context format height images=Image keep_alive logprobs messages=Message model
    options=Options prompt raw steps stream suffix system template think tool_choice tools=Tool
    top_logprobs width
Image: value
Message: content images=Image role thinking tool_call_id tool_calls=ToolCall tool_name
ToolCall: function=Function~2 id index type
Function~2: arguments name
Options: draft_num_predict embedding_only f16_kv frequency_penalty logits_all low_vram main_gpu
    min_p mirostat mirostat_eta mirostat_tau num_batch num_ctx num_gpu num_keep num_predict
    num_thread numa penalize_newline presence_penalty repeat_last_n repeat_penalty seed stop
    temperature tfs_z top_k top_p typical_p use_mlock use_mmap vocab_only
Tool: function=Function type
Function: description name parameters
embeddings: dimensions input keep_alive model options=Options prompt truncate
""")
