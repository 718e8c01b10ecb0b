"""Files that tools of the provider made."""

from __future__ import annotations

import pytest

from dragoman.fold import fold
from dragoman.message import FilePart
from dragoman.wires import openai_responses as wire
from support.responses import WHOLE, message_block, text_block


@pytest.mark.parametrize(
    "annotation",
    [
        {"type": "container_file_citation", "file_id": "f", "container_id": "c", "filename": "n"}, {"type": "file_path", "file_id": "f"},
        {"type": "file_path", "file_id": ""}, {"type": "file_citation", "file_id": "f"},
    ],
)  # fmt: skip
def test_files_that_were_made_and_how_they_are_asked_for(annotation):
    (read,) = fold(
        wire.load_response(
            {
                **WHOLE,
                "output": [message_block(text_block("a", annotations=[annotation, annotation]))],
            }
        )
    )
    found = wire.load_files(read.content[0])
    if annotation["type"] == "file_citation" or not annotation["file_id"]:
        assert found == []
        return
    container = annotation.get("container_id")
    own = {"container_id": container} if container else {}
    assert found == [FilePart("f", None, annotation.get("filename"), {"openai_responses": own})]
    download = wire.dump_download(found[0])
    paths = [
        (one.method, one.path) for one in (download.content, download.about) if one is not None
    ]
    assert paths == (
        [("GET", "/containers/c/files/f/content")]
        if container
        else [("GET", "/files/f/content"), ("GET", "/files/f")]
    )
