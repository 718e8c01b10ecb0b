"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: audio=AudioParam cache_control chat_template_kwargs clear_thinking enable_thinking
    frequency_penalty function_call=Custom~2 functions=Function grammar guided_choice
    guided_grammar guided_json guided_regex ignore_eos include_reasoning length_penalty logit_bias
    logprobs max_completion_tokens max_tokens
    messages=AssistantMessageParam|SystemMessageParam|FunctionMessageParam|ToolMessageParam|UserMessageParam
    metadata min_p min_tokens modalities model n parallel_tool_calls parse_tool_calls plugins
    prediction=PredictionContentParam presence_penalty prompt_cache_key
    prompt_cache_options=PromptCacheOptions prompt_cache_retention provider reasoning
    reasoning_effort reasoning_format reasoning_split repetition_penalty
    response_format=CustomFormatText|ResponseFormatJSONSchema return_citations safety_identifier
    search_context_size search_parameters seed service_tier skip_special_tokens stop
    stop_token_ids store stream stream_options=StreamOptionsParam temperature thinking
    thinking_budget
    tool_choice=AllowedToolChoiceParam|NamedToolChoiceCustomParam|NamedToolChoiceParam tool_stream
    tools=CustomToolParam|FunctionToolParam|ServerTool top_a top_k top_logprobs top_p transforms
    usage user venice_parameters verbosity web_search_options=WebSearchOptions
AllowedToolChoiceParam type=allowed_tools: allowed_tools=AllowedToolsParam type
AllowedToolsParam: mode tools
AssistantMessageParam role=assistant: annotations cache_control
    content=ContentPartRefusalParam|ContentPartTextParam|ContentPartImageParam|ThinkingPart
    function_call=Function~3 images name prefix reasoning reasoning_content reasoning_details
    refusal role thinking tool_calls=MessageCustomToolCallParam|MessageFunctionToolCallParam
ContentPartImageParam type=image_url: cache_control image_url=ImageURL
    prompt_cache_breakpoint=PromptCacheOptions type
ImageURL: detail url
PromptCacheOptions: mode ttl
ContentPartRefusalParam type=refusal: refusal type
ContentPartTextParam type=text: cache_control prompt_cache_breakpoint=PromptCacheOptions text type
Function~3: arguments name
MessageCustomToolCallParam type=custom: custom=Custom~3 id type
Custom~3: input name
MessageFunctionToolCallParam type?=function: cache_control extra_content function=Function~3 id
    index type
ThinkingPart type=thinking: signature thinking type
AudioParam: format voice=nothing
nothing type=:
CustomToolParam type=custom: custom=Custom type
Custom: description format=CustomFormatGrammar|CustomFormatText name
CustomFormatGrammar type=grammar: grammar=CustomFormatGrammarGrammar type
CustomFormatGrammarGrammar: definition syntax
CustomFormatText type=json_object,text: type
SystemMessageParam role=developer,system: cache_control
    content=ContentPartTextParam|ContentPartImageParam|File name role
File type=file: cache_control file=FileFile prompt_cache_breakpoint=PromptCacheOptions type
FileFile: file_data file_id! filename
Function: description name parameters
Custom~2: name
FunctionMessageParam role=function: content name role
FunctionToolParam type=function: cache_control function=FunctionDefinition type
FunctionDefinition: description name parameters strict
NamedToolChoiceCustomParam type=custom: custom=Custom~2 type
NamedToolChoiceParam type?=function: function=Custom~2 type
PredictionContentParam type=content: content=ContentPartTextParam type
ResponseFormatJSONSchema type=json_schema: json_schema=JSONSchema type
JSONSchema: description name schema strict
ServerTool type=openrouter:web_search: parameters type
StreamOptionsParam: include_obfuscation include_usage
ToolMessageParam role=tool: cache_control
    content=ContentPartTextParam|ContentPartImageParam|ContentPartInputAudioParam|File|VideoUrl
    name role tool_call_id
ContentPartInputAudioParam type=input_audio: input_audio=InputAudio
    prompt_cache_breakpoint=PromptCacheOptions type
InputAudio: data format
VideoUrl type=video_url: cache_control type video_url
UserMessageParam role=user: cache_control
    content=ContentPartImageParam|ContentPartInputAudioParam|ContentPartTextParam|File|FileUrl|VideoUrl
    name role
FileUrl type=file_url: file_url type
WebSearchOptions: search_context_size user_location=WebSearchOptionsUserLocation
WebSearchOptionsUserLocation type=approximate: approximate=WebSearchOptionsUserLocationApproximate
    type
WebSearchOptionsUserLocationApproximate: city country region timezone
embeddings: dimensions encoding_format input input_type model truncate user
images: aspect_ratio background complexity frame_count frame_duration_ms guidance height
    image=ImageReference images=ImageReference input_fidelity mask=ImageReference model moderation
    n negative_prompt output_compression output_format partial_images prompt quality resolution
    response_format safety_identifier seed size steps stream style user width
ImageReference: image_url% type url%
speech: input instructions language model response_format sample_rate speed stream_format
    voice=nothing
transcription: chunking_strategy file include keywords known_speaker_names
    known_speaker_references language languages model prompt response_format stream temperature
    timestamp_granularities
""")
