// What a person sees of a conversation: turns, made of its messages. A user's turn is what the user
// said; the model's holds all messages up to the next one of the user, with tools and their results.

const FILES = new Set(["data", "link", "file"]);

const mark = (kind, key, more) => ({ kind, key, ...more });

function add(sum, usage) {
  for (const [name, number] of Object.entries(usage ?? {})) {
    if (typeof number === "number") sum[name] = (sum[name] ?? 0) + number;
  }
}

const fileOf = (part) => ({
  name: part.name ?? part.media_type ?? "file",
  mediaType: part.media_type ?? part.mime_type ?? "",
  data: part.data,
  url: part.url,
});

function stateOf(call, result, live, waits) {
  if (result) return result.denied ? "denied" : result.is_error ? "failed" : "done";
  if (waits) return "waiting";
  if (call.isOpen) return "writing";
  return live?.begun ? "running" : "called";
}

function toolBlock(call, key, results, conversation) {
  const result = results.get(call.id);
  const live = conversation.calls.get(call.id);
  const interrupt = conversation.pending.find(({ call: waiting }) => waiting?.id === call.id);
  return mark("tool", key, {
    id: call.id,
    name: call.name,
    arguments: call.arguments,
    raw: call.raw,
    result: result?.result,
    state: stateOf(call, result, live, interrupt),
    interrupt,
    edited: live?.edited,
    progress: live?.progress,
    milliseconds: live?.milliseconds,
  });
}

function blocksOf(message, results, conversation) {
  return message.content.flatMap((part, n) => {
    const key = `${message.id}-${n}`;
    if (!part) return [];
    if (part.type === "text") return part.text ? [mark("text", key, part)] : [];
    if (part.type === "thinking") return part.text ? [mark("thinking", key, part)] : [];
    if (part.type === "tool_call") return [toolBlock(part, key, results, conversation)];
    return FILES.has(part.type) ? [mark("file", key, fileOf(part))] : [];
  });
}

function answerOf(message) {
  return {
    role: "model",
    id: message.id,
    blocks: [],
    model: null,
    usage: {},
    cost: null,
    losses: [],
    state: "done",
  };
}

function note(turn, losses = []) {
  for (const loss of losses) {
    if (!turn.losses.some(({ message }) => message === loss.message)) turn.losses.push(loss);
  }
}

function join(turn, message, results, conversation) {
  turn.blocks.push(...blocksOf(message, results, conversation));
  const { origin, usage, cost, losses, finish_reason } = message;
  if (origin) turn.model = `${origin.provider}:${origin.model}`;
  if (cost !== undefined && cost !== null) turn.cost = (turn.cost ?? 0) + Number(cost);
  if (finish_reason === "cancelled") turn.state = "stopped";
  add(turn.usage, usage);
  note(turn, losses);
}

// Returns the turns; the last one of the model has the state, the error and the time of the run.
export function turnsOf(conversation) {
  const results = new Map();
  for (const { content = [] } of conversation.messages) {
    for (const part of content) if (part?.type === "tool_result") results.set(part.id, part);
  }
  const turns = [];
  for (const message of conversation.messages) {
    if (message.role === "user") {
      const text = message.content.filter((part) => part?.type === "text").map((part) => part.text);
      const files = message.content.filter((part) => FILES.has(part?.type)).map(fileOf);
      if (text.length || files.length) turns.push({ role: "user", id: message.id, text: text.join("\n"), files });
    } else if (message.role === "model") {
      if (turns.at(-1)?.role !== "model") turns.push(answerOf(message));
      join(turns.at(-1), message, results, conversation);
    }
  }
  const { state, error, milliseconds, lost, runId } = conversation;
  if (turns.at(-1)?.role === "model") note(turns.at(-1), conversation.losses);
  if (state === "done" && !error) {
    if (turns.at(-1)?.role === "model") Object.assign(turns.at(-1), { milliseconds, runId });
    return turns;
  }
  if (turns.at(-1)?.role !== "model") turns.push(answerOf({ id: `run-${runId}` }));
  Object.assign(turns.at(-1), { state, error, milliseconds, lost, runId });
  return turns;
}
