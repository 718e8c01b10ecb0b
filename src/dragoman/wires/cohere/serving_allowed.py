"""Fields that a gateway passes on to a provider of this wire: those of its official library that
refer to nothing in an account.

Derived by `tests/support/allow_lists.py`, which lists what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList

__all__ = ["allowed"]

allowed = AllowList("""
request: citation_options=CitationOptions documents frequency_penalty k logprobs max_tokens
    messages=AssistantChatMessageV2|SystemChatMessageV2|ToolChatMessageV2|UserChatMessageV2 model
    p presence_penalty priority response_format=JsonObjectResponseFormatV2|TextResponseFormatV2
    safety_mode seed stop_sequences stream strict_tools temperature thinking=Thinking tool_choice
    tools=ToolV2
AssistantChatMessageV2 role?=assistant: citations=Citation
    content=TextContent|ThinkingAssistantMessageV2ContentOneItem role tool_calls=ToolCallV2
    tool_plan
Citation type?=PLAN,TEXT_CONTENT,THINKING_CONTENT: content_index end
    sources=DocumentSource|ToolSource start text type
DocumentSource type?=document: document id type
ToolSource type?=tool: id tool_output type
TextContent type?=text: text type
ThinkingAssistantMessageV2ContentOneItem type?=thinking: thinking type
ToolCallV2 type?=function: function=ToolCallV2Function id type
ToolCallV2Function: arguments name
CitationOptions: mode
JsonObjectResponseFormatV2 type?=json_object: json_schema schema type
SystemChatMessageV2 role?=system: content=TextContent role
TextResponseFormatV2 type?=text: type
Thinking type=disabled,enabled: token_budget type
ToolChatMessageV2 role?=tool: content=DocumentToolContent|TextContent role tool_call_id
DocumentToolContent type?=document: document=Document type
Document: data id
ToolV2 type?=function: function=ToolV2Function type
ToolV2Function: description name parameters
UserChatMessageV2 role?=user: content=ImageUrlContent|TextContent role
ImageUrlContent type?=image_url: image_url=ImageUrl type
ImageUrl: detail url
embeddings: embedding_types images input_type inputs=EmbedInput max_tokens model output_dimension
    priority texts truncate
EmbedInput: content=ImageUrlContent|TextContent
""")
