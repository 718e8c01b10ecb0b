"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: access_programs=AccessPrograms background context_management=ContextManagement
    conversation=ResponseConversationParamParam image=Image include
    input=AdditionalTools|ApplyPatchCall|ApplyPatchCallOutput|CompactionTrigger|ComputerCallOutput|EasyInputMessageParam|FunctionCallOutput|ImageGenerationCall|LocalShellCall|LocalShellCallOutput|Message|Program|ProgramOutput|ResponseCompactionItemParamParam|ResponseComputerToolCallParam|ResponseConfigurationUpdateItemParamParam|ResponseCustomToolCallOutputParam|ResponseCustomToolCallParam|ResponseFileSearchToolCallParam|ResponseFunctionToolCallParam|ResponseFunctionWebSearchParam|ResponseOutputMessageParam|ResponseReasoningItemParam|ResponseToolSearchOutputItemParamParam|ShellCall|ShellCallOutput|ToolSearchCall
    instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls
    previous_response_id prompt_cache_key prompt_cache_options=PromptCacheOptions
    prompt_cache_retention reasoning=Reasoning safety_identifier service_tier store stream
    stream_options=StreamOptions temperature text=ResponseTextConfigParam
    tool_choice=ToolChoiceAllowedParam|Text|ToolChoiceCustomParam|ToolChoiceTypesParam
    tools=ApplyPatchToolParam|CodeInterpreter|Text|ComputerUsePreviewToolParam|CustomToolParam|FunctionShellToolParam|ToolFunction|ImageGeneration|NamespaceToolParam|ToolSearchToolParam|WebSearchPreviewToolParam|WebSearchToolParam
    top_logprobs top_p truncation user
AccessPrograms: cyber
AdditionalTools type=additional_tools: id role
    tools=ApplyPatchToolParam|CodeInterpreter|Text|ComputerUsePreviewToolParam|CustomToolParam|FunctionShellToolParam|ToolFunction|ImageGeneration|NamespaceToolParam|ToolSearchToolParam|WebSearchPreviewToolParam|WebSearchToolParam
    type
ApplyPatchToolParam type=apply_patch: allowed_callers type
CodeInterpreter type=code_interpreter: allowed_callers
    container*=CodeInterpreterContainerCodeInterpreterToolAuto type
CodeInterpreterContainerCodeInterpreterToolAuto type=auto: memory_limit
    network_policy=ContainerNetworkPolicyAllowlistParam|Text type
ContainerNetworkPolicyAllowlistParam type=allowlist: allowed_domains
    domain_secrets=ContainerNetworkPolicyDomainSecretParam type
ContainerNetworkPolicyDomainSecretParam: domain name value
Text
    type=apply_patch,computer,direct,disabled,json_object,local_shell,programmatic_tool_calling,screenshot,shell,text,timeout,wait:
    type
ComputerUsePreviewToolParam type=computer_use_preview: display_height display_width environment
    type
CustomToolParam type=custom: allowed_callers async defer_loading description format=Grammar|Text
    name type
Grammar type=grammar: definition syntax type
FunctionShellToolParam type=shell: allowed_callers
    environment=ContainerAutoParam|LocalEnvironmentParam type
ContainerAutoParam type=container_auto: memory_limit
    network_policy=ContainerNetworkPolicyAllowlistParam|Text skills=InlineSkillParam type
InlineSkillParam type=inline: description name source=InlineSkillSourceParam type
InlineSkillSourceParam type=base64: data media_type type
LocalEnvironmentParam type=local: skills=LocalSkillParam type
LocalSkillParam: description name path
ToolFunction type=function: allowed_callers async defer_loading description name output_schema
    parameters strict type
ImageGeneration type=image_generation: action background complexity frame_count frame_duration_ms
    input_fidelity input_image_mask=ImageGenerationInputImageMask moderation output_compression
    output_format partial_images quality size svg=ImageGenerationSvg type
ImageGenerationInputImageMask: image_url
ImageGenerationSvg: reasoning=Reasoning~2
Reasoning~2: effort
NamespaceToolParam type=namespace: description name tools=CustomToolParam|ToolFunction type
ToolSearchToolParam type=tool_search: description execution parameters type
WebSearchPreviewToolParam type=web_search_preview,web_search_preview_2025_03_11:
    search_content_types search_context_size type user_location=UserLocation
UserLocation type=approximate: city country region timezone type
WebSearchToolParam type=web_search,web_search_2025_08_26: external_web_access filters=Filters
    search_context_size type user_location=UserLocation~2
Filters: allowed_domains
UserLocation~2 type?=approximate: city country region timezone type
ApplyPatchCall type=apply_patch_call: call_id caller=Text|CallerProgram id
    operation=ApplyPatchCallOperationCreateFile|ApplyPatchCallOperationDeleteFile status type
CallerProgram type=program: caller_id type
ApplyPatchCallOperationCreateFile type=create_file,update_file: diff path type
ApplyPatchCallOperationDeleteFile type=delete_file: path type
ApplyPatchCallOutput type=apply_patch_call_output: call_id caller=Text|CallerProgram id output
    status type
CompactionTrigger type=compaction_trigger: id type
ComputerCallOutput type=computer_call_output: acknowledged_safety_checks=PendingSafetyCheck
    call_id id output=ResponseComputerToolCallOutputScreenshotParam status type
PendingSafetyCheck: code id message
ResponseComputerToolCallOutputScreenshotParam type=computer_screenshot: file_id! image_url type
ContextManagement: compact_threshold type
EasyInputMessageParam type?=message:
    content=ResponseInputFileParam|ResponseInputImageParam|ResponseInputTextParam|OutputText|Refusal
    phase role type
OutputText type=output_text: annotations logprobs text type
Refusal type=refusal: refusal type
ResponseInputFileParam type=input_file: detail file_data file_id! file_url filename
    prompt_cache_breakpoint=PromptCacheBreakpoint type
PromptCacheBreakpoint: mode ttl
ResponseInputImageParam type=input_image: detail file_id! image_url
    prompt_cache_breakpoint=PromptCacheBreakpoint type
ResponseInputTextParam type=input_text: prompt_cache_breakpoint=PromptCacheBreakpoint text type
FunctionCallOutput type=function_call_output: call_id caller=Text|CallerProgram id name namespace
    output=ResponseInputFileParam|ResponseInputImageParam|ResponseInputTextParam status type
Image: context_compression
ImageGenerationCall type=image_generation_call: action background error=ImageGenerationCallError
    id output_format quality result revised_prompt size status
    svg_usage=ImageGenerationCallSvgUsage type
ImageGenerationCallError: code message
    moderation_details=ImageGenerationCallErrorModerationDetails param type
ImageGenerationCallErrorModerationDetails: categories moderation_stage
ImageGenerationCallSvgUsage: input_tokens output_tokens reasoning_tokens total_tokens
LocalShellCall type=local_shell_call: action=LocalShellCallAction call_id id status type
LocalShellCallAction type=exec: command env timeout_ms type user working_directory
LocalShellCallOutput type=local_shell_call_output: id output status type
Message type?=message:
    content=ResponseInputFileParam|ResponseInputImageParam|ResponseInputTextParam role status type
Program type=program: call_id code fingerprint id type
ProgramOutput type=program_output: call_id id result status type
PromptCacheOptions: mode prewarm ttl
Reasoning: context effort generate_summary mode summary
ResponseCompactionItemParamParam type=compaction: encrypted_content id type
ResponseComputerToolCallParam type=computer_call: action=Click|Move|Drag|Keypress|Text|Scroll|Type
    actions=Click|Move|Drag|Keypress|Text|Scroll|Type call_id id
    pending_safety_checks=PendingSafetyCheck status type
Click type=click: button keys type x y
Move type=double_click,move: keys type x y
Drag type=drag: keys path=DragPath type
DragPath: x y
Keypress type=keypress: keys type
Scroll type=scroll: keys scroll_x scroll_y type x y
Type type=reasoning_text,summary_text,type: text type
ResponseConfigurationUpdateItemParamParam type=configuration_update: id reasoning=Reasoning~2
    text=Text~2 type
Text~2: format=Text|ResponseFormatTextJSONSchemaConfigParam
ResponseFormatTextJSONSchemaConfigParam type=json_schema: description name schema strict type
ResponseConversationParamParam: id
ResponseCustomToolCallOutputParam type=custom_tool_call_output: call_id caller=Text|CallerProgram
    id output=ResponseInputFileParam|ResponseInputImageParam|ResponseInputTextParam type
ResponseCustomToolCallParam type=custom_tool_call: async call_id caller=Text|CallerProgram id
    input name namespace type
ResponseFileSearchToolCallParam type=file_search_call: id queries results=Result status type
Result: attributes filename score text
ResponseFunctionToolCallParam type=function_call: arguments async call_id
    caller=Text|CallerProgram id name namespace status type
ResponseFunctionWebSearchParam type=web_search_call: action=ActionFind|ActionOpenPage|ActionSearch
    id status type
ActionFind type=find_in_page: pattern type url
ActionOpenPage type=open_page,url: type url
ActionSearch type=search: queries query sources=ActionOpenPage type
ResponseOutputMessageParam type=message: content=Refusal|ResponseOutputTextParam id phase role
    status type
ResponseOutputTextParam type=output_text: annotations=AnnotationURLCitation logprobs=Logprob text
    type
AnnotationURLCitation type=url_citation: end_index start_index title type url
Logprob: bytes logprob token top_logprobs=LogprobTopLogprob
LogprobTopLogprob: bytes logprob token
ResponseReasoningItemParam type=reasoning: content=Type encrypted_content id status summary=Type
    type
ResponseTextConfigParam: format=Text|ResponseFormatTextJSONSchemaConfigParam verbosity
ResponseToolSearchOutputItemParamParam type=tool_search_output: call_id execution id status
    tools=ApplyPatchToolParam|Text|ComputerUsePreviewToolParam|CustomToolParam|FunctionShellToolParam|ToolFunction|CodeInterpreter|ImageGeneration|NamespaceToolParam|ToolSearchToolParam|WebSearchPreviewToolParam|WebSearchToolParam
    type
ShellCall type=shell_call: action=ShellCallAction call_id caller=Text|CallerProgram
    environment=LocalEnvironmentParam id status type
ShellCallAction: commands max_output_length timeout_ms
ShellCallOutput type=shell_call_output: call_id caller=Text|CallerProgram id max_output_length
    output=ResponseFunctionShellCallOutputContentParam status type
ResponseFunctionShellCallOutputContentParam: outcome=OutcomeExit|Text stderr stdout
OutcomeExit type=exit: exit_code type
StreamOptions: include_obfuscation
ToolChoiceAllowedParam type=allowed_tools: mode tools type
ToolChoiceCustomParam type=custom,function: name type
ToolChoiceTypesParam
    type=code_interpreter,computer,computer_use,computer_use_preview,file_search,image_generation,web_search_preview,web_search_preview_2025_03_11:
    type
ToolSearchCall type=tool_search_call: arguments call_id execution id status type
embeddings: dimensions encoding_format input model user
images: aspect_ratio background complexity frame_count frame_duration_ms guidance height
    image=ImageReference images=ImageReference input_fidelity mask=ImageReference model moderation
    n negative_prompt output_compression output_format partial_images prompt quality resolution
    response_format safety_identifier seed size steps stream style user width
ImageReference: image_url% type url%
speech: input instructions language model response_format sample_rate speed stream_format
    voice=nothing
nothing type=:
transcription: chunking_strategy file include keywords known_speaker_names
    known_speaker_references language languages model prompt response_format stream temperature
    timestamp_granularities
""")
