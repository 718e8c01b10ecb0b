"""Fields that a gateway passes on to a provider of this wire: those of the types of AWS's SDK that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: additionalModelRequestFields additionalModelResponseFieldPaths
    inferenceConfig=InferenceConfiguration messages=Message outputConfig=OutputConfig
    performanceConfig=PerformanceConfiguration requestMetadata serviceTier=ServiceTier
    system=SystemContentBlock toolConfig=ToolConfiguration
InferenceConfiguration: maxTokens stopSequences temperature topP
Message: content=ContentBlock role
ContentBlock: audio=AudioBlock cachePoint=CachePointBlock citationsContent=CitationsContentBlock
    document=DocumentBlock guardContent=GuardrailConverseContentBlock image=AudioBlock
    reasoningContent=ReasoningContentBlock searchResult=SearchResultBlock text
    toolAddition=ToolRemovalBlock toolRemoval=ToolRemovalBlock toolResult=ToolResultBlock
    toolUse=ToolUseBlock video=VideoBlock
AudioBlock: error=ErrorBlock format source=AudioSource
AudioSource: bytes s3Location=nothing
nothing type=:
ErrorBlock: message
CachePointBlock: ttl type
CitationsContentBlock: citations=Citation content=DocumentContentBlock
Citation: location=CitationLocation source sourceContent=DocumentContentBlock title
CitationLocation: documentChar=DocumentCharLocation documentChunk=DocumentCharLocation
    documentPage=DocumentCharLocation searchResultLocation=SearchResultLocation web=WebLocation
DocumentCharLocation: documentIndex end start
SearchResultLocation: end searchResultIndex start
WebLocation: domain url
DocumentContentBlock: text
DocumentBlock: citations=CitationsConfig context format name source=DocumentSource
CitationsConfig: enabled
DocumentSource: bytes content=DocumentContentBlock s3Location=nothing text
GuardrailConverseContentBlock: image=GuardrailConverseImageBlock text=GuardrailConverseTextBlock
GuardrailConverseImageBlock: format source=GuardrailConverseImageSource
GuardrailConverseImageSource: bytes
GuardrailConverseTextBlock: qualifiers text
ReasoningContentBlock: reasoningText=ReasoningTextBlock redactedContent
ReasoningTextBlock: signature text
SearchResultBlock: citations=CitationsConfig content=DocumentContentBlock source title
ToolRemovalBlock: tool=ToolReference
ToolReference: name type
ToolResultBlock: content=ToolResultContentBlock status toolUseId type
ToolResultContentBlock: document=DocumentBlock image=AudioBlock json
    searchResult=SearchResultBlock text video=VideoBlock
VideoBlock: format source=AudioSource
ToolUseBlock: input name toolUseId type
OutputConfig: effort textFormat=OutputFormat
OutputFormat: structure=OutputFormatStructure type
OutputFormatStructure: jsonSchema=JsonSchemaDefinition
JsonSchemaDefinition: description name schema
PerformanceConfiguration: latency
ServiceTier: type
SystemContentBlock: cachePoint=CachePointBlock guardContent=GuardrailConverseContentBlock text
ToolConfiguration: toolChoice=ToolChoice tools=Tool
Tool: cachePoint=CachePointBlock systemTool=SystemTool toolSpec=ToolSpecification
SystemTool: name
ToolSpecification: description inputSchema=ToolInputSchema name strict
ToolInputSchema: json
ToolChoice: any=AnyToolChoice auto=AnyToolChoice tool=SystemTool
AnyToolChoice:
""")
