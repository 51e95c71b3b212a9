// Clients of others read the streams of an agent: `ai`, `@ag-ui/client`, and `openai` at /v1. Prints `ok` or fails.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { DefaultChatTransport, readUIMessageStream } from "ai";
import OpenAI from "openai";

const [url, key] = process.argv.slice(2);
const references = { workflow: { slug: "maker" } };
const authorization = { Authorization: `Bearer ${key}` };

async function vercel(said) {
  const transport = new DefaultChatTransport({
    api: `${url}/workflows/invoke`,
    headers: { ...authorization, Accept: "text/event-stream", "x-ag-messages-format": "vercel" },
    prepareSendMessagesRequest: ({ messages }) => ({ body: { references, data: { inputs: { messages } } } }),
  });
  const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: said }] }];
  const stream = await transport.sendMessages({ trigger: "submit-message", chatId: "c", messages, abortSignal: undefined });
  let last;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last;
}

// The body of our own API, with the messages that the client keeps.
class ToolyardAgent extends HttpAgent {
  requestInit(input) {
    const body = { references, session_id: input.threadId, data: { inputs: { messages: input.messages } } };
    return { ...super.requestInit(input), body: JSON.stringify(body) };
  }
}

async function agUi(said) {
  const agent = new ToolyardAgent({ url: `${url}/workflows/invoke`, headers: authorization, initialMessages: [{ id: "1", role: "user", content: said }] });
  const events = [];
  const result = await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event) });
  return { events, result };
}

async function replayed() {
  const started = await fetch(`${url}/workflows/invoke`, {
    method: "POST",
    headers: { ...authorization, Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify({ references, data: { inputs: { message: "tool" } } }),
  });
  const run = started.headers.get("x-ag-run-id");
  const all = await started.text();
  const ids = [...all.matchAll(/^id: (\d+)$/gm)].map((found) => Number(found[1]));
  const middle = ids[Math.floor(ids.length / 2)];
  const again = await fetch(`${url}/workflows/runs/${run}/events`, { headers: { ...authorization, "Last-Event-ID": String(middle) } });
  const rest = await again.text();
  assert.ok(rest.length > 0 && all.endsWith(rest), "a stream goes on after the event that was read last");
  assert.equal(await (await fetch(`${url}/workflows/runs/${run}/events`, { headers: authorization })).text(), all);
}

async function openai() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepEqual(models, ["agent:maker"]);
  const ask = (content, more = {}) => client.chat.completions.create({ model: "agent:maker", messages: [{ role: "user", content }], ...more });

  const plain = await ask("plain");
  assert.equal(plain.choices[0].message.content, "Hello from the agent.");
  assert.ok(plain.usage.total_tokens > 0);

  let text = "";
  let usage;
  for await (const chunk of await ask("tool", { stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    assert.equal(chunk.choices[0]?.delta?.tool_calls, undefined, "the agent's own tools are out of sight");
    usage = chunk.usage ?? usage;
  }
  assert.match(text, /It is there\.$/);
  assert.ok(usage.prompt_tokens > 0);

  const tools = [{ type: "function", function: { name: "client_weather", description: "The weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }];
  const messages = [{ role: "user", content: "mine" }];
  const called = await client.chat.completions.create({ model: "agent:maker", messages, tools });
  assert.equal(called.choices[0].finish_reason, "tool_calls");
  const call = called.choices[0].message.tool_calls[0];
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["client_weather", { city: "Paris" }]);
  messages.push(called.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" });
  const told = await client.chat.completions.create({ model: "agent:maker", messages, tools });
  assert.equal(told.choices[0].message.content, "You told me: sunny");

  // The SDK's own loop calls the function and asks again, over streams.
  const runner = client.chat.completions.runTools({
    model: "agent:maker",
    stream: true,
    messages: [{ role: "user", content: "mine" }],
    tools: [{ type: "function", function: { name: "client_weather", parse: JSON.parse, function: async ({ city }) => `rain in ${city}`, description: "x", parameters: { type: "object", properties: { city: { type: "string" } } } } }],
  });
  assert.equal(await runner.finalContent(), "You told me: rain in Paris");

  await assert.rejects(client.chat.completions.create({ model: "agent:makr", messages: [{ role: "user", content: "x" }] }), (error) => {
    assert.equal(error.status, 404);
    assert.match(error.message, /Did you mean `maker`\?/);
    return error.code === "model_not_found";
  });
  await assert.rejects(new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 }).models.list(), { status: 401 });
  await assert.rejects(ask("fail"), { status: 424 });
}

async function responses() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const ask = (input, more = {}) => client.responses.create({ model: "agent:maker", input, ...more });
  const plain = await ask("plain");
  assert.deepEqual([plain.status, plain.output_text], ["completed", "Hello from the agent."]);
  assert.equal((await ask("and before?", { previous_response_id: plain.id })).output_text, "3 messages");

  const runner = client.responses.stream({ model: "agent:maker", input: "tool" });
  const kinds = [];
  for await (const event of runner) kinds.push(event.type);
  assert.equal(kinds.at(-1), "response.completed");
  const whole = await runner.finalResponse();
  assert.match(whole.output.findLast((item) => item.type === "message").content[0].text, /It is there\.$/);

  const tools = [{ type: "function", name: "client_weather", description: "The weather", strict: false, parameters: { type: "object", properties: { city: { type: "string" } } } }];
  const called = await client.responses.stream({ model: "agent:maker", input: "both", tools }).finalResponse();
  const call = called.output.find((item) => item.type === "function_call");
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["client_weather", { city: "Rome" }]);
  const told = await ask([{ type: "function_call_output", call_id: call.call_id, output: "sunny" }], { previous_response_id: called.id, tools });
  assert.match(told.output_text, /^I know 2: .*sunny$/s);
  await assert.rejects(ask("fail"), { status: 424 });
}

const message = await vercel("tool");
assert.equal(message.role, "assistant");
const tool = message.parts.find((part) => part.type === "dynamic-tool");
assert.equal(tool.state, "output-available");
assert.match(message.parts.findLast((part) => part.type === "text").text, /It is there\./);
await assert.rejects(vercel("fail"), /400/);

const { events, result } = await agUi("tool");
assert.equal(events.at(-1).type, "RUN_FINISHED");
assert.ok(events.some((event) => event.type === "TOOL_CALL_RESULT"));
assert.match(result.newMessages.at(-1).content, /It is there\./);

await replayed();
await openai();
await responses();
console.log("ok");
