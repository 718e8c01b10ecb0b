// node signed.mjs BASE_URL: whether what a provider signed comes back through a client of Chat Completions that keeps a call's own fields.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const model = createOpenAICompatible({ name: "here", baseURL: `${process.argv[2]}/v1`, apiKey: "none" })("m");
const weather = tool({
  description: "The weather somewhere.",
  inputSchema: z.object({ location: z.string() }),
  execute: async ({ location }) => `Sunny in ${location}`,
});
const options = { model, maxRetries: 0, prompt: "Think.", tools: { get_weather: weather }, stopWhen: stepCountIs(4) };

globalThis.AI_SDK_LOG_WARNINGS = false;
const whole = await generateText(options);
console.log(JSON.stringify({ text: whole.text, steps: whole.steps.length }));
const streamed = streamText(options);
console.log(JSON.stringify({ text: await streamed.text, steps: (await streamed.steps).length }));
