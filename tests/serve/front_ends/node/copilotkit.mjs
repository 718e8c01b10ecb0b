// CopilotKit as an app has it: its runtime on a server, its core in the page. node copilotkit.mjs URL → a line of JSON for each check.
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime, createCopilotRuntimeHandler } from "@copilotkit/runtime/v2";
import { createCopilotNodeHandler } from "@copilotkit/runtime/v2/node";
import { z } from "zod";

globalThis.window ??= globalThis; // the core connects in a page alone
const { CopilotKitCore } = await import("@copilotkit/core");
const url = process.argv[2];
const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url: `${url}/ag-ui` }) } });
const handler = createCopilotNodeHandler(createCopilotRuntimeHandler({ runtime, basePath: "/api/copilotkit" }));
const server = createServer(handler);
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const runtimeUrl = `http://127.0.0.1:${server.address().port}/api/copilotkit`;

async function page(tools = []) {
  const core = new CopilotKitCore({ runtimeUrl, runtimeTransport: "rest", tools });
  for (let at = 0; at < 300 && !core.getAgent("default"); at++) await new Promise((next) => setTimeout(next, 10));
  const agent = core.getAgent("default");
  if (!agent) throw new Error("the runtime names no agent");
  agent.threadId = `copilot-${Math.random().toString(36).slice(2)}`;
  const seen = { events: [], errors: [], interrupts: [] };
  core.subscribe({ onError: ({ error }) => seen.errors.push(String(error?.message ?? error)) });
  agent.subscribe({
    onEvent: ({ event }) => seen.events.push(event.type),
    onRunFinishedEvent: ({ event }) => seen.interrupts.push(...(event.outcome?.interrupts ?? [])),
  });
  const say = async (content) => {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
    await core.runAgent({ agent });
  };
  return { core, agent, seen, say };
}

const shown = (agent) =>
  agent.messages.map((message) =>
    message.toolCalls?.length
      ? `${message.role}:${message.content ?? ""}:${message.toolCalls.map((call) => call.function.name)}`
      : `${message.role}:${message.content}`,
  );

const checks = {
  async text() {
    const at = await page();
    await at.say("hello");
    const first = shown(at.agent);
    await at.say("again");
    return { first, more: shown(at.agent).slice(first.length), ids: new Set(at.agent.messages.map((m) => m.id)).size === at.agent.messages.length, errors: at.seen.errors };
  },
  async front_end_tool() {
    const calls = [];
    const at = await page([
      { name: "get_place", description: "Where the user is.", parameters: z.object({ location: z.string() }), handler: async (args) => (calls.push(args), "Oakland") },
    ]);
    await at.say("where");
    return { calls, done: shown(at.agent), errors: at.seen.errors };
  },
  async state() {
    const at = await page();
    await at.say("note");
    return { state: at.agent.state, done: shown(at.agent), errors: at.seen.errors };
  },
  async approval() {
    const at = await page();
    await at.say("pay");
    const asked = at.seen.interrupts.map(({ reason, toolCallId }) => ({ reason, toolCallId }));
    const resume = at.seen.interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
    await at.core.runAgent({ agent: at.agent, resume });
    return { asked, done: shown(at.agent), errors: at.seen.errors };
  },
  async error() {
    const at = await page();
    await at.say("fail").catch(() => {});
    return { told: at.seen.events.includes("RUN_ERROR"), errors: at.seen.errors };
  },
  async stop() {
    const at = await page();
    const run = at.say("long").catch(() => {});
    for (let n = 0; n < 300 && !at.seen.events.includes("TEXT_MESSAGE_CONTENT"); n++) await new Promise((next) => setTimeout(next, 10));
    at.core.stopAgent({ agent: at.agent });
    await run;
    const words = shown(at.agent).at(-1).split("word").length;
    return { some: words > 1, all: words > 3000 };
  },
  async capabilities() {
    const info = await (await fetch(`${runtimeUrl}/info`)).json();
    return { agents: Object.keys(info.agents) };
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    console.log(JSON.stringify({ check: name, ...(await check()) }));
  } catch (error) {
    console.log(JSON.stringify({ check: name, failed: String(error?.stack ?? error) }));
  }
}
process.exit(0);
