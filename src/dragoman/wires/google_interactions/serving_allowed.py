"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: generation_config=GenerationConfig
    input=AudioContent|CodeExecutionCallStep|CodeExecutionResultStep|DocumentContent|FileSearchCallStep|FileSearchResultStep|FunctionCallStep|FunctionResultStep|GoogleMapsCallStep|GoogleMapsResultStep|GoogleSearchCallStep|GoogleSearchResultStep|ImageContent|ModelOutputStep|RetrievalCallStep|RetrievalResultStep|TextContent|ThoughtStep|ToolSearchCallStep|ToolSearchResultStep|URLContextCallStep|URLContextResultStep|UserInputStep|VideoContent
    labels model
    response_format=AudioResponseFormat|ImageResponseFormat|TextResponseFormat|VideoResponseFormat
    response_mime_type response_modalities safety_settings=SafetySetting service_tier store stream
    system_instruction tools=URLContext|ComputerUse|Function|GoogleMaps|GoogleSearch|ToolSearch
AudioContent type=audio: channels data mime_type processing=AudioStaticMediaProcessing sample_rate
    type uri%
AudioStaticMediaProcessing type=static: end_offset start_offset type
AudioResponseFormat type=audio: bit_rate delivery mime_type sample_rate type
URLContext type=code_execution,url_context: type
CodeExecutionCallStep type=code_execution_call: arguments=CodeExecutionCallArguments id signature
    type
CodeExecutionCallArguments: code language
CodeExecutionResultStep type=code_execution_result: call_id is_error
    result=AudioContent|DocumentContent|ImageContent|TextContent|VideoContent signature type
DocumentContent type=document: data mime_type processing=DocumentStaticMediaProcessing resolution
    type uri%
DocumentStaticMediaProcessing type=static: page_options=PageProcessingOptions
    spreadsheet_options=SpreadsheetProcessingOptions type
PageProcessingOptions: content_layers end_page start_page
SpreadsheetProcessingOptions: content_layers sheet_index visible_cells
ImageContent type=image: data mime_type resolution type uri%
TextContent type=text: annotations=PlaceCitation|SpeechAnnotation|URLCitation|WordInfo text type
PlaceCitation type=place_citation: end_index name place_id review_snippets=ReviewSnippet
    start_index type url
ReviewSnippet: review_id title url
SpeechAnnotation type=speech_metadata: end_index speaker start_index style type
URLCitation type=url_citation: end_index start_index title type url
WordInfo type=word_info: end_index end_offset speaker start_index start_offset text type
VideoContent type=video: data mime_type name processing=StaticMediaProcessing resolution type uri%
StaticMediaProcessing type=static: content_layers end_offset fps start_offset type
ComputerUse type=computer_use: disabled_safety_policies enable_prompt_injection_detection
    environment excluded_predefined_functions type
FileSearchCallStep type=file_search_call,processing_call: id signature type
FileSearchResultStep type=file_search_result,processing_result: call_id signature type
Function type=function: defer_loading description name parameters short_description type
FunctionCallStep type=function_call: arguments id name signature type
FunctionResultStep type=function_result: call_id is_error name
    result~=AudioContent|DocumentContent|Function|FunctionResultStepResult|ImageContent|TextContent|VideoContent
    signature type
FunctionResultStepResult:
GenerationConfig: image_config=ImageConfig max_output_tokens seed
    speech_config=SpeakerConfig|SpeechConfig stop_sequences temperature thinking_level
    thinking_summaries tool_choice=ToolChoiceConfig top_p transcription_config=TranscriptionConfig
    video_config=VideoConfig
ImageConfig: aspect_ratio image_size
SpeakerConfig: speakers=SpeechConfig
SpeechConfig: language speaker voice
ToolChoiceConfig: allowed_tools=AllowedTools
AllowedTools: mode tools
TranscriptionConfig: adaptation_phrases custom_vocabulary diarization_mode language_codes
    language_hints mode=SmartTranscriptionMode|VerbatimTranscriptionMode timestamp_granularities
SmartTranscriptionMode type=smart: source_text type
VerbatimTranscriptionMode type=verbatim: diarization_mode timestamp_granularities type
VideoConfig: task
GoogleMaps type=google_maps: enable_widget latitude longitude type
GoogleMapsCallStep type=google_maps_call: arguments=RetrievalCallArguments id signature type
RetrievalCallArguments: queries
GoogleMapsResultStep type=google_maps_result: call_id result=GoogleMapsResult signature type
GoogleMapsResult: places=GoogleMapsResultPlaces widget_context_token
GoogleMapsResultPlaces: name place_id review_snippets=ReviewSnippet url
GoogleSearch type=google_search: search_types type
GoogleSearchCallStep type=google_search_call: arguments=RetrievalCallArguments id search_type
    signature type
GoogleSearchResultStep type=google_search_result: call_id is_error result=GoogleSearchResult
    signature type
GoogleSearchResult: search_suggestions
ImageResponseFormat type=image: aspect_ratio delivery image_size mime_type type
ModelOutputStep type=model_output:
    content=AudioContent|DocumentContent|ImageContent|TextContent|VideoContent error=Status type
Status: code details message
RetrievalCallStep type=retrieval_call: arguments=RetrievalCallArguments id retrieval_type
    signature type
RetrievalResultStep type=retrieval_result: call_id is_error signature type
SafetySetting
    type=civic_integrity,dangerous_content,harassment,hate_speech,image_dangerous_content,image_harassment,image_hate,image_sexually_explicit,jailbreak,sexually_explicit:
    method threshold type
TextResponseFormat type=text: mime_type schema type
ThoughtStep type=thought: signature summary=ImageContent|TextContent type
ToolSearch type=tool_search: description execution name parameters type
ToolSearchCallStep type=tool_search_call: arguments=ToolSearchCallStepArguments id signature type
ToolSearchCallStepArguments: function_names
ToolSearchResultStep type=tool_search_result: call_id result=Function signature type
URLContextCallStep type=url_context_call: arguments=URLContextCallArguments id signature type
URLContextCallArguments: urls
URLContextResultStep type=url_context_result: call_id is_error result=URLContextResult signature
    type
URLContextResult: status url
UserInputStep type=user_input:
    content=AudioContent|DocumentContent|ImageContent|TextContent|VideoContent|FunctionResultStep
    type
VideoResponseFormat type=video: aspect_ratio delivery duration resolution type
""")
