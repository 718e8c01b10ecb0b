"""The messages of Vercel's AI SDK and of Mastra, which keeps to them: one native name, one loader,
and a table for each dialect.

The formats with a name are in `formats/`: `ai_sdk_ui`, `ai_sdk_model`, `mastra_v1`, `mastra_v2`.
From the bottom up:

- `own`, `metadata`, `results`: what differs from a plain writing, what providers signed, what tools
  returned.
- `byte_forms`: bytes in JSON.
- `reading`: what a dialect is (`Dialect`), and the reading of one message by it.
- `texts`, `files`, `tools`, `invocations`, `marks`: a kind of part each, in all dialects.
- `ui`, `v4`, `rows`, `model`: the tables, and what stands around the parts; `mirrors` and
  `split_rows` for Mastra's rows.
- `read`, `write`, `turns`, `envelope`: a message ↔ the messages of its turn; `plain` is the short
  way for texts alone.
- `conversation`: a list of messages ↔ a conversation; `detection`, `approvals`.
"""

__all__: list[str] = []
