"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: frequency_penalty logprobs max_tokens
    messages=AssistantMessage|SystemMessage|ToolMessage|UserMessage metadata min_tokens model n
    parallel_tool_calls prediction=Prediction presence_penalty prompt_cache_key prompt_logprobs
    prompt_mode random_seed reasoning_effort repetition_penalty response_format=ResponseFormat
    safe_prompt service_tier stop stream temperature tool_choice=ToolChoice
    tools=ImageGenerationTool|Tool top_k top_logprobs top_p top_prompt_logprobs
AssistantMessage role?=assistant:
    content=AudioChunk|DocumentURLChunk|ImageURLChunk|ReferenceChunk|ResourceChunk|ResourceLinkChunk|TextChunk|ThinkChunk
    prefix role tool_calls=ToolCall
AudioChunk type?=input_audio: input_audio type
DocumentURLChunk type?=document_url: document_name document_url% type
ImageURLChunk type?=image_url: image_url=ImageURL type
ImageURL: detail url
ReferenceChunk type?=reference: reference_ids type
ResourceChunk type?=resource: content=ImageURLChunk|TextChunk type uri%
TextChunk type?=text: text type
ResourceLinkChunk type?=resource_link: metadata type uri%
ThinkChunk type?=thinking: closed signature thinking=ReferenceChunk|TextChunk|ToolReferenceChunk
    type
ToolReferenceChunk type?=tool_reference: description favicon title tool type url
ToolCall: function=FunctionCall id index type
FunctionCall: arguments name
ImageGenerationTool type?=image_generation: tool_configuration=ToolConfiguration type
ToolConfiguration: exclude include requires_confirmation
Prediction type?=content: content type
ResponseFormat type?=json_object,json_schema,text: json_schema=JSONSchema type
JSONSchema: description name schema strict
SystemMessage role?=system: content=TextChunk|ThinkChunk role
Tool type?=function: function=Function type
Function: description name parameters strict
ToolChoice: function=FunctionName type
FunctionName: name
ToolMessage role?=tool:
    content=AudioChunk|DocumentURLChunk|ImageURLChunk|ReferenceChunk|ResourceChunk|ResourceLinkChunk|TextChunk|ThinkChunk
    name role tool_call_id
UserMessage role?=user:
    content=AudioChunk|DocumentURLChunk|ImageURLChunk|ReferenceChunk|ResourceChunk|ResourceLinkChunk|TextChunk|ThinkChunk
    role
embeddings: encoding_format input metadata model output_dimension output_dtype
transcription: context_bias diarize file file_url% language model stream temperature
    timestamp_granularities
""")
