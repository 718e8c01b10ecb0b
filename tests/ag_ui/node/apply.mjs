// The official client applies streams: one JSON list of events a line → one verdict a line. First argument: the version, "1.0" or "0.0.59".
import readline from "node:readline";
import { from, lastValueFrom, toArray } from "rxjs";

const old = process.argv[2] === "0.0.59";
const client = await import(old ? "agui-client-059" : "@ag-ui/client");
let warnings = [];
console.warn = (...words) => warnings.push(words.map(String).join(" "));
console.error = () => {};

class Played extends client.AbstractAgent {
  constructor(given, events) {
    super(given);
    this.events = events;
  }
  run() {
    return from(this.events);
  }
}

const words = (error) => (error?.issues ? JSON.stringify(error.issues) : String(error?.message ?? error));
const enforced = client.enforceEvents ? [client.enforceEvents()] : [];

for await (const line of readline.createInterface({ input: process.stdin })) {
  if (!line) continue;
  const { events, messages = [] } = JSON.parse(line);
  warnings = [];
  const verdict = { error: null };
  try {
    const steps = [...enforced, client.transformChunks(), client.verifyEvents()];
    await lastValueFrom(from(structuredClone(events)).pipe(...(old ? [client.transformChunks(false), client.verifyEvents(false)] : steps), toArray()));
  } catch (error) {
    verdict.error = words(error);
  }
  const agent = new Played({ threadId: "t", initialMessages: messages, initialState: {} }, structuredClone(events));
  try {
    verdict.result = (await agent.runAgent({ runId: "r" })).result;
  } catch (error) {
    verdict.error ??= words(error);
  }
  verdict.messages = agent.messages;
  verdict.state = agent.state;
  verdict.pending = agent.pendingInterrupts ?? null;
  verdict.compacted = client.compactEvents(structuredClone(events));
  verdict.warnings = [...new Set(warnings)];
  console.log(JSON.stringify(verdict));
}
