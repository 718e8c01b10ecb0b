"""The messages of Vercel's AI SDK and of what keeps to them, one native name and one loader: UI messages and model messages, a dialect each.

`formats/ai_sdk_ui.py` and `formats/ai_sdk_model.py` are the formats that have a name.
"""

__all__: list[str] = []
