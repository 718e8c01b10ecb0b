"""The messages of Vercel's AI SDK and of Mastra, which keeps to them: one native name, one loader,
and a table for each dialect.

The formats with a name are in `formats/`: `ai_sdk_ui`, `ai_sdk_model`, `mastra_v1`, `mastra_v2`.
From the bottom up:

- `notes`: the fields that differ from a plain writing. `provider_metadata`: what providers signed.
  `dragoman_metadata`: what the family has no field for. `byte_forms`, `js_dates`: values in JSON.
- `read_parts`: what a dialect is (`MessageDialect`), and the reading of one message's parts by it.
- A kind of part each, in all dialects: `texts_and_thinking`, `files`, `marks`, `tool_calls` (of UI
  messages), `model_tool_calls`, `tool_invocations` (of ai 4 and Mastra), `tool_output`.
- A dialect each, its table and the message around the parts: `ui_messages`, `ai4_ui_messages`,
  `model_messages`, `mastra_v2_rows` (with `mastra_mirrors`), `mastra_v1_rows`.
- `read_turn`: a UI message → the messages of its turn. `write_turn`: the way back, of the groups
  that `message_groups` makes. `steering`: what a user says within a turn. `text_only_messages`: the
  short way for messages of texts alone.
- `conversation`: a list of messages ↔ a conversation. `detection`: which dialect a message is of.
  `approvals`: whether a tool may run.
"""

__all__: list[str] = []
