"""The official OpenAI package talks to an agent as to a model: streamed and not, with and without tools of its own. Prints `ok` or fails."""

import json
import sys
import urllib.request

import openai

url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
MODEL = "agent:maker"
TOOLS = [{
    "type": "function",
    "function": {"name": "client_weather", "description": "The weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}]


def ask(content, **more):
    return client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}], **more)


def api(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as answer:
        return json.load(answer)


assert [model.id for model in client.models.list()] == [MODEL]

plain = ask("plain")
assert plain.choices[0].message.content == "Hello from the agent.", plain
assert plain.choices[0].finish_reason == "stop" and plain.usage.total_tokens > 0, plain

text, usage = "", None
for chunk in ask("tool", stream=True, stream_options={"include_usage": True}):
    text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    usage = chunk.usage or usage
assert text.endswith("It is there."), text
assert usage.prompt_tokens > 0, usage

messages = [{"role": "user", "content": "mine"}]
called = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
assert called.choices[0].finish_reason == "tool_calls", called
call = called.choices[0].message.tool_calls[0]
assert (call.function.name, json.loads(call.function.arguments)) == ("client_weather", {"city": "Paris"})
messages += [called.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
    final = stream.get_final_completion()
assert final.choices[0].message.content == "You told me: sunny", final

# A person has to decide: the answer says where, and the next message goes on with the same run.
asked = ask("approve")
words = asked.choices[0].message.content
assert "/approvals/" in words and asked.choices[0].finish_reason == "stop", words
approvals = api("/tools/approvals?status=pending")["approvals"]
assert len(approvals) == 1, approvals
api(f"/tools/approvals/{approvals[0]['id']}", {"decision": "approve"})
messages = [{"role": "user", "content": "approve"}, {"role": "assistant", "content": words}, {"role": "user", "content": "go on"}]
went_on = client.chat.completions.create(model=MODEL, messages=messages)
assert went_on.choices[0].message.content == "Made it.", went_on

for wrong, status in [({"model": "agent:makr"}, 404), ({"model": "gpt-9"}, 404), ({"model": MODEL, "messages": [{"role": "king", "content": "x"}]}, 400)]:
    try:
        client.chat.completions.create(**{"messages": [{"role": "user", "content": "x"}], **wrong})
        raise SystemExit(f"{wrong} was taken")
    except openai.APIStatusError as error:
        assert error.status_code == status and error.body["message"], (wrong, error)
try:
    ask("fail")
    raise SystemExit("a failed run was answered")
except openai.APIStatusError as error:
    assert error.status_code == 424, error
print("ok")
