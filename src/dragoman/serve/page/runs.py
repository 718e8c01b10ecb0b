"""Starts, shows and cancels the caller's runs."""

from __future__ import annotations

import re
from base64 import b64decode
from contextlib import aclosing
from typing import cast

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.errors import InvalidRequestError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json
from dragoman.message import Content, DataPart, Message, TextPart
from dragoman.request import RunRequest
from dragoman.serve.apis.runs import begin_run
from dragoman.serve.core.agents import ServedAgent, choose_model
from dragoman.serve.core.call import Api, Call
from dragoman.serve.core.threads import check_name, resource_of, thread_id
from dragoman.serve.page.agents import find_served, models_of
from dragoman.serve.page.door import PageRequest, Reply
from dragoman.serve.page.spans import Waterfall
from dragoman.serve.page.threads import read_thread
from dragoman.serve.page.views import OwnerEvents, dump_run, find_own_runs, find_run, is_own_run

__all__ = ["cancel_run", "list_runs", "show_run", "start_run"]

_PER_PAGE = 50
_MOST_FILES = 20
_MOST_ANSWERS = 100
_LONGEST_TEXT = 1_000_000
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}")


class _RunApi(Api):
    """The page as an API: a request may ask for an answer anew."""

    def __init__(self, message_id: str | None) -> None:
        super().__init__({})
        self._message_id = message_id

    def regenerates(self, request: RunRequest) -> str | None:  # noqa: ARG002 the protocol's
        """See `Api`."""
        return self._message_id


async def start_run(request: PageRequest) -> Reply:
    """Starts a run, which goes on whether the page stays or leaves.

    Raises:
        InvalidRequestError: the body asks for none, or for more than one thing.
        ModelNotFoundError: the caller may use no such agent.
        DragomanError: the run cannot begin.
    """
    call, body = request.call, request.body
    served = _choose(request, find_served(call, request.read_text("agent")))
    parts = _load_prompt(request)
    resume = _load_answers(body.get("resume"))
    message_id = body.get("regenerate")
    if (bool(parts), bool(resume), message_id is not None).count(True) != 1:
        raise InvalidRequestError(
            'a run needs one of "text" or "files", "resume", and "regenerate"'
        )
    if message_id is not None:
        message_id = request.read_text("regenerate")
    if not parts:
        # Only a conversation that there is can go on.
        await read_thread(call)
    asked = RunRequest(
        (Message.user(*parts),) if parts else (),
        thread_id=check_name(call.parameters["id"], "the conversation's id"),
        resume=tuple(resume),
    )
    call = msgspec.structs.replace(call, api=_RunApi(message_id))
    run_id = await begin_run(call, asked, served)
    return Reply({"run_id": run_id, "thread_id": asked.thread_id}, 202)


def _choose(request: PageRequest, served: ServedAgent) -> ServedAgent:
    """Returns the agent with the model that the page chose."""
    model = request.read_text("model")
    default = next(iter(models_of(request.call, served)))
    return served if model in ("", default) else choose_model(request.call, served, model)


def _load_prompt(request: PageRequest) -> list[Content]:
    """Returns the content of the prompt: a text and files."""
    text = request.read_text("text", _LONGEST_TEXT)
    files = cast("list[object]", request.body.get("files") or [])
    if not _is_list(files) or len(files) > _MOST_FILES:
        raise InvalidRequestError(f'"files" is a list of at most {_MOST_FILES} files').at(
            field="files"
        )
    parts: list[Content] = [TextPart(text)] if text else []
    return [*parts, *map(_load_file, files)]


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _load_file(value: object) -> DataPart:
    file = if_object(value)
    data, media_type, name = file.get("data"), file.get("media_type"), file.get("name", "")
    try:
        if not (isinstance(data, str) and isinstance(media_type, str) and isinstance(name, str)):
            raise TypeError  # noqa: TRY301 - told below
        if not _MEDIA_TYPE.fullmatch(media_type) or len(name) > 200:
            raise ValueError  # noqa: TRY301 - told below
        return DataPart(b64decode(data, validate=True), media_type, name=name or None)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(
            'a file is {"name": …, "media_type": "image/png", "data": base64}'
        ).at(field="files") from error


def _load_answers(value: object) -> list[Resume]:
    """Returns the answers to what the last run waits for."""
    if value is None:
        return []
    answers = cast("list[object]", value)
    if not _is_list(answers) or not 0 < len(answers) <= _MOST_ANSWERS:
        raise InvalidRequestError(f'"resume" is a list of 1 to {_MOST_ANSWERS} answers').at(
            field="resume"
        )
    return [_load_answer(answer) for answer in answers]


def _load_answer(value: object) -> Resume:
    answer = if_object(value)
    name, approved = answer.get("interrupt_id"), answer.get("approved")
    if isinstance(name, str):
        if answer.get("cancelled") is True:
            return Resume(name, "cancelled")
        if isinstance(approved, bool):
            fields = ("approved", "arguments", "reason")
            return Resume(name, payload={key: answer[key] for key in fields if key in answer})
        if "value" in answer:
            return Resume(name, payload={"value": answer["value"]})
    raise InvalidRequestError(
        'an answer has an "interrupt_id", and one of "approved", "value" and "cancelled"'
    ).at(field="resume")


async def cancel_run(request: PageRequest) -> Reply:
    """Cancels a run. One that is over stays as it is."""
    status = await find_run(request.call, request.call.parameters["id"])
    await request.call.service.runs.cancel(status.run_id)
    return Reply(None, 204)


async def list_runs(request: PageRequest) -> Reply:
    """Answers with a page of runs, the latest first: all, or those of one conversation."""
    call, start = request.call, request.page * _PER_PAGE
    thread = None
    if name := call.query.get("thread_id"):
        thread = thread_id(resource_of(call), check_name(name, "thread_id"))
    statuses = await find_own_runs(call, thread_id=thread, most=_PER_PAGE + 1, skip=start)
    items = [
        dump_run(call, status, status.agent or await _find_agent(call, status.run_id))
        for status in statuses[:_PER_PAGE]
        if is_own_run(call, status)
    ]
    more = len(statuses) > _PER_PAGE
    return Reply({"items": items, "page": request.page, "has_more": more})


async def _find_agent(call: Call, run_id: str) -> str | None:
    """Returns the name of the agent of a run, or None if the server did not keep it."""
    answered = await call.service.answers.get(call.caller.id, run_id)
    return None if answered is None else answered.request.model


async def show_run(request: PageRequest) -> Reply:
    """Answers with a run and its waterfall."""
    call = request.call
    status = await find_run(call, call.parameters["id"])
    view, waterfall = OwnerEvents(call, keeps_prices=True), Waterfall()
    async with aclosing(call.service.runs.stored_events(status)) as pages:
        async for page in pages:
            waterfall.feed(view.feed(page))
    agent = status.agent or await _find_agent(call, status.run_id)
    value: Json = {**dump_run(call, status, agent), **waterfall.dump()}
    return Reply(value)
