// Mastra's MessageList, driven by a list of steps; all that it puts out.

const { MessageList } = await import("@mastra/core/agent/message-list");

const OUTPUTS = {
  db: (list) => list.get.all.db(),
  v1: (list) => list.get.all.v1(),
  "aiV4.ui": (list) => list.get.all.aiV4.ui(),
  "aiV4.core": (list) => list.get.all.aiV4.core(),
  "aiV4.prompt": (list) => list.get.all.aiV4.prompt(),
  "aiV5.ui": (list) => list.get.all.aiV5.ui(),
  "aiV5.model": (list) => list.get.all.aiV5.model(),
  "aiV5.prompt": (list) => list.get.all.aiV5.prompt(),
  "aiV6.ui": (list) => list.get.all.aiV6.ui(),
  input: (list) => list.get.input.db(),
  response: (list) => list.get.response.db(),
  remembered: (list) => list.get.remembered.db(),
  system: (list) => list.getAllSystemMessages(),
};
const DATES = new Set(["createdAt", "sealedAt"]);

// JSON holds no dates: those of stored rows are made again.
export function dated(value) {
  if (Array.isArray(value)) return value.map(dated);
  if (!value || typeof value !== "object") return value;
  return "createdAt" in value && "role" in value && typeof value.createdAt === "string"
    ? { ...value, createdAt: new Date(value.createdAt) }
    : value;
}

export function run({ steps, options = {}, outputs = Object.keys(OUTPUTS) }) {
  let number = 0;
  const quiet = { debug() {}, info() {}, warn() {}, error() {}, trackException() {} };
  const list = new MessageList({ generateMessageId: () => `made-${++number}`, logger: quiet, ...options });
  const returned = [];
  for (const step of steps) {
    try {
      const { do: what, args = [] } = step;
      if (what === "add") list.add(dated(step.messages), step.source, step.merge === false ? { merge: false } : undefined);
      else if (what === "drain") returned.push(list.drainUnsavedMessages());
      else if (what === "clear") returned.push(list.clear[step.source].db());
      else {
        const value = list[what](...args);
        returned.push(value === list ? null : value);
      }
    } catch (error) {
      returned.push({ error: String(error.message), id: error.id });
    }
  }
  const found = {};
  for (const name of outputs) {
    try { found[name] = OUTPUTS[name](list); } catch (error) { found[name] = { error: String(error.message) }; }
  }
  return { outputs: found, returned };
}

// Milliseconds of CPU so far.
function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function bench({ messages, source, repeat = 5 }) {
  const times = [], dumps = [];
  for (let round = 0; round < repeat; round++) {
    const given = dated(structuredClone(messages));
    const list = new MessageList({ threadId: "t", resourceId: "r" });
    const start = cpu();
    list.add(given, source);
    const middle = cpu();
    list.get.all.db();
    list.get.all.aiV5.ui();
    times.push(middle - start);
    dumps.push(cpu() - middle);
  }
  return { add: Math.min(...times), ui: Math.min(...dumps) };
}
