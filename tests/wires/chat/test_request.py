"""Requests in which everything stands in each way in which it may be said, on the wires that share
the shape of Chat Completions: what is read of them, that they are written as they came, and what
another provider is sent."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import wires
from dragoman.loss import Loss, Lost
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)  # fmt: skip
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
# fmt: off
CHAT_SAID: list[Any] = [
    {'role': 'system', 'content': 's'},
    {'role': 'developer', 'content': 'd', 'name': 'n'},
    {'role': 'developer', 'content': [{'type': 'text', 'text': 'd'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'a', 'cache_control': {'type': 'ephemeral'}}, {'type': 'image_url', 'image_url': {'url': 'https://a.test/a.png', 'detail': 'low'}}, {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj'}}, {'type': 'input_audio', 'input_audio': {'data': 'YWJj', 'format': 'wav'}}, {'type': 'input_audio', 'input_audio': {'data': 'YWJj', 'format': 'flac'}}, {'type': 'input_audio', 'input_audio': {'data': '!', 'format': 'wav'}}, {'type': 'file', 'file': {'file_data': 'data:application/pdf;base64,YWJj', 'filename': 'f.pdf'}}, {'type': 'file', 'file': {'file_data': 'data:application/pdf;base64,YWJj'}}, {'type': 'file', 'file': {'file_id': 'id1', 'filename': 'g'}}, {'type': 'file', 'file': {}}, {'type': 'video_url', 'video_url': {'url': 'https://a.test/v.mp4'}}, {'type': 'audio_url', 'audio_url': {'url': 'https://a.test/v.mp3'}, 'x': 1}, {'type': 'file_url', 'file_url': {'url': 'YWJj'}}, {'type': 'file_url', 'file_url': {'url': 'https://a.test/x'}}, {'type': 'odd', 'odd': {'y': 1}}, {'type': 'text', 'text': ''}]},
    {'role': 'user', 'content': [{'type': 'odd', 'text': 'a'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'one'}]},
    {'role': 'user', 'content': None},
    {'role': 'user'},
    {'role': 'user', 'content': ''},
    {'role': 'user', 'content': []},
    {'role': 'assistant', 'content': None, 'reasoning_content': 'r', 'reasoning': 'r', 'tool_calls': [{'id': 'c1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}, {'id': 'c2', 'function': {'name': 'f', 'arguments': {'a': 2}, 'strict': True}, 'index': 1}, {'type': 'function', 'function': {'name': 'g', 'arguments': '{}'}}, {'id': None, 'type': 'function', 'function': {'name': 'g'}}, {'id': 'c5', 'type': 'custom', 'custom': {'name': 'sh', 'input': 'ls', 'z': 1}, 'w': 1}, {'id': 'c6', 'type': 'function', 'function': {'name': 'f', 'arguments': '{not'}}]},
    {'role': 'tool', 'tool_call_id': 'c1', 'content': 'one'},
    {'role': 'tool', 'tool_call_id': 'c2', 'name': 'f', 'content': [{'type': 'text', 'text': 'two'}], 'x': 1},
    {'role': 'tool', 'content': {'a': 1}},
    {'role': 'tool', 'tool_call_id': None, 'content': None},
    {'role': 'tool', 'tool_call_id': 'c5', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]},
    {'role': 'tool', 'tool_call_id': 'c6'},
    {'role': 'tool', 'tool_call_id': 'zz', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image_url', 'image_url': {'url': 'https://a.test/a.png'}}]},
    {'role': 'assistant', 'content': '', 'function_call': {'name': 'old', 'arguments': '{}'}},
    {'role': 'function', 'name': 'old', 'content': 'r'},
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'refusal', 'refusal': 'b'}], 'refusal': 'no', 'reasoning': 't', 'name': 'm'},
    {'role': 'assistant', 'content': 'x', 'images': [{'type': 'image_url', 'image_url': {'url': 'https://a.test/a.png'}}], 'audio': {'id': 'a1'}, 'annotations': [{'type': 'u'}], 'reasoning_details': [{'type': 'reasoning.text', 'text': 'd', 'signature': 's', 'index': 0}, {'type': 'reasoning.summary', 'summary': 'e', 'index': 1}, {'type': 'reasoning.encrypted', 'data': 'z', 'id': 'i'}]},
    {'role': 'assistant', 'content': 'x', 'reasoning': 'de', 'reasoning_details': [{'type': 'reasoning.text', 'text': 'de'}]},
    {'role': 'assistant', 'content': 'x', 'executed_tools': [{'index': 0, 'type': 'python', 'arguments': '{"c":1}', 'output': 'o', 'took': 1}, {'index': 1, 'type': 'search', 'arguments': '{}'}]},
    {'role': 'assistant', 'tool_calls': []},
]

CHAT_READ = [
    Message(Role.SYSTEM, (TextPart('s'),)),
    Message(Role.SYSTEM, (TextPart('d'),), native={'openai_chat': {'name': 'n'}, 'openai_chat:notes': {'spelling': {'role': 'developer'}}}),
    Message(Role.SYSTEM, (TextPart('d'),), native={'openai_chat:notes': {'spelling': {'role': 'developer', 'content': 'list'}}}),
    Message(Role.USER, (TextPart('a', native={'openai_chat': {'cache_control': {'type': 'ephemeral'}}}), LinkPart('https://a.test/a.png', native={'openai_chat': {'image_url': {'detail': 'low'}}}), DataPart(b'abc', mime_type='image/png'), DataPart(b'abc', mime_type='audio/wav'), DataPart(b'abc', mime_type='audio/flac', native={'openai_chat:notes': {'spelling': {'type': 'input_audio'}}}), ProviderPart('input_audio', native={'openai_chat': {'type': 'input_audio', 'input_audio': {'data': '!', 'format': 'wav'}}}), DataPart(b'abc', mime_type='application/pdf', name='f.pdf'), DataPart(b'abc', mime_type='application/pdf', native={'openai_chat:notes': {'spelling': {'filename': 'absent'}}}), FilePart('id1', name='g', native={'openai_chat': {}}), ProviderPart('file', native={'openai_chat': {'type': 'file', 'file': {}}}), LinkPart('https://a.test/v.mp4', native={'openai_chat:notes': {'spelling': {'type': 'video_url'}}}), LinkPart('https://a.test/v.mp3', native={'openai_chat': {'x': 1}, 'openai_chat:notes': {'spelling': {'type': 'audio_url'}}}), DataPart(b'abc', mime_type='application/octet-stream', native={'openai_chat:notes': {'spelling': {'type': 'file_url'}}}), LinkPart('https://a.test/x', native={'openai_chat:notes': {'spelling': {'type': 'file_url'}}}), ProviderPart('odd', native={'openai_chat': {'type': 'odd', 'odd': {'y': 1}}}), ProviderPart('text', native={'openai_chat': {'type': 'text', 'text': ''}}))),
    Message(Role.USER, (ProviderPart('odd', native={'openai_chat': {'type': 'odd', 'text': 'a'}}),)),
    Message(Role.USER, (TextPart('one'),), native={'openai_chat:notes': {'spelling': {'content': 'list'}}}),
    Message(Role.USER, (), native={'openai_chat:notes': {'spelling': {'content': None}}}),
    Message(Role.USER, (), native={'openai_chat:notes': {'spelling': {'content': 'absent'}}}),
    Message(Role.USER, ()),
    Message(Role.USER, (), native={'openai_chat:notes': {'spelling': {'content': []}}}),
    Message(Role.MODEL, (ThinkingPart('r', native={'openai_chat:notes': {'spelling': {'fields': ['reasoning_content', 'reasoning']}}}), ToolCallPart('c1', name='f', arguments={'a': 1}, raw='{"a": 1}'), ToolCallPart('c2', name='f', arguments={'a': 2}, native={'openai_chat': {'index': 1, 'function': {'strict': True}}, 'openai_chat:notes': {'spelling': {'type': 'absent', 'arguments': {'a': 2}}}}), ToolCallPart('call-0', name='g', native={'openai_chat': {'id': None}}), ToolCallPart('call-1', name='g', native={'openai_chat': {'id': None}, 'openai_chat:notes': {'spelling': {'id': None, 'without': 'arguments'}}}), ToolCallPart('c5', name='sh', arguments={'input': 'ls'}, native={'openai_chat': {'w': 1, 'custom': {'z': 1}}, 'openai_chat:notes': {'spelling': {'type': 'custom'}}}), ToolCallPart('c6', name='f', raw='{not', state='invalid', native={'openai_chat:notes': {'spelling': {'arguments': '{not'}}})), origin=Origin('p')),
    Message(Role.USER, (ToolResultPart('c1', name='f', result='one'), ToolResultPart('c2', name='f', result=(TextPart('two'),), native={'openai_chat': {'x': 1}, 'openai_chat:notes': {'spelling': {'name': True, 'content': 'list'}}}), ToolResultPart('call-0', name='g', result={'a': 1}, native={'openai_chat': {'id': None}, 'openai_chat:notes': {'spelling': {'content': 'raw'}}}), ToolResultPart('call-1', name='g', result=None, native={'openai_chat': {'id': None}, 'openai_chat:notes': {'spelling': {'id': None, 'content': 'raw'}}}), ToolResultPart('c5', name='sh', result=(TextPart('a'), TextPart('b'))), ToolResultPart('c6', name='f', result=None, native={'openai_chat:notes': {'spelling': {'content': 'absent'}}}), ToolResultPart('zz', name='', result=(TextPart('a'), LinkPart('https://a.test/a.png')), native={'openai_chat:notes': {'spelling': {'content': 'list'}}}))),
    Message(Role.MODEL, (ToolCallPart('call-2', name='old', native={'openai_chat': {'id': None}, 'openai_chat:notes': {'spelling': {'field': 'function_call'}}}),), origin=Origin('p'), native={'openai_chat:notes': {'spelling': {'content': ''}}}),
    Message(Role.USER, (ToolResultPart('call-2', name='old', result='r', native={'openai_chat': {'id': None}, 'openai_chat:notes': {'spelling': {'role': 'function'}}}),)),
    Message(Role.MODEL, (ThinkingPart('t', native={'openai_chat:notes': {'spelling': {'fields': ['reasoning']}}}), TextPart('a'), TextPart('b', native={'openai_chat:notes': {'spelling': {'type': 'refusal'}}}), TextPart('no', native={'openai_chat:notes': {'spelling': {'field': 'refusal'}}})), origin=Origin('p'), native={'openai_chat': {'name': 'm'}}),
    Message(Role.MODEL, (ThinkingPart('d', native={'openai_chat': {'type': 'reasoning.text', 'signature': 's', 'index': 0}}), ThinkingPart('e', native={'openai_chat': {'type': 'reasoning.summary', 'index': 1}}), ThinkingPart('', native={'openai_chat': {'type': 'reasoning.encrypted', 'data': 'z', 'id': 'i'}}), TextPart('x'), LinkPart('https://a.test/a.png', native={'openai_chat:notes': {'spelling': {'field': 'images'}}}), FilePart('a1', native={'openai_chat:notes': {'spelling': {'field': 'audio'}}})), origin=Origin('p'), native={'openai_chat': {'annotations': [{'type': 'u'}]}}),
    Message(Role.MODEL, (ThinkingPart('de', native={'openai_chat': {'type': 'reasoning.text'}, 'openai_chat:notes': {'spelling': {'fields': ['reasoning', 'reasoning_details']}}}), TextPart('x')), origin=Origin('p')),
    Message(Role.MODEL, (TextPart('x'), ToolCallPart('call-3', name='python', arguments={'c': 1}, run_by='provider'), ToolResultPart('call-3', name='python', result='o', run_by='provider', native={'openai_chat': {'took': 1}}), ToolCallPart('call-4', name='search', run_by='provider')), origin=Origin('p')),
    Message(Role.MODEL, (), origin=Origin('p'), native={'openai_chat': {'tool_calls': []}, 'openai_chat:notes': {'spelling': {'content': 'absent'}}}),
]

CHAT_SENT: list[Any] = [
    {'role': 'system', 'content': 's'},
    {'role': 'developer', 'content': 'd', 'name': 'n'},
    {'role': 'developer', 'content': [{'type': 'text', 'text': 'd'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'a', 'cache_control': {'type': 'ephemeral'}}, {'type': 'image_url', 'image_url': {'url': 'https://a.test/a.png', 'detail': 'low'}}, {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj'}}, {'type': 'input_audio', 'input_audio': {'data': 'YWJj', 'format': 'wav'}}, {'type': 'input_audio', 'input_audio': {'data': 'YWJj', 'format': 'flac'}}, {'type': 'input_audio', 'input_audio': {'data': '!', 'format': 'wav'}}, {'type': 'file', 'file': {'filename': 'f.pdf', 'file_data': 'data:application/pdf;base64,YWJj'}}, {'type': 'file', 'file': {'file_data': 'data:application/pdf;base64,YWJj'}}, {'type': 'file', 'file': {'file_id': 'id1', 'filename': 'g'}}, {'type': 'file', 'file': {}}, {'type': 'video_url', 'video_url': {'url': 'https://a.test/v.mp4'}}, {'type': 'audio_url', 'audio_url': {'url': 'https://a.test/v.mp3'}, 'x': 1}, {'type': 'file_url', 'file_url': {'url': 'YWJj'}}, {'type': 'file_url', 'file_url': {'url': 'https://a.test/x'}}, {'type': 'odd', 'odd': {'y': 1}}, {'type': 'text', 'text': ''}]},
    {'role': 'user', 'content': [{'type': 'odd', 'text': 'a'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'one'}]},
    {'role': 'user', 'content': None},
    {'role': 'user'},
    {'role': 'user', 'content': ''},
    {'role': 'user', 'content': []},
    {'role': 'assistant', 'content': None, 'tool_calls': [{'id': 'c1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}, {'id': 'c2', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a":2}'}}, {'id': 'call-0', 'type': 'function', 'function': {'name': 'g', 'arguments': '{}'}}, {'id': 'call-1', 'type': 'function', 'function': {'name': 'g', 'arguments': '{}'}}, {'id': 'c5', 'type': 'custom', 'custom': {'name': 'sh', 'input': 'ls'}}, {'id': 'c6', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}]},
    {'role': 'tool', 'tool_call_id': 'c1', 'content': 'one'},
    {'role': 'tool', 'tool_call_id': 'c2', 'content': 'two', 'x': 1},
    {'role': 'tool', 'tool_call_id': 'call-0', 'content': '{"a":1}'},
    {'role': 'tool', 'tool_call_id': 'call-1', 'content': 'null'},
    {'role': 'tool', 'tool_call_id': 'c5', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]},
    {'role': 'tool', 'tool_call_id': 'c6', 'content': 'null'},
    {'role': 'tool', 'tool_call_id': 'zz', 'content': 'a'},
    {'role': 'user', 'content': [{'type': 'text', 'text': '[result of zz]'}, {'type': 'image_url', 'image_url': {'url': 'https://a.test/a.png'}}]},
    {'role': 'assistant', 'content': '', 'tool_calls': [{'id': 'call-2', 'type': 'function', 'function': {'name': 'old', 'arguments': '{}'}}]},
    {'role': 'tool', 'tool_call_id': 'call-2', 'content': 'r'},
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'refusal', 'refusal': 'b'}, {'type': 'text', 'text': 'no'}]},
    {'role': 'assistant', 'content': 'x'},
    {'role': 'assistant', 'content': 'x'},
    {'role': 'assistant', 'content': 'x'},
    {'role': 'assistant'},
]

CHAT_LOST = [
    (10, 0, 'thinking', 'it comes from p, which q does not read'),
    (10, 2, 'field index, function', 'it comes from p, which q does not read'),
    (10, 5, 'field w, custom', 'it comes from p, which q does not read'),
    (10, 6, 'arguments', 'they are no JSON object; the call is sent without'),
    (11, 6, 'media', 'tool messages hold text only; it follows in a user message'),
    (14, 0, 'thinking', 'it comes from p, which q does not read'),
    (14, None, 'field name', 'it comes from p, which q does not read'),
    (15, 0, 'thinking', 'it comes from p, which q does not read'),
    (15, 1, 'thinking', 'it comes from p, which q does not read'),
    (15, 2, 'thinking', 'it comes from p, which q does not read'),
    (15, 4, 'link', "a model's message holds no media in this format"),
    (15, 5, 'file', "a model's message holds no media in this format"),
    (15, None, 'field annotations', 'it comes from p, which q does not read'),
    (16, 0, 'thinking', 'it comes from p, which q does not read'),
    (17, 1, 'tool call', 'it comes from p, which q does not read'),
    (17, 2, 'tool result', 'it comes from p, which q does not read'),
    (17, 3, 'tool call', 'it comes from p, which q does not read'),
    (18, None, 'field tool_calls', 'it comes from p, which q does not read'),
]

CHAT_REQUESTS: list[tuple[Any, ModelRequest]] = [
    ({'model': 'm', 'messages': [], 'temperature': 0.5, 'top_p': 1, 'top_k': 3, 'presence_penalty': 0.1, 'frequency_penalty': 0.2, 'seed': 7, 'parallel_tool_calls': False, 'max_completion_tokens': 9, 'stop': 'x', 'reasoning': {'effort': 'high'}, 'cache_control': {'type': 'ephemeral', 'ttl': '1h'}, 'function_call': {'name': 'f'}, 'functions': [{'name': 'f', 'description': 'd', 'parameters': SCHEMA}, {'name': 'g', 'strict': True}], 'stream': True, 'stream_options': {'include_usage': False}, 'response_format': {'type': 'json_schema', 'x': 1, 'json_schema': {'name': 'n', 'strict': True, 'schema': SCHEMA}}, 'user': 'u'}, ModelRequest(model='m', tools=(ToolSpec(name='f', description='d', input_schema=SCHEMA), ToolSpec(name='g', native={'openai_chat': {'function': {'strict': True}}, 'openai_chat:notes': {'spelling': {'parameters': 'absent'}}})), settings=Settings(temperature=0.5, max_tokens=9, top_p=1, top_k=3, presence_penalty=0.1, frequency_penalty=0.2, stop=('x',), seed=7, tool_choice='f', parallel_tool_calls=False, reasoning='high', cache='long'), output_schema=SCHEMA, stream=True, options={'user': 'u'}, native={'openai_chat': {'stream_options': {'include_usage': False}, 'response_format': {'x': 1, 'json_schema': {'name': 'n', 'strict': True}}}, 'openai_chat:notes': {'spelling': {'max_tokens': 'max_completion_tokens', 'stop': 'string', 'reasoning': 'reasoning', 'cache': 'cache_control', 'tool_choice': 'function_call', 'tools': 'functions'}}}, wire='openai_chat')),
    ({'model': 'm', 'messages': [], 'max_tokens': 9, 'max_completion_tokens': 10, 'stop': ['a', 'b'], 'reasoning_effort': 'none', 'enable_thinking': True, 'prompt_cache_retention': '24h', 'tool_choice': {'type': 'function', 'function': {'name': 'f'}}, 'tools': [{'type': 'function', 'function': {'name': 'f', 'parameters': {}}, 'cache': 1}, {'function': {'name': 'g', 'description': '', 'parameters': SCHEMA}}, {'type': 'web_search', 'n': 1}, {'type': 'custom', 'custom': {'name': 'c'}}], 'stream': True, 'response_format': {'type': 'json_object'}}, ModelRequest(model='m', tools=(ToolSpec(name='f', native={'openai_chat': {'cache': 1, 'function': {'parameters': {}}}}), ToolSpec(name='g', input_schema=SCHEMA, native={'openai_chat': {'function': {'description': ''}}, 'openai_chat:notes': {'spelling': {'type': 'absent'}}}), ServerTool(name='web_search', options={'n': 1}, native={'openai_chat': {}}), ServerTool(name='custom', options={'custom': {'name': 'c'}}, native={'openai_chat': {}})), settings=Settings(max_tokens=9, stop=('a', 'b'), tool_choice='f', reasoning='off', cache='long'), output_schema={'type': 'object'}, stream=True, native={'openai_chat': {'max_completion_tokens': 10, 'enable_thinking': True}, 'openai_chat:notes': {'spelling': {'cache': 'prompt_cache_retention', 'stream_options': 'absent'}}})),
    ({'model': '', 'messages': [], 'temperature': True, 'seed': '7', 'stop': [1], 'max_tokens': '9', 'reasoning_effort': 'default', 'thinking': {'type': 'enabled', 'budget_tokens': 99}, 'tool_choice': {'type': 'allowed_tools'}, 'tools': [{'function': {}}], 'functions': [], 'stream': False, 'stream_options': None, 'response_format': {'type': 'json_schema'}}, ModelRequest(model='', settings=Settings(reasoning=99), options={'model': ''}, native={'openai_chat': {'temperature': True, 'seed': '7', 'max_tokens': '9', 'stop': [1], 'tool_choice': {'type': 'allowed_tools'}, 'reasoning_effort': 'default', 'tools': [{'function': {}}], 'functions': [], 'response_format': {'type': 'json_schema'}, 'stream': False, 'stream_options': None}, 'openai_chat:notes': {'spelling': {'reasoning': 'thinking'}}}, wire='openai_chat')),
]

MISTRAL_SAID: list[Any] = [
    {'role': 'system', 'content': 's'},
    {'role': 'system', 'content': [{'type': 'text', 'text': 's'}, {'type': 'thinking', 'thinking': [{'type': 'text', 'text': 'how'}], 'closed': True}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'a', 'x': 1}, {'type': 'image_url', 'image_url': 'https://a.test/a.png'}, {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj', 'detail': 'low'}}, {'type': 'image_url', 'image_url': {'detail': 'low'}}, {'type': 'document_url', 'document_url': 'https://a.test/a.pdf', 'document_name': 'n'}, {'type': 'document_url', 'document_url': 'data:application/pdf;base64,YWJj'}, {'type': 'input_audio', 'input_audio': 'YWJj'}, {'type': 'input_audio', 'input_audio': 'https://a.test/a.mp3'}, {'type': 'input_audio', 'input_audio': 'data:audio/wav;base64,YWJj', 'z': 2}, {'type': 'input_audio', 'input_audio': '!'}, {'type': 'file', 'file_id': 'id1', 'k': 1}, {'type': 'file'}, {'type': 'reference', 'reference_ids': [1]}, {'type': 'text', 'text': ''}, {'type': 'document_url', 'document_url': 'https://a.test/pic.png'}]},
    {'role': 'user', 'content': [{'type': 'odd', 'text': 'a'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'one'}]},
    {'role': 'user', 'content': None},
    {'role': 'user'},
    {'role': 'user', 'content': ''},
    {'role': 'user', 'content': [], 'n': 1},
    {'role': 'assistant', 'content': '', 'prefix': True, 'tool_calls': [{'id': 'abcdefgh1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}, {'id': 'c2', 'function': {'name': 'f', 'arguments': {'a': 2}, 'strict': True}, 'index': 1}, {'type': 'function', 'function': {'name': 'g', 'arguments': '{}'}}, {'id': 'null', 'type': 'function', 'function': {'name': 'g h'}}, {'id': None, 'type': 'function', 'function': {'name': 'f', 'arguments': '{not'}}, {'id': 'abcdefgh1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}]},
    {'role': 'tool', 'tool_call_id': 'abcdefgh1', 'content': 'one'},
    {'role': 'tool', 'tool_call_id': 'c2', 'name': 'f', 'content': [{'type': 'text', 'text': 'two'}], 'x': 1},
    {'role': 'tool', 'content': {'a': 1}},
    {'role': 'tool', 'tool_call_id': None, 'content': None, 'name': ''},
    {'role': 'tool', 'tool_call_id': 'null', 'name': 'g h', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]},
    {'role': 'tool', 'tool_call_id': 'zz'},
    {'role': 'tool', 'tool_call_id': 'zz', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image_url', 'image_url': 'https://a.test/a.png'}]},
    {'role': 'assistant', 'content': [{'type': 'thinking', 'thinking': 't', 'signature': 's'}, {'type': 'thinking', 'thinking': [{'type': 'text', 'text': 'u'}, {'type': 'reference', 'reference_ids': [2]}], 'closed': False}, {'type': 'thinking', 'thinking': []}, {'type': 'text', 'text': 'x'}], 'odd': 1},
    {'role': 'system', 'content': 'late'},
    {'role': 'assistant', 'tool_calls': []},
    {'role': 'assistant', 'content': None, 'tool_calls': [{'function': {'name': ''}}]},
]

MISTRAL_READ = [
    Message(Role.SYSTEM, (TextPart('s'),)),
    Message(Role.SYSTEM, (TextPart('s'), ThinkingPart('how', native={'mistral': {'closed': True}, 'mistral:notes': {'spelling': {'here': True}}}))),
    Message(Role.USER, (TextPart('a', native={'mistral': {'x': 1}}), LinkPart('https://a.test/a.png', native={'mistral:notes': {'spelling': {'url': 'string'}}}), DataPart(b'abc', mime_type='image/png', native={'mistral': {'image_url': {'detail': 'low'}}}), ProviderPart('image_url', native={'mistral': {'type': 'image_url', 'image_url': {'detail': 'low'}}}), LinkPart('https://a.test/a.pdf', name='n'), DataPart(b'abc', mime_type='application/pdf'), DataPart(b'abc', mime_type='audio/mpeg'), LinkPart('https://a.test/a.mp3'), DataPart(b'abc', mime_type='audio/wav', native={'mistral': {'z': 2}, 'mistral:notes': {'spelling': {'url': 'data'}}}), ProviderPart('input_audio', native={'mistral': {'type': 'input_audio', 'input_audio': '!'}}), FilePart('id1', native={'mistral': {'k': 1}}), ProviderPart('file', native={'mistral': {'type': 'file'}}), ProviderPart('reference', native={'mistral': {'type': 'reference', 'reference_ids': [1]}}), ProviderPart('text', native={'mistral': {'type': 'text', 'text': ''}}), LinkPart('https://a.test/pic.png', native={'mistral:notes': {'spelling': {'type': 'document_url'}}}))),
    Message(Role.USER, (ProviderPart('odd', native={'mistral': {'type': 'odd', 'text': 'a'}}),)),
    Message(Role.USER, (TextPart('one'),), native={'mistral:notes': {'spelling': {'content': 'list'}}}),
    Message(Role.USER, (), native={'mistral:notes': {'spelling': {'content': None}}}),
    Message(Role.USER, (), native={'mistral:notes': {'spelling': {'content': 'absent'}}}),
    Message(Role.USER, ()),
    Message(Role.USER, (), native={'mistral': {'n': 1}, 'mistral:notes': {'spelling': {'content': []}}}),
    Message(Role.MODEL, (ToolCallPart('abcdefgh1', name='f', arguments={'a': 1}, raw='{"a": 1}'), ToolCallPart('c2', name='f', arguments={'a': 2}, native={'mistral': {'index': 1, 'function': {'strict': True}}, 'mistral:notes': {'spelling': {'type': 'absent', 'as_is': True, 'arguments': {'a': 2}}}}), ToolCallPart('call-0', name='g', native={'mistral': {'id': None}}), ToolCallPart('null', name='g h', native={'mistral:notes': {'spelling': {'name_as_is': True, 'as_is': True, 'without': 'arguments'}}}), ToolCallPart('call-1', name='f', raw='{not', state='invalid', native={'mistral': {'id': None}, 'mistral:notes': {'spelling': {'id': None, 'arguments': '{not'}}}), ToolCallPart('abcdefgh1', name='f', native={'mistral:notes': {'spelling': {'as_is': True}}})), origin=Origin('p'), native={'mistral': {'prefix': True}}),
    Message(Role.USER, (ToolResultPart('abcdefgh1', name='f', result='one'), ToolResultPart('c2', name='f', result=(TextPart('two'),), native={'mistral': {'x': 1}, 'mistral:notes': {'spelling': {'name': True, 'as_is': True, 'content': 'list'}}}), ToolResultPart('call-0', name='g', result={'a': 1}, native={'mistral': {'id': None}, 'mistral:notes': {'spelling': {'content': 'raw'}}}), ToolResultPart('call-2', name='', result=None, native={'mistral': {'id': None, 'name': ''}, 'mistral:notes': {'spelling': {'id': None, 'content': 'raw'}}}), ToolResultPart('null', name='g h', result=(TextPart('a'), TextPart('b')), native={'mistral:notes': {'spelling': {'name': True, 'name_as_is': True, 'as_is': True}}}), ToolResultPart('zz', name='', result=None, native={'mistral:notes': {'spelling': {'as_is': True, 'content': 'absent'}}}), ToolResultPart('zz', name='', result=(TextPart('a'), LinkPart('https://a.test/a.png', native={'mistral:notes': {'spelling': {'url': 'string'}}})), native={'mistral:notes': {'spelling': {'as_is': True, 'content': 'list'}}}))),
    Message(Role.MODEL, (ThinkingPart('t', native={'mistral': {'signature': 's'}, 'mistral:notes': {'spelling': {'items': 'string'}}}), ThinkingPart('u', native={'mistral': {'closed': False}, 'mistral:notes': {'spelling': {'items': [1, {'type': 'reference', 'reference_ids': [2]}]}}}), ThinkingPart('', native={'mistral:notes': {'spelling': {'items': []}}}), TextPart('x')), origin=Origin('p'), native={'mistral': {'odd': 1}}),
    Message(Role.SYSTEM, (TextPart('late'),), native={'mistral:notes': {'spelling': {'place': 'here'}}}),
    Message(Role.MODEL, (), origin=Origin('p'), native={'mistral': {'tool_calls': []}, 'mistral:notes': {'spelling': {'content': 'absent'}}}),
    Message(Role.MODEL, (), origin=Origin('p'), native={'mistral': {'tool_calls': [{'function': {'name': ''}}]}, 'mistral:notes': {'spelling': {'content': None}}}),
]

MISTRAL_SENT: list[Any] = [
    {'role': 'system', 'content': 's'},
    {'role': 'system', 'content': [{'type': 'text', 'text': 's'}, {'type': 'thinking', 'thinking': [{'type': 'text', 'text': 'how'}], 'closed': True}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'a', 'x': 1}, {'type': 'image_url', 'image_url': 'https://a.test/a.png'}, {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj', 'detail': 'low'}}, {'type': 'image_url', 'image_url': {'detail': 'low'}}, {'type': 'document_url', 'document_url': 'https://a.test/a.pdf', 'document_name': 'n'}, {'type': 'document_url', 'document_url': 'data:application/pdf;base64,YWJj'}, {'type': 'input_audio', 'input_audio': 'YWJj'}, {'type': 'input_audio', 'input_audio': 'https://a.test/a.mp3'}, {'type': 'input_audio', 'input_audio': 'data:audio/wav;base64,YWJj', 'z': 2}, {'type': 'input_audio', 'input_audio': '!'}, {'type': 'file', 'file_id': 'id1', 'k': 1}, {'type': 'file'}, {'type': 'reference', 'reference_ids': [1]}, {'type': 'text', 'text': ''}, {'type': 'document_url', 'document_url': 'https://a.test/pic.png'}]},
    {'role': 'user', 'content': [{'type': 'odd', 'text': 'a'}]},
    {'role': 'user', 'content': [{'type': 'text', 'text': 'one'}]},
    {'role': 'assistant', 'content': '', 'tool_calls': [{'id': 'abcdefgh1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}, {'id': '438df9eef', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a":2}', 'strict': True}, 'index': 1}, {'id': '66bcd2109', 'type': 'function', 'function': {'name': 'g', 'arguments': '{}'}}, {'id': '220141b94', 'type': 'function', 'function': {'name': 'g_h_382c7e40', 'arguments': '{}'}}, {'id': '8a949283c', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}, {'id': '1b991f8cd', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}], 'prefix': True},
    {'role': 'tool', 'tool_call_id': 'abcdefgh1', 'content': 'one'},
    {'role': 'tool', 'tool_call_id': '438df9eef', 'content': 'two'},
    {'role': 'tool', 'tool_call_id': '66bcd2109', 'content': '{"a":1}'},
    {'role': 'tool', 'tool_call_id': '8ee6cc52e', 'content': 'null'},
    {'role': 'tool', 'tool_call_id': '220141b94', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]},
    {'role': 'tool', 'tool_call_id': 'c0f4e92a8', 'content': 'null'},
    {'role': 'tool', 'tool_call_id': 'd6f5369ea', 'content': 'a'},
    {'role': 'user', 'content': [{'type': 'text', 'text': '[result of zz]'}, {'type': 'image_url', 'image_url': 'https://a.test/a.png'}]},
    {'role': 'assistant', 'content': 'x', 'odd': 1},
    {'role': 'system', 'content': 'late'},
]

MISTRAL_LOST = [
    (5, None, 'message', 'it says nothing, and the API takes no empty message'),
    (6, None, 'message', 'it says nothing, and the API takes no empty message'),
    (7, None, 'message', 'it says nothing, and the API takes no empty message'),
    (8, None, 'message', 'it says nothing, and the API takes no empty message'),
    (9, 4, 'arguments', 'they are no JSON object; the call is sent without'),
    (10, 6, 'media', 'tool messages hold text only; it follows in a user message'),
    (11, 0, 'thinking', 'it comes from p, which q does not read'),
    (11, 1, 'thinking', 'it comes from p, which q does not read'),
    (11, 2, 'thinking', 'it comes from p, which q does not read'),
    (13, None, 'message', "it says nothing, and the API takes no empty message of the model's"),
    (14, None, 'message', "it says nothing, and the API takes no empty message of the model's"),
]

MISTRAL_REQUESTS: list[tuple[Any, ModelRequest]] = [
    ({'model': 'm', 'messages': [], 'temperature': 0.5, 'top_p': 1, 'top_k': 3, 'presence_penalty': 0.1, 'frequency_penalty': 0.2, 'random_seed': 7, 'parallel_tool_calls': False, 'max_tokens': 9, 'stop': 'x', 'reasoning_effort': 'high', 'tool_choice': 'required', 'tools': [{'type': 'function', 'function': {'name': 'f', 'parameters': {}}, 'cache': 1}, {'function': {'name': 'g', 'description': '', 'parameters': SCHEMA}}, {'type': 'web_search', 'n': 1}, {'type': 'function', 'function': {'name': 'h i', 'strict': True}}], 'stream': True, 'response_format': {'type': 'json_schema', 'x': 1, 'json_schema': {'name': 'n', 'strict': True, 'schema': SCHEMA}}, 'safe_prompt': True}, ModelRequest(model='m', tools=(ToolSpec(name='f', native={'mistral': {'cache': 1, 'function': {'parameters': {}}}}), ToolSpec(name='g', input_schema=SCHEMA, native={'mistral': {'function': {'description': ''}}, 'mistral:notes': {'spelling': {'type': 'absent'}}}), ServerTool(name='web_search', options={'n': 1}, native={'mistral': {}}), ToolSpec(name='h i', native={'mistral': {'function': {'strict': True}}, 'mistral:notes': {'spelling': {'parameters': 'absent', 'name_as_is': True}}})), settings=Settings(temperature=0.5, max_tokens=9, top_p=1, top_k=3, presence_penalty=0.1, frequency_penalty=0.2, stop=('x',), seed=7, tool_choice='required', parallel_tool_calls=False, reasoning='high'), output_schema=SCHEMA, stream=True, options={'safe_prompt': True}, native={'mistral': {'response_format': {'x': 1, 'json_schema': {'name': 'n', 'strict': True}}}, 'mistral:notes': {'spelling': {'stop': 'string', 'tool_choice': 'required'}}}, wire='mistral')),
    ({'model': 'm', 'messages': [], 'stop': ['a', 'b'], 'reasoning_effort': 'none', 'tool_choice': {'type': 'function', 'function': {'name': 'f'}}, 'response_format': {'type': 'json_object'}}, ModelRequest(model='m', settings=Settings(stop=('a', 'b'), tool_choice='f', reasoning='off'), output_schema={'type': 'object'})),
    ({'model': '', 'messages': [], 'temperature': True, 'random_seed': '7', 'stop': [1], 'max_tokens': '9', 'reasoning_effort': 'default', 'tool_choice': {'type': 'odd'}, 'tools': [{'function': {}}], 'stream': False, 'response_format': {'type': 'json_schema'}}, ModelRequest(model='', settings=Settings(), native={'mistral': {'temperature': True, 'max_tokens': '9', 'random_seed': '7', 'stop': [1], 'reasoning_effort': 'default', 'tool_choice': {'type': 'odd'}, 'tools': [{'function': {}}], 'response_format': {'type': 'json_schema'}, 'stream': False, 'model': ''}})),
]
# fmt: on


@pytest.mark.parametrize(
    ("name", "said", "messages", "sent", "lost"),
    [
        ("openai_chat", CHAT_SAID, CHAT_READ, CHAT_SENT, CHAT_LOST),
        ("mistral", MISTRAL_SAID, MISTRAL_READ, MISTRAL_SENT, MISTRAL_LOST),
    ],
    ids=["openai_chat", "mistral"],
)
def test_a_conversation_is_read_written_as_it_came_and_sent_elsewhere(
    name: str, said: Any, messages: Any, sent: Any, lost: Any
) -> None:
    wire = wires.get(name)
    assert wire.load_messages(said, origin=Origin("p")) == messages
    losses: list[Any] = []
    assert wire.dump_messages(messages, losses=losses) == said and losses == []
    assert wire.dump_messages(messages, target=Origin("q"), losses=losses) == sent
    assert [
        (loss.message, loss.part, f"{loss.what} {loss.which}".rstrip(), loss.why) for loss in losses
    ] == lost


@pytest.mark.parametrize(
    ("name", "body", "request_"),
    [("openai_chat", *one) for one in CHAT_REQUESTS]
    + [("mistral", *one) for one in MISTRAL_REQUESTS],
)
def test_a_request_is_read_and_written_as_it_came(
    name: str, body: dict[str, Any], request_: ModelRequest
) -> None:
    wire = wires.get(name)
    assert wire.load_request(body) == request_
    losses: list[Any] = []
    assert wire.dump_request(request_, losses=losses) == body and losses == []
    http = wire.dump_http(request_)
    assert (http.path, http.body) == ("/chat/completions", body)


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_options_are_written_to_their_own_wire_alone(name: str) -> None:
    wire, body = wires.get(name), {"model": "m", "messages": [], "user": "u"}
    for whose, sent, lost in [
        (name, body, []),
        (None, body, []),
        (
            "google",
            {"model": "m", "messages": []},
            [Loss(None, None, Lost.option, "it is a field of google", "user")],
        ),
    ]:
        losses: list[Loss] = []
        request = ModelRequest("m", options={"user": "u"}, wire=whose)
        assert (wire.dump_request(request, losses=losses), losses) == (sent, lost)
        assert wire.dump_http(request).body == sent
    assert wire.load_request(body).wire == name
    assert wire.load_request({"model": "m", "messages": []}).wire is None


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_the_places_of_the_official_apis(name: str) -> None:
    wire: Any = wires.get(name)
    media = {("POST", "/v1/audio/transcriptions"): "transcription"}
    if name == "openai_chat":
        media[("POST", "/v1/images/generations")] = "images"
        media[("POST", "/v1/images/edits")] = "images"
        media[("POST", "/v1/audio/speech")] = "speech"
    assert {(route.method, route.path): route.purpose for route in wire.routes} == {
        ("POST", "/v1/chat/completions"): "chat",
        ("POST", "/v1/embeddings"): "embeddings",
        ("GET", "/v1/models"): "models",
        ("GET", "/v1/models/{model}"): "model",
        **media,
    }


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_a_stop_that_was_a_string_is_a_list_where_there_are_several(name: str) -> None:
    wire = wires.get(name)
    request = wire.load_request({"model": "m", "messages": [], "stop": "x"})
    assert wire.dump_request(request)["stop"] == "x"
    assert wire.dump_request(request.replace(settings=Settings(stop=("x", "y"))))["stop"] == [
        "x",
        "y",
    ]
