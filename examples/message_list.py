"""A conversation in a list: any format in, any format out, in any order."""

from dragoman import MessageList

messages = MessageList([{"role": "user", "content": "What is the weather in Oslo?"}])
messages.add({"type": "ai", "data": {"type": "ai", "content": "It rains."}}, source="response")
messages.add({"id": "u2", "role": "user", "parts": [{"type": "text", "text": "And in Rome?"}]})
print(messages.export("google"))
print(messages.to_ui_messages())
