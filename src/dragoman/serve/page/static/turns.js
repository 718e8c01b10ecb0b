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

function stateOf(call, result, live, waits, isRunning) {
  if (result) return result.denied ? "denied" : result.is_error ? "failed" : "done";
  if (waits) return "waiting";
  if (call.isOpen) return "writing";
  return live?.begun && isRunning ? "running" : "called";
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
    state: stateOf(call, result, live, interrupt, conversation.state === "running"),
    interrupt,
    edited: live?.edited,
    isAnswered: conversation.answers.has(interrupt?.id),
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
    runId: null,
    milliseconds: 0,
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
  if (message.runId && message.runId !== turn.runId) {
    turn.runId = message.runId;
    turn.milliseconds += conversation.runs.get(message.runId) ?? 0;
  }
}

const says = ({ role, content = [] }) => role === "user" && content.some((part) => part?.type === "text" || FILES.has(part?.type));

// Returns the turns of messages. `before`: the model of the answer before them.
function build(messages, conversation, before) {
  const results = new Map();
  for (const { content = [] } of messages) {
    for (const part of content) if (part?.type === "tool_result") results.set(part.id, part);
  }
  const turns = [];
  for (const message of messages) {
    if (says(message)) {
      const text = message.content.filter((part) => part?.type === "text").map((part) => part.text);
      const files = message.content.filter((part) => FILES.has(part?.type)).map(fileOf);
      turns.push({ role: "user", id: message.id, text: text.join("\n"), files });
    } else if (message.role === "model") {
      if (turns.at(-1)?.role !== "model") turns.push({ ...answerOf(message), before });
      join(turns.at(-1), message, results, conversation);
      before = turns.at(-1).model ?? before;
    }
  }
  return turns;
}

// What waits for a person and has no call here, such as that of an agent in a tool.
function looseBlocks(turn, conversation) {
  const shown = new Set(turn.blocks.map(({ interrupt }) => interrupt?.id));
  return conversation.pending
    .filter(({ id }) => !shown.has(id))
    .map((interrupt) =>
      mark("tool", `wait-${interrupt.id}`, {
        id: interrupt.call?.id,
        name: interrupt.call?.name ?? "question",
        arguments: interrupt.call?.arguments,
        state: "waiting",
        interrupt,
        isAnswered: conversation.answers.has(interrupt.id),
      }),
    );
}

// Returns the turns up to the last prompt, which stay the same objects while a run goes on.
function pastOf(conversation, end) {
  const { epoch, messages } = conversation;
  let past = conversation.past;
  if (!past || past.epoch !== epoch || past.end > end) past = { epoch, end: 0, turns: [] };
  if (past.end < end) {
    const before = past.turns.findLast(({ model }) => model)?.model ?? null;
    past = { epoch, end, turns: [...past.turns, ...build(messages.slice(past.end, end), conversation, before)] };
  }
  conversation.past = past;
  return past.turns;
}

// Returns the turns before the last prompt and those from it on. The last one of the model has the
// state, the error and the time of the run.
export function turnsOf(conversation) {
  const { messages, state, error, lost, runId } = conversation;
  const end = Math.max(messages.findLastIndex(says), 0);
  const past = pastOf(conversation, end);
  const used = past.findLast(({ model }) => model)?.model ?? null;
  const live = build(messages.slice(end), conversation, used);
  if (live.at(-1)?.role !== "model" && (state !== "done" || error)) live.push(answerOf({ id: `run-${runId}` }));
  const last = live.at(-1);
  if (last?.role === "model") {
    last.blocks.push(...looseBlocks(last, conversation));
    last.milliseconds ||= conversation.milliseconds;
    last.runId ??= runId;
    if (state !== "done" || error) Object.assign(last, { state, error, lost });
  }
  return { past, live };
}
