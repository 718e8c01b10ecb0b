"""The fields that a gateway passes on to a provider of this wire: of its official library those
that name nothing in an account.

Derived by `tests/support/allow_lists.py`, where it says what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: betas cache_control=CacheControlEphemeral compaction=CompactionConfig
    context_management=ContextManagementConfig effort inference_geo max_tokens
    messages=UserMessage|SystemMessage metadata=Metadata model output_config=OutputConfig
    output_format service_tier speed stop_sequences stream system=TextBlock temperature
    thinking=ThinkingConfigAdaptive|DirectCaller|ThinkingConfigEnabled
    tool_choice=ToolChoiceAny|DirectCaller|ToolChoiceTool
    tools=BrowserToolset20260801|CodeExecutionTool20250522|ComputerToolset20260801|MCPToolset|ToolBash20241022|Tool|ToolComputerUse20241022|ToolComputerUse20251124|ToolTextEditor20250728|WebFetchTool20250910|WebFetchTool20260309|WebFetchTool20260318|WebSearchTool20250305|WebSearchTool20260318
    top_k top_p
UserMessage role=assistant,user:
    content=AdvisorToolResultBlock|AdvisorToolResultBlock~2|BashCodeExecutionToolResultBlock|BashCodeExecutionToolResultBlock~2|CodeExecutionToolResultBlock|CodeExecutionToolResultBlock~2|CompactionBlock|CompactionBlock~2|FallbackBlock|FallbackBlock~2|ImageBlock|MCPToolListingBlock|MCPToolResultBlock|MCPToolUseBlock|MCPToolUseBlock~2|RedactedThinkingBlock|RequestDocumentBlock|RequestMCPToolResultBlock|RequestToolAdditionBlock|RequestToolRemovalBlock|SearchResultBlock|ServerToolUseBlock|ServerToolUseBlock~2|TextBlock|TextBlock~2|TextEditorCodeExecutionToolResultBlock|TextEditorCodeExecutionToolResultBlock~2|ThinkingBlock|ToolResultBlock|ToolSearchToolResultBlock|ToolSearchToolResultBlock~2|ToolUseBlock|ToolUseBlock~2|WebFetchToolResultBlock|WebFetchToolResultBlock~2|WebSearchToolResultBlock|WebSearchToolResultBlock~2
    role
AdvisorToolResultBlock type=advisor_tool_result: cache_control=CacheControlEphemeral
    content=AdvisorRedactedResultBlock|AdvisorResultBlock|AdvisorToolResultError tool_use_id type
AdvisorRedactedResultBlock type=advisor_redacted_result: encrypted_content stop_reason type
AdvisorResultBlock type=advisor_result: stop_reason text type
AdvisorToolResultError
    type=advisor_tool_result_error,bash_code_execution_tool_result_error,code_execution_tool_result_error,web_fetch_tool_result_error,web_search_tool_result_error:
    error_code type
CacheControlEphemeral type=ephemeral: ttl type
AdvisorToolResultBlock~2 type=advisor_tool_result:
    content=AdvisorRedactedResultBlock|AdvisorResultBlock|AdvisorToolResultError tool_use_id type
BashCodeExecutionToolResultBlock type=bash_code_execution_tool_result:
    cache_control=CacheControlEphemeral content=CodeExecutionResultBlock|AdvisorToolResultError
    tool_use_id type
CodeExecutionResultBlock type=bash_code_execution_result,code_execution_result: content=nothing
    return_code stderr stdout type
nothing type=:
BashCodeExecutionToolResultBlock~2 type=bash_code_execution_tool_result:
    content=CodeExecutionResultBlock|AdvisorToolResultError tool_use_id type
CodeExecutionToolResultBlock type=code_execution_tool_result: cache_control=CacheControlEphemeral
    content=CodeExecutionResultBlock|AdvisorToolResultError|EncryptedCodeExecutionResultBlock
    tool_use_id type
EncryptedCodeExecutionResultBlock type=encrypted_code_execution_result: content=nothing
    encrypted_stdout return_code stderr type
CodeExecutionToolResultBlock~2 type=code_execution_tool_result:
    content=CodeExecutionResultBlock|AdvisorToolResultError|EncryptedCodeExecutionResultBlock
    tool_use_id type
CompactionBlock type=compaction: cache_control=CacheControlEphemeral content encrypted_content
    signature tool_changes=RequestToolAdditionBlock|RequestToolRemovalBlock type
RequestToolAdditionBlock type=tool_addition: cache_control=CacheControlEphemeral
    tool=ToolChangeMCPToolReference|ToolChangeMCPToolsetReference|ToolChangeToolDefinition|ToolChangeToolReference
    type
ToolChangeMCPToolReference type=mcp_tool_reference: name server_name type
ToolChangeMCPToolsetReference type=mcp_toolset_reference: server_name type
ToolChangeToolDefinition type=tool_definition:
    definition=BrowserToolset20260801|CodeExecutionTool20250522|ComputerToolset20260801|MCPToolset|ToolBash20241022|Tool|ToolComputerUse20241022|ToolComputerUse20251124|ToolTextEditor20250728|WebFetchTool20250910|WebFetchTool20260309|WebFetchTool20260318|WebSearchTool20250305|WebSearchTool20260318
    type
BrowserToolset20260801 type=browser_toolset_20260801: cache_control=CacheControlEphemeral
    configs=BrowserToolsetConfigs type
BrowserToolsetConfigs: close_tab=BrowserKeyConfig double_click=BrowserKeyConfig
    file_upload=BrowserKeyConfig find=BrowserKeyConfig form_input=BrowserKeyConfig
    get_page_text=BrowserKeyConfig hold_key=BrowserKeyConfig hover=BrowserKeyConfig
    javascript_exec=BrowserKeyConfig key=BrowserKeyConfig left_click=BrowserKeyConfig
    left_click_drag=BrowserKeyConfig left_mouse_down=BrowserKeyConfig
    left_mouse_up=BrowserKeyConfig list_tabs=BrowserKeyConfig middle_click=BrowserKeyConfig
    mouse_move=BrowserKeyConfig navigate=BrowserKeyConfig new_tab=BrowserKeyConfig
    read_console=BrowserKeyConfig read_network=BrowserKeyConfig read_page=BrowserKeyConfig
    right_click=BrowserKeyConfig screenshot=BrowserKeyConfig scroll=BrowserKeyConfig
    scroll_to=BrowserKeyConfig switch_tab=BrowserKeyConfig triple_click=BrowserKeyConfig
    type=BrowserKeyConfig wait=BrowserKeyConfig zoom=BrowserKeyConfig
BrowserKeyConfig: defer_loading enabled
CodeExecutionTool20250522
    type=code_execution_20250522,code_execution_20250825,code_execution_20260120,code_execution_20260521,tool_search_tool_bm25,tool_search_tool_bm25_20251119,tool_search_tool_regex,tool_search_tool_regex_20251119:
    allowed_callers cache_control=CacheControlEphemeral defer_loading name strict type
ComputerToolset20260801 type=computer_toolset_20260801: cache_control=CacheControlEphemeral
    configs=ComputerToolsetConfigs type
ComputerToolsetConfigs: cursor_position=BrowserKeyConfig double_click=BrowserKeyConfig
    hold_key=BrowserKeyConfig key=BrowserKeyConfig left_click=BrowserKeyConfig
    left_click_drag=BrowserKeyConfig left_mouse_down=BrowserKeyConfig
    left_mouse_up=BrowserKeyConfig middle_click=BrowserKeyConfig mouse_move=BrowserKeyConfig
    right_click=BrowserKeyConfig screenshot=BrowserKeyConfig scroll=BrowserKeyConfig
    triple_click=BrowserKeyConfig type=BrowserKeyConfig wait=BrowserKeyConfig
    zoom=BrowserKeyConfig
MCPToolset type=mcp_toolset: cache_control=CacheControlEphemeral configs
    default_config=BrowserKeyConfig mcp_server_name tools=MCPTool type
MCPTool: description input_schema name
ToolBash20241022
    type=bash_20241022,bash_20250124,memory_20250818,text_editor_20241022,text_editor_20250124,text_editor_20250429:
    allowed_callers cache_control=CacheControlEphemeral defer_loading input_examples name strict
    type
Tool type?=custom: allowed_callers cache_control=CacheControlEphemeral defer_loading description
    eager_input_streaming input_examples input_schema name strict type
ToolComputerUse20241022 type=computer_20241022,computer_20250124: allowed_callers
    cache_control=CacheControlEphemeral defer_loading display_height_px display_number
    display_width_px input_examples name strict type
ToolComputerUse20251124 type=computer_20251124: allowed_callers
    cache_control=CacheControlEphemeral defer_loading display_height_px display_number
    display_width_px enable_zoom input_examples name strict type
ToolTextEditor20250728 type=text_editor_20250728: allowed_callers
    cache_control=CacheControlEphemeral defer_loading input_examples max_characters name strict
    type
WebFetchTool20250910 type=web_fetch_20250910,web_fetch_20260209: allowed_callers allowed_domains
    blocked_domains cache_control=CacheControlEphemeral citations=CitationConfig defer_loading
    max_content_tokens max_uses name strict type url_sources=WebFetchURLSources
CitationConfig: enabled
WebFetchURLSources: client_tool_results=DirectCaller|WebFetchURLSourceOnly
    server_tool_results=DirectCaller|WebFetchURLSourceOnly user_input=DirectCaller
DirectCaller type=all,between_tools,direct,disabled,none: type
WebFetchURLSourceOnly type=except,only: tools=ToolChangeToolReference type
ToolChangeToolReference type=tool_reference: name type
WebFetchTool20260309 type=web_fetch_20260309: allowed_callers allowed_domains blocked_domains
    cache_control=CacheControlEphemeral citations=CitationConfig defer_loading max_content_tokens
    max_uses name strict type url_sources=WebFetchURLSources use_cache
WebFetchTool20260318 type=web_fetch_20260318: allowed_callers allowed_domains blocked_domains
    cache_control=CacheControlEphemeral citations=CitationConfig defer_loading max_content_tokens
    max_uses name response_inclusion strict type url_sources=WebFetchURLSources use_cache
WebSearchTool20250305 type=web_search_20250305,web_search_20260209: allowed_callers
    allowed_domains blocked_domains cache_control=CacheControlEphemeral defer_loading max_uses
    name strict type user_location=UserLocation
UserLocation type=approximate: city country region timezone type
WebSearchTool20260318 type=web_search_20260318: allowed_callers allowed_domains blocked_domains
    cache_control=CacheControlEphemeral defer_loading max_uses name response_inclusion strict type
    user_location=UserLocation
RequestToolRemovalBlock type=tool_removal: cache_control=CacheControlEphemeral
    tool=ToolChangeMCPToolReference|ToolChangeMCPToolsetReference|ToolChangeToolReference type
CompactionBlock~2 type=compaction: content encrypted_content signature
    tool_changes=ResponseToolAdditionBlock|ResponseToolRemovalBlock type
ResponseToolAdditionBlock type=tool_addition:
    tool=ToolChangeMCPToolReference|ToolChangeMCPToolsetReference|ToolChangeToolReference|ToolChangeToolDefinition~2
    type
ToolChangeToolDefinition~2 type=tool_definition:
    definition=BrowserToolset20260801|CodeExecutionTool20250522|ComputerToolset20260801|MCPToolset|ToolBash20241022|ResponseTool|ToolComputerUse20241022|ToolComputerUse20251124|ToolTextEditor20250728|WebFetchTool20250910|WebFetchTool20260309|WebFetchTool20260318|WebSearchTool20250305|WebSearchTool20260318
    type
ResponseTool type?=custom: allowed_callers defer_loading description eager_input_streaming
    input_examples input_schema=ResponseToolInputSchema name strict type
ResponseToolInputSchema type=object: properties required type
ResponseToolRemovalBlock type=tool_removal:
    tool=ToolChangeMCPToolReference|ToolChangeMCPToolsetReference|ToolChangeToolReference type
FallbackBlock type=fallback: from=FallbackInfo to=FallbackInfo trigger type
FallbackInfo:
FallbackBlock~2 type=fallback: from=FallbackInfo to=FallbackInfo trigger=FallbackRefusalTrigger
    type
FallbackRefusalTrigger type=refusal: category type
ImageBlock type=image: cache_control=CacheControlEphemeral source=Base64PDFSource|URLPDFSource
    transformations=ImageTransformations type
Base64PDFSource type=base64,text: data media_type type
ImageTransformations: oversized_image
URLPDFSource type=url: type url
MCPToolListingBlock type=mcp_tool_listing: mcp_server_name tools=MCPTool type
MCPToolResultBlock type=mcp_tool_result: content=TextBlock~2 is_error tool_use_id type
TextBlock~2 type=text:
    citations=CitationCharLocation|CitationContentBlockLocation|CitationPageLocation|CitationSearchResultLocation|CitationWebSearchResultLocation
    text type
CitationCharLocation type=char_location: cited_text document_index document_title end_char_index
    start_char_index type
CitationContentBlockLocation type=content_block_location: cited_text document_index document_title
    end_block_index start_block_index type
CitationPageLocation type=page_location: cited_text document_index document_title end_page_number
    start_page_number type
CitationSearchResultLocation type=search_result_location: cited_text end_block_index
    search_result_index source start_block_index title type
CitationWebSearchResultLocation type=web_search_result_location: cited_text encrypted_index title
    type url
MCPToolUseBlock type=mcp_tool_use: cache_control=CacheControlEphemeral id input name server_name
    type
MCPToolUseBlock~2 type=mcp_tool_use: id input name server_name type
RedactedThinkingBlock type=redacted_thinking: data type
RequestDocumentBlock type=document: cache_control=CacheControlEphemeral citations=CitationConfig
    context source=Base64PDFSource|ContentBlockSource|URLPDFSource title type
ContentBlockSource type=content: content=ImageBlock|TextBlock type
TextBlock type=text: cache_control=CacheControlEphemeral
    citations=CitationCharLocation|CitationContentBlockLocation|CitationPageLocation|CitationSearchResultLocation|CitationWebSearchResultLocation
    text type
RequestMCPToolResultBlock type=mcp_tool_result: cache_control=CacheControlEphemeral
    content=TextBlock is_error tool_use_id type
SearchResultBlock type=search_result: cache_control=CacheControlEphemeral citations=CitationConfig
    content=TextBlock source title type
ServerToolUseBlock type=server_tool_use: cache_control=CacheControlEphemeral
    caller=DirectCaller|ServerToolCaller id input name type
ServerToolCaller type=code_execution_20250825,code_execution_20260120: tool_id type
ServerToolUseBlock~2 type=server_tool_use: caller=DirectCaller|ServerToolCaller id input name type
TextEditorCodeExecutionToolResultBlock type=text_editor_code_execution_tool_result:
    cache_control=CacheControlEphemeral
    content=TextEditorCodeExecutionCreateResultBlock|TextEditorCodeExecutionStrReplaceResultBlock|ToolSearchToolResultError|TextEditorCodeExecutionViewResultBlock
    tool_use_id type
TextEditorCodeExecutionCreateResultBlock type=text_editor_code_execution_create_result:
    is_file_update type
TextEditorCodeExecutionStrReplaceResultBlock type=text_editor_code_execution_str_replace_result:
    lines new_lines new_start old_lines old_start type
ToolSearchToolResultError
    type=text_editor_code_execution_tool_result_error,tool_search_tool_result_error: error_code
    error_message type
TextEditorCodeExecutionViewResultBlock type=text_editor_code_execution_view_result: content
    file_type num_lines start_line total_lines type
TextEditorCodeExecutionToolResultBlock~2 type=text_editor_code_execution_tool_result:
    content=TextEditorCodeExecutionCreateResultBlock|TextEditorCodeExecutionStrReplaceResultBlock|ToolSearchToolResultError|TextEditorCodeExecutionViewResultBlock
    tool_use_id type
ThinkingBlock type=thinking: signature thinking type
ToolResultBlock type=tool_result: cache_control=CacheControlEphemeral
    content=BrowserStateBlock|ImageBlock|RequestDocumentBlock|SearchResultBlock|TextBlock|ToolReferenceBlock~2
    is_error tool_use_id toolset_name type
BrowserStateBlock type=browser_state: cache_control=CacheControlEphemeral
    state_changes=BrowserStateChangeDownloadCompleted|BrowserStateChangeDownloadFailed|BrowserStateChangeDownloadStarted|BrowserStateChangeTabOpened
    tabs=BrowserStateTabEntry type
BrowserStateChangeDownloadCompleted type=download_completed: download_id path size_bytes type url
BrowserStateChangeDownloadFailed type=download_failed: download_id error type url
BrowserStateChangeDownloadStarted type=download_started: download_id type url
BrowserStateChangeTabOpened type=tab_opened: tab_id type
BrowserStateTabEntry: active tab_id title url
ToolReferenceBlock~2 type=tool_reference: cache_control=CacheControlEphemeral tool_name type
ToolSearchToolResultBlock type=tool_search_tool_result: cache_control=CacheControlEphemeral
    content=ToolSearchToolResultError|ToolSearchToolSearchResultBlock~2 tool_use_id type
ToolSearchToolSearchResultBlock~2 type=tool_search_tool_search_result:
    tool_references=ToolReferenceBlock~2 type
ToolSearchToolResultBlock~2 type=tool_search_tool_result:
    content=ToolSearchToolResultError|ToolSearchToolSearchResultBlock tool_use_id type
ToolSearchToolSearchResultBlock type=tool_search_tool_search_result:
    tool_references=ToolReferenceBlock type
ToolReferenceBlock type=tool_reference: tool_name type
ToolUseBlock type=tool_use: cache_control=CacheControlEphemeral
    caller=DirectCaller|ServerToolCaller id input name toolset_name type
ToolUseBlock~2 type=tool_use: caller=DirectCaller|ServerToolCaller id input name toolset_name type
WebFetchToolResultBlock type=web_fetch_tool_result: cache_control=CacheControlEphemeral
    caller=DirectCaller|ServerToolCaller content=WebFetchBlock~2|AdvisorToolResultError
    tool_use_id type
WebFetchBlock~2 type=web_fetch_result: content=RequestDocumentBlock retrieved_at type url
WebFetchToolResultBlock~2 type=web_fetch_tool_result: caller=DirectCaller|ServerToolCaller
    content=WebFetchBlock|AdvisorToolResultError tool_use_id type
WebFetchBlock type=web_fetch_result: content=DocumentBlock retrieved_at type url
DocumentBlock type=document: citations=CitationConfig source=Base64PDFSource title type
WebSearchToolResultBlock type=web_search_tool_result: cache_control=CacheControlEphemeral
    caller=DirectCaller|ServerToolCaller content=WebSearchResultBlock|AdvisorToolResultError
    tool_use_id type
WebSearchResultBlock type=web_search_result: encrypted_content page_age title type url
WebSearchToolResultBlock~2 type=web_search_tool_result: caller=DirectCaller|ServerToolCaller
    content=WebSearchResultBlock|AdvisorToolResultError tool_use_id type
CompactionConfig type=summarize: instructions type
ContextManagementConfig:
    edits=ClearThinking20251015Edit|ClearToolUses20250919Edit|Compact20260112Edit
ClearThinking20251015Edit type=clear_thinking_20251015: keep=DirectCaller|ToolUsesKeep type
ToolUsesKeep type=input_tokens,thinking_turns,tool_uses: type value
ClearToolUses20250919Edit type=clear_tool_uses_20250919: clear_at_least=ToolUsesKeep
    clear_tool_inputs exclude_tools keep=ToolUsesKeep trigger=ToolUsesKeep type
Compact20260112Edit type=compact_20260112: instructions pause_after_compaction
    trigger=ToolUsesKeep type
Metadata: user_id
OutputConfig: effort format=JSONOutputFormat task_budget=TokenTaskBudget
JSONOutputFormat type=json_schema: schema type
TokenTaskBudget type=tokens: remaining total type
SystemMessage role=system: clear_at
    content=RequestToolAdditionBlock|RequestToolRemovalBlock|TextBlock
    output_config=SystemMessageOutputConfig role
SystemMessageOutputConfig: effort
ThinkingConfigAdaptive type=adaptive: block_binding=ThinkingBlockBinding display type
ThinkingBlockBinding: prefix_mismatch_behavior
ThinkingConfigEnabled type=enabled: block_binding=ThinkingBlockBinding budget_tokens display type
ToolChoiceAny type=any,auto: disable_parallel_tool_use type
ToolChoiceTool type=tool: disable_parallel_tool_use name type
""")
