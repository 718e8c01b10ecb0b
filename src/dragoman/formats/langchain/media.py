"""Files in content: LangChain's standard blocks (with `url`, `base64` or `file_id`), their older
form (with `source_type`), and the blocks of Chat Completions, which it takes everywhere ↔ parts.

The caller takes a part only where writing it gives the same block again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping

from dragoman.codec.json_values import if_object, if_text, read_extra_fields
from dragoman.codec.media import Media, decode_base64, dump_data_url, load_url
from dragoman.content import DataPart, FilePart, LinkPart
from dragoman.formats.langchain.envelope import OWN
from dragoman.json_bytes import Json, JsonMap

__all__ = ["MEDIA", "dump_media", "load_media"]

Block = Json
_ANY = {
    "image": "image/*",
    "audio": "audio/*",
    "video": "video/*",
    "file": None,
    "text-plain": "text/plain",
}
"""Type of a standard block → the type of the file, where the block does not say it."""
MEDIA = (*_ANY, "image_url", "input_audio")
"""Types of blocks that are files."""
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS = {mime_type: name for name, mime_type in _AUDIO.items()}


def load_media(block: JsonMap) -> Media | None:
    """Returns a LangChain file block as a part, or None if it is no file."""
    block_type = if_text(block.get("type"))
    if block_type == "image_url":
        return _load_url(block)
    if block_type == "input_audio":
        return _load_audio(block)
    if "file" in block:
        return _load_chat_file(block)
    if "source_type" in block:
        return _load_source(block)
    return _load_standard(block, block_type)


def dump_media(part: Media) -> Block:
    """Returns a file as a LangChain block, a standard one unless it was read from another."""
    form = OWN.form(part.native)
    dump = _FORMS.get(form.get("as", ""), _dump_standard_block)
    return dump(part, OWN.fields(part.native), form)


def _name(extras: object) -> str | None:
    return if_text(if_object(extras).get("filename")) or None


def _load_standard(block: JsonMap, block_type: str) -> Media | None:
    """Returns one of LangChain's standard file blocks as a part, or None."""
    mime_type, name = if_text(block.get("mime_type")) or None, _name(block.get("extras"))
    extra_fields = read_extra_fields(block, "type", "mime_type", "base64", "url", "file_id")
    if name is not None:
        extra_fields = read_extra_fields(extra_fields, "extras")
        if more := read_extra_fields(block["extras"], "filename"):
            extra_fields["extras"] = more
    form: Json = {} if mime_type else {"mime_type": "absent"}
    media_type = mime_type or _ANY[block_type]
    if block_type == "text-plain" and isinstance(text := block.get("text"), str):
        form["kind"] = block_type
        return DataPart(
            _utf8(text),
            media_type or "",
            name,
            OWN.note(read_extra_fields(extra_fields, "text"), form=form),
        )
    if block_type != _choose_media_block_type(media_type):
        form["kind"] = block_type
    return _load_file(block, media_type, name, extra_fields, form)


def _load_file(
    block: JsonMap, media_type: str | None, name: str | None, extra_fields: Json, form: Json
) -> Media | None:
    """Returns the file of a LangChain standard block by its `base64`, `url` or `file_id`; `None`:
    it has none of them. `extra_fields` and `form`: what is noted on the part."""
    if (data := decode_base64(block.get("base64"))) is not None and media_type is not None:
        return DataPart(data, media_type, name, OWN.note(extra_fields, form=form))
    if isinstance(url := block.get("url"), str):
        return LinkPart(url, media_type, name, OWN.note(extra_fields, form=form))
    if isinstance(id_ := block.get("file_id"), str):
        return FilePart(id_, media_type, name, OWN.note(extra_fields, mark=True, form=form))
    return None


def _dump_standard_block(part: Media, block_fields: Block, form: JsonMap) -> Block:
    """Returns a file as one of LangChain's standard blocks."""
    block_type = form.get("kind") or _choose_media_block_type(part.mime_type)
    block: Block = {**block_fields, "type": block_type}
    if part.mime_type and form.get("mime_type") != "absent":
        block["mime_type"] = part.mime_type
    if isinstance(part, DataPart):
        if block_type == "text-plain":
            block["text"] = part.data.decode(errors="replace")
        else:
            block["base64"] = b64encode(part.data).decode()
    else:
        block |= {"url": part.url} if isinstance(part, LinkPart) else {"file_id": part.id}
    if part.name:
        block["extras"] = {**if_object(block_fields.get("extras")), "filename": part.name}
    return block


def _load_source(block: JsonMap) -> Media | None:
    """Returns the media of a LangChain block in the form before the standard one."""
    block_type, mime_type = if_text(block.get("type")), if_text(block.get("mime_type")) or None
    media_type = mime_type or _ANY[block_type]
    extra_fields = read_extra_fields(
        block, "type", "source_type", "mime_type", "data", "url", "id", "text"
    )
    form: Json = {
        "as": "source",
        "kind": block_type,
        **({} if mime_type else {"mime_type": "absent"}),
    }
    match block:
        case {"source_type": "base64", "data": text} if (
            data := decode_base64(text)
        ) is not None and media_type is not None:
            return DataPart(data, media_type, None, OWN.note(extra_fields, form=form))
        case {"source_type": "text", "text": str(text)}:
            return DataPart(
                _utf8(text),
                media_type or "text/plain",
                None,
                OWN.note(extra_fields, form={**form, "text": True}),
            )
        case {"source_type": "url", "url": str(url)}:
            return LinkPart(url, media_type, None, OWN.note(extra_fields, form=form))
        case {"source_type": "id", "id": str(id_)}:
            return FilePart(id_, media_type, None, OWN.note(extra_fields, mark=True, form=form))
        case _:
            return None


def _dump_source_block(part: Media, block_fields: Block, form: JsonMap) -> Block:
    """Returns a file as a LangChain block of the older form, with `source_type`."""
    block = {**block_fields, "type": form.get("kind") or _choose_media_block_type(part.mime_type)}
    if part.mime_type and form.get("mime_type") != "absent":
        block["mime_type"] = part.mime_type
    if isinstance(part, LinkPart):
        return {**block, "source_type": "url", "url": part.url}
    if isinstance(part, FilePart):
        return {**block, "source_type": "id", "id": part.id}
    if form.get("text"):
        return {**block, "source_type": "text", "text": part.data.decode(errors="replace")}
    return {**block, "source_type": "base64", "data": b64encode(part.data).decode()}


def _load_url(block: JsonMap) -> Media | None:
    """Returns the image of a LangChain block as Chat Completions has it, which may also be the URL
    alone."""
    image, extra_fields = block.get("image_url"), read_extra_fields(block, "type", "image_url")
    form: Json = {"as": "image_url"}
    url = image
    if isinstance(image, dict):
        url, inner = if_object(image).get("url"), read_extra_fields(if_object(image), "url")
        extra_fields = {**extra_fields, **({"image_url": inner} if inner else {})}
    else:
        form["image_url"] = "string"
    if not isinstance(url, str):
        return None
    part = load_url(url)
    if isinstance(part, DataPart):
        return DataPart(part.data, part.mime_type, None, OWN.note(extra_fields, form=form))
    return LinkPart(url, "image/*", None, OWN.note(extra_fields, form=form))


def _image_url(part: Media, block_fields: Block, form: JsonMap) -> Block:
    """Returns an image as a LangChain block `image_url` of Chat Completions."""
    if isinstance(part, FilePart):
        return _dump_standard_block(part, block_fields, {})
    if isinstance(part, LinkPart):
        url = part.url
    else:
        url = dump_data_url(part)
    inner = if_object(block_fields.pop("image_url", None))
    return {
        **block_fields,
        "type": "image_url",
        "image_url": url if "image_url" in form else {**inner, "url": url},
    }


def _load_audio(block: JsonMap) -> Media | None:
    """Returns a LangChain block `input_audio` as a part, or None if its data cannot be read."""
    audio = if_object(block.get("input_audio"))
    data, name = decode_base64(audio.get("data")), if_text(audio.get("format"))
    if data is None or not name:
        return None
    native = OWN.note(read_extra_fields(block, "type", "input_audio"), form={"as": "input_audio"})
    return DataPart(data, _AUDIO.get(name, f"audio/{name}"), None, native)


def _input_audio(part: Media, block_fields: Block, _: JsonMap) -> Block:
    """Returns audio as a LangChain block `input_audio` of Chat Completions."""
    if not isinstance(part, DataPart):
        return _dump_standard_block(part, block_fields, {})
    format_ = _FORMATS.get(part.mime_type, part.mime_type.rpartition("/")[2])
    data = b64encode(part.data).decode()
    return {**block_fields, "type": "input_audio", "input_audio": {"data": data, "format": format_}}


def _load_chat_file(block: JsonMap) -> Media | None:
    """Returns the file of a LangChain block as Chat Completions has it."""
    file, extra_fields = if_object(block.get("file")), read_extra_fields(block, "type", "file")
    native = OWN.note(extra_fields, form={"as": "file"}, mark="file_id" in file)
    if isinstance(id_ := file.get("file_id"), str):
        return FilePart(id_, native=native)
    part = load_url(if_text(file.get("file_data")), if_text(file.get("filename")) or None)
    if isinstance(part, DataPart):
        return DataPart(part.data, part.mime_type, part.name, native)
    return None


def _chat_file(part: Media, block_fields: Block, _: JsonMap) -> Block:
    """Returns a file as a LangChain block `file` of Chat Completions."""
    if isinstance(part, LinkPart):
        return _dump_standard_block(part, block_fields, {})
    if isinstance(part, FilePart):
        file = {"file_id": part.id}
    else:
        file = {"file_data": dump_data_url(part)}
    return {
        **block_fields,
        "type": "file",
        "file": {**file, **({"filename": part.name} if part.name else {})},
    }


_FORMS: Mapping[str, Callable[[Media, Block, JsonMap], Block]] = {
    "source": _dump_source_block,
    "image_url": _image_url,
    "input_audio": _input_audio,
    "file": _chat_file,
}


def _choose_media_block_type(mime_type: str | None) -> str:
    """Returns the type of LangChain's block for a media type."""
    main_type = (mime_type or "").partition("/")[0]
    if main_type in ("image", "audio", "video"):
        return main_type
    return "file"


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")
