// Folds the events of runs into messages, which have the form of stored ones. A conversation that is
// loaded after some event therefore is the same as one that saw it come.

export const FINISHED = { success: "done", pending: "waiting", cancelled: "stopped" };

function parse(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return null;
  }
}

export class Conversation {
  constructor({ messages = [], pending = [] } = {}) {
    this.messages = [...messages];
    this.pending = pending;
    this.calls = new Map(); // id of a call → {begun, progress, edited, milliseconds}
    this.state = pending.length ? "waiting" : "done";
    this.runId = null;
    this.error = null;
    this.began = null;
    this.milliseconds = null;
    this.runs = new Map(); // id of a run → milliseconds
    this.answers = new Map(); // id of an interrupt → the answer that waits for those to the others
    this.unsent = null; // sends what the server did not get
    this.epoch = 0; // grows with each change of what was said before the last prompt
    this.lost = 0; // how often the connection was tried again
    this.open = new Map(); // id of a message → the message that is being written
    this.inner = new Set(); // ids of messages of agents in tools
  }

  // A run begins: `user` is shown until the run tells the message itself.
  begin(runId, user = null) {
    Object.assign(this, { runId, state: "running", error: null, pending: [], unsent: null, lost: 0, milliseconds: null });
    this.answers.clear();
    for (const call of this.calls.values()) Object.assign(call, { begun: false, progress: null });
    this.began = performance.now();
    this.messages = this.messages.filter((message) => !message.isGuess);
    if (user) this.messages.push({ ...user, isGuess: true });
  }

  // What a thread does not keep of its runs.
  recall(runs) {
    const messages = new Map(this.messages.map((message) => [message.id, message]));
    for (const { run_id, spans, seconds } of runs) {
      this.runs.set(run_id, seconds * 1000);
      for (const span of spans) {
        const message = messages.get(span.message_id);
        if (message) Object.assign(message, { runId: run_id, losses: span.losses });
        if (span.edited) this.call(span.call_id).edited = span.edited;
      }
    }
    const { error, run_id } = runs.find(({ run_id }) => run_id === this.runId) ?? {};
    if (run_id) this.milliseconds = this.runs.get(run_id);
    if (error) Object.assign(this, { state: "failed", error: { message: error.message, retryAfter: error.retry_after } });
    this.epoch += 1;
  }

  // Puts earlier messages before those that are here.
  prepend(messages) {
    const known = new Set(this.messages.map(({ id }) => id));
    this.messages = [...messages.filter(({ id }) => !known.has(id)), ...this.messages];
    this.epoch += 1;
  }

  // Takes back an answer and all behind it.
  cut(messageId) {
    const place = this.messages.findIndex((message) => message.id === messageId);
    if (place >= 0) this.messages.length = place;
    this.epoch += 1;
  }

  fail(error) {
    Object.assign(this, { state: "failed", error });
    this.#end();
  }

  call(id) {
    if (!this.calls.has(id)) this.calls.set(id, {});
    return this.calls.get(id);
  }

  add(name, event) {
    if (name === "cost") {
      const message = this.messages.find(({ id }) => id === event.message_id);
      if (message) message.cost = event.cost;
    } else {
      this[`on_${event.type}`]?.(event);
    }
  }

  on_message_started({ message_id: id, role, origin, created_at, turn, losses = [], run_id }) {
    if (run_id && this.runId && run_id !== this.runId) return this.inner.add(id);
    if (role === "user") this.messages = this.messages.filter((message) => !message.isGuess);
    const message = { id, role, origin, created_at, turn, losses, content: [], runId: this.runId };
    this.open.set(id, message);
    this.messages.push(message);
  }

  on_part_started({ message_id: id, index, part }) {
    const content = this.open.get(id)?.content;
    if (!content) return;
    content[index] = part.type === "open_text" ? { type: "text", text: "" } : { ...part };
    content[index].isOpen = true;
    content[index].began = performance.now();
  }

  on_part_delta({ message_id: id, index, delta }) {
    const part = this.open.get(id)?.content[index];
    if (!part || typeof delta !== "string") return;
    if (part.type === "tool_call") part.raw = (part.raw ?? "") + delta;
    else if ("text" in part || part.type === "thinking") part.text = (part.text ?? "") + delta;
  }

  on_part_finished({ message_id: id, index, part }) {
    const content = this.open.get(id)?.content;
    if (!content) return;
    const milliseconds = performance.now() - (content[index]?.began ?? performance.now());
    content[index] = { ...part, milliseconds };
    if (part.type === "tool_call") content[index].arguments ??= parse(part.raw);
    if (part.type === "tool_result") this.#settle(part.id);
  }

  on_message_finished({ message_id: id, finish_reason, usage, origin, losses = [] }) {
    const message = this.open.get(id);
    if (!message) return;
    Object.assign(message, { finish_reason, usage, losses: [...message.losses, ...losses] });
    if (origin) message.origin = origin;
    for (const part of message.content) delete part?.isOpen;
    this.open.delete(id);
  }

  on_message_dropped({ message_id: id }) {
    this.open.delete(id);
    this.messages = this.messages.filter((message) => message.id !== id);
    this.retracted = (this.retracted ?? 0) + 1;
  }

  on_tool_started({ call_id, arguments: edited }) {
    Object.assign(this.call(call_id), { begun: true, edited, since: performance.now() });
  }

  on_custom({ name, value }) {
    if (name === "tool_progress" && value?.call_id) this.call(value.call_id).progress = value;
  }

  on_run_finished({ outcome = "success", pending = [], run_id }) {
    if (run_id && this.runId && run_id !== this.runId) return;
    Object.assign(this, { state: FINISHED[outcome], pending });
    this.#end();
  }

  on_run_error({ error, run_id }) {
    if (run_id && this.runId && run_id !== this.runId) return;
    const { message, type, own = {} } = error ?? {};
    this.fail({ message, type, retryAfter: own.retry_after ?? null });
  }

  #end() {
    this.milliseconds = this.began === null ? null : performance.now() - this.began;
    this.runs.set(this.runId, this.milliseconds);
  }

  #settle(callId) {
    const call = this.call(callId);
    if (call.since) call.milliseconds = performance.now() - call.since;
    call.progress = null;
  }
}
