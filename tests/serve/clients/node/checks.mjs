// node checks.mjs KIND BASE_URL KEY MODEL: what the AI SDK makes of a server, one JSON object a line.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [kind, root, key, name] = process.argv.slice(2);
const makers = {
  chat: (base, apiKey) => createOpenAI({ baseURL: `${base}/v1`, apiKey }).chat(name),
  responses: (base, apiKey) => createOpenAI({ baseURL: `${base}/v1`, apiKey }).responses(name),
  compatible: (base, apiKey) =>
    createOpenAICompatible({ name: "here", baseURL: `${base}/v1`, apiKey, supportsStructuredOutputs: true, includeUsage: true })(name),
  anthropic: (base, apiKey) => createAnthropic({ baseURL: `${base}/v1`, apiKey })(name),
  google: (base, apiKey) => createGoogleGenerativeAI({ baseURL: `${base}/v1beta`, apiKey })(name),
};
const model = makers[kind](root, key);
const base = { model, maxRetries: 0, maxOutputTokens: 64 };
const weather = tool({
  description: "The weather somewhere.",
  inputSchema: z.object({ location: z.string() }),
  execute: async ({ location }) => `Sunny in ${location}`,
});
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = [{ role: "user", content: [{ type: "text", text: "See." }, { type: "file", data: PIXEL, mediaType: "image/png" }] }];
const person = z.object({ name: z.string(), age: z.number() });
const calls = (steps) => steps.flatMap((step) => step.toolCalls).map((call) => [call.toolName, call.input.location]);

async function streamed(options) {
  const result = streamText({ ...base, ...options, onError: () => {} });
  const types = [];
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (types.at(-1) !== part.type) types.push(part.type);
  }
  return { types, text: await result.text, finish: await result.finishReason, usage: (await result.usage).totalTokens > 0, steps: await result.steps };
}

const checks = {
  async whole() {
    const result = await generateText({ ...base, prompt: "Say hello." });
    return { text: result.text, finish: result.finishReason, usage: result.usage.totalTokens > 0 };
  },
  async stream() {
    const { types, text, finish, usage } = await streamed({ prompt: "Say hello." });
    return { text, finish, usage, deltas: types.includes("text-delta") };
  },
  async tools() {
    const result = await generateText({ ...base, prompt: "Oakland?", tools: { get_weather: weather }, stopWhen: stepCountIs(3) });
    return { text: result.text, calls: calls(result.steps) };
  },
  async parallel_tools_streamed() {
    const { text, steps } = await streamed({ prompt: "Two places?", tools: { get_weather: weather }, stopWhen: stepCountIs(3) });
    return { text, calls: calls(steps) };
  },
  async conversation() {
    const messages = [{ role: "user", content: "Say hello." }];
    const first = await generateText({ ...base, messages });
    messages.push(...(first.responseMessages ?? first.response.messages), { role: "user", content: "What did you say?" });
    return { text: (await generateText({ ...base, messages })).text };
  },
  async object() {
    const result = await generateText({ ...base, prompt: "A person.", output: Output.object({ schema: person }) });
    return result.output;
  },
  async image() {
    return { text: (await generateText({ ...base, messages: image })).text };
  },
  async wrong_key() {
    try {
      await generateText({ ...base, model: makers[kind](root, "another-wrong-key"), prompt: "x" });
    } catch (error) {
      return { name: error.name, status: error.statusCode };
    }
    return {};
  },
  async too_many() {
    try {
      await generateText({ ...base, prompt: "too many" });
    } catch (error) {
      return { name: error.name, status: error.statusCode, retries: error.isRetryable, secret: JSON.stringify(error).includes("sk-upstream") };
    }
    return {};
  },
  async abort() {
    const controller = new AbortController();
    const result = streamText({ ...base, prompt: "Say hello.", abortSignal: controller.signal, onError: () => {} });
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") controller.abort();
      if (part.type === "abort") return { aborted: true };
    }
    return { aborted: controller.signal.aborted };
  },
};

globalThis.AI_SDK_LOG_WARNINGS = false;
for (const [check, work] of Object.entries(checks)) {
  let result;
  try {
    result = await work();
  } catch (error) {
    result = { failed: `${error?.name}: ${error?.message}`.slice(0, 500) };
  }
  console.log(JSON.stringify({ check, ...result }));
}
