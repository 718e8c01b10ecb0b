"""`StoredWorking`: the working memories of a memory, and the tool with which a model changes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dragoman.arguments import expect
from dragoman.codec.working_parts import WORKING_MEMORY, WORKING_TOOL, find_working_memory
from dragoman.errors import ConflictError, SettingsError
from dragoman.json_bytes import Json
from dragoman.logs import logger
from dragoman.memory.settings import check_optional_id
from dragoman.memory.store import Slot
from dragoman.memory.stored_threads import StoredThreads
from dragoman.memory.thread_rules import check_owner
from dragoman.memory.working_memory import Working, WorkingMemory
from dragoman.message import Message, Role
from dragoman.tools import Tool, ToolContext

__all__ = ["StoredWorking"]

_LOG = logger("memory")
_ATTEMPTS = 100
"""Most attempts to merge a change while others write. Each one that fails is one that another
writer made, so two hundred writers may come between."""
_DESCRIPTION = (
    "Changes your working memory: what you keep about the user across messages. Call it when the "
    "user says something that belongs in it, or that changes it. "
)
_WHOLE = "Give the whole text."
_FIELDS = "Give only the fields that change: null removes a field, a list replaces the stored list."


class StoredWorking(StoredThreads):
    """Working memories in a store."""

    working_memory: WorkingMemory | None = None
    """What the working memory is; `None`: there is none."""

    async def working(
        self, *, resource_id: str | None = None, thread_id: str | None = None
    ) -> Working:
        """Returns the working memory of a resource or thread; version 0 if nothing was written.

        Raises:
            ThreadNotFoundError: the thread is another resource's.
            HistoryError: the id that its scope needs is missing.
            SettingsError: this memory has no working memory.
        """
        slot = await self._locate_working(resource_id, thread_id)
        return Working(*await self.store.read_slot(slot))

    async def set_working(
        self,
        text: str,
        *,
        version: int,
        resource_id: str | None = None,
        thread_id: str | None = None,
    ) -> Working:
        """Replaces the working memory of a resource or thread, and returns it. An empty text
        deletes what is there.

        Args:
            text: Markdown, or with a schema the JSON of an object.
            version: the version that it replaces, as `working` returned it; 0 if there is none.
            resource_id: whose it is.
            thread_id: the thread that it belongs to, if it is kept per thread.

        Raises:
            ConflictError: another version was written meanwhile.
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: the text does not fit the schema or is too long, or an id is missing.
            SettingsError: this memory has no working memory, or is read-only.
        """
        expect("text", text, str)
        expect("version", version, int)
        self._check_writable()
        slot = await self._locate_working(resource_id, thread_id)
        checked = self._get_working_memory().read(text)
        return Working(*await self.store.write_slot(slot, checked, version, self._clock()))

    async def merge_working(
        self, change: object, *, resource_id: str | None = None, thread_id: str | None = None
    ) -> Working:
        """Merges a change into a working memory as the model's tool does, and returns what came of
        it. `change`: the whole text, or with a schema the fields that change. Whatever others write
        meanwhile stays.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: the change does not fit, makes the text too long, or an id is missing.
            SettingsError: this memory has no working memory, or is read-only.
        """
        self._check_writable()
        slot = await self._locate_working(resource_id, thread_id)
        for _ in range(_ATTEMPTS):
            stored = Working(*await self.store.read_slot(slot))
            merged = self._get_working_memory().merge(stored.text, change)
            if merged == stored.text:
                return stored
            try:
                written = await self.store.write_slot(slot, merged, stored.version, self._clock())
            except ConflictError:
                # The change is merged into what the other writer left.
                continue
            return Working(*written)
        raise ConflictError("others write the working memory all the time: try again later")

    async def make_working_memo(
        self, earlier: Sequence[Message], *, resource_id: str | None, thread_id: str
    ) -> Message | None:
        """Returns the memo that a run's prompt follows, or None if the model knows the working
        memory already, or there is none. `earlier`: the conversation that the model is given."""
        settings = self.working_memory
        if settings is None or not self.has_working(resource_id, thread_id):
            return None
        slot = settings.locate(resource_id, thread_id)
        working = Working(*await self.store.read_slot(slot))
        if settings.shows(earlier, working):
            return None
        return settings.make_memo(working, earlier=earlier, writable=not self.read_only)

    async def extract_working(
        self, message: Message, *, resource_id: str | None, thread_id: str
    ) -> Message:
        """Merges the working memory that an answer holds. Returns the message, whose metadata then
        names the version. What cannot be merged is left out with a warning."""
        settings = self.working_memory
        if settings is None or not settings.extract or message.role is not Role.MODEL:
            return message
        if not self.has_working(resource_id, thread_id):
            return message
        text = find_working_memory(message.text)
        if text is None:
            return message
        version = 0
        try:
            change = settings.read_change(text)
            ids = {"resource_id": resource_id, "thread_id": thread_id}
            version = (await self.merge_working(change, **ids)).version
        except Exception as error:  # noqa: BLE001 - an aid: the answer is stored anyway
            _LOG.warning("the working memory of an answer is left out: %s", error)
        return message.replace(metadata={**message.metadata, WORKING_MEMORY: version})

    def has_working(self, resource_id: str | None, thread_id: str | None) -> bool:
        """True if runs in this thread have a working memory."""
        if self.working_memory is None or thread_id is None:
            return False
        return self.working_memory.scope == "thread" or resource_id is not None

    def working_tools(self, resource_id: str | None, thread_id: str | None) -> tuple[Tool, ...]:
        """Returns those of `tools` that runs in this thread have."""
        return self.tools if self.has_working(resource_id, thread_id) else ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Returns the tool for the working memory that runs get beside the agent's; none if the
        model cannot change its working memory by one."""
        settings = self.working_memory
        if settings is None or settings.extract or self.read_only:
            return ()
        return (self._working_tool,)

    @cached_property
    def _working_tool(self) -> Tool:
        # One object for all runs, so that the beginnings of requests can be compared by identity.
        """Returns the tool by which a model changes its working memory."""
        settings = self._get_working_memory()

        async def update(memory: object, context: ToolContext) -> Json:
            ids = {"resource_id": context.resource_id, "thread_id": context.thread_id or None}
            working = await self.merge_working(memory, **ids)
            return {"success": True, "version": working.version}

        return Tool(
            WORKING_TOOL,
            _DESCRIPTION + (_WHOLE if settings.schema is None else _FIELDS),
            update,
            settings.arguments,
            # Each version is one more than the one before it, in the order of the calls.
            sequential=True,
        )

    async def _locate_working(self, resource_id: str | None, thread_id: str | None) -> Slot:
        """Returns where a working memory is stored, once it is known that its thread is the
        resource's."""
        settings = self._get_working_memory()
        slot = settings.locate(check_optional_id("resource_id", resource_id), thread_id)
        # Also where it is kept per resource: a call in another's thread is an error.
        thread = None if thread_id is None else await self.thread(thread_id)
        if thread is not None:
            check_owner(thread, resource_id)
        return slot

    def _get_working_memory(self) -> WorkingMemory:
        """Returns the settings of the working memory, or raises if the memory has none."""
        if self.working_memory is None:
            raise SettingsError(
                "this memory has no working memory: give Memory(working=WorkingMemory())"
            )
        return self.working_memory
