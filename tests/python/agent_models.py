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

# A turn that calls the agent's tool and the client's at once: the agent's result is there when the client's comes.
messages = [{"role": "user", "content": "both"}]
called = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
assert len(called.tool_calls) == 1 and len(called.tool_calls[0].id) <= 40, called
messages += [called, {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "sunny"}]
knows = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message.content
assert knows.startswith("I know 2: ") and knows.endswith("sunny") and "both" in knows, knows

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

FUNCTION = {"type": "function", "strict": False, **TOOLS[0]["function"]}


def respond(input, **more):
    return client.responses.create(model=MODEL, input=input, **more)


plain = respond("plain")
assert (plain.status, plain.output_text) == ("completed", "Hello from the agent."), plain
assert plain.usage.total_tokens > 0 and plain.usage.input_tokens_details is not None, plain

# What comes before is known by the id of the response, or is sent again.
before = respond("and before?", previous_response_id=plain.id)
assert before.output_text == "3 messages" and before.previous_response_id == plain.id, before
items = [{"role": "user", "content": "plain"}, *plain.output, {"role": "user", "content": "and before?"}]
assert respond(items).output_text == "3 messages"

kinds, text = [], ""
for event in respond("tool", stream=True):
    kinds.append(event.type)
    text += event.delta if event.type == "response.output_text.delta" else ""
assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
assert text == "Let me see.\n\nIt is there.", text
assert "response.reasoning_summary_text.delta" in kinds, kinds

with client.responses.stream(model=MODEL, input="mine", tools=[FUNCTION]) as stream:
    called = stream.get_final_response()
call = next(item for item in called.output if item.type == "function_call")
assert (call.name, json.loads(call.arguments)) == ("client_weather", {"city": "Paris"}), call
result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
told = respond([result], previous_response_id=called.id, tools=[FUNCTION])
assert told.output_text == "You told me: sunny", told
told = respond([{"role": "user", "content": "mine"}, *called.output, result], tools=[FUNCTION])
assert told.output_text == "You told me: sunny", told

called = respond("both", tools=[FUNCTION])
calls = [item for item in called.output if item.type == "function_call"]
assert len(calls) == 1 and called.output_text == "One moment.", called
knows = respond([{"type": "function_call_output", "call_id": calls[0].call_id, "output": "sunny"}], previous_response_id=called.id, tools=[FUNCTION])
assert knows.output_text.startswith("I know 2: "), knows

asked = respond("approve again")
assert "/approvals/" in asked.output_text, asked
approvals = api("/tools/approvals?status=pending")["approvals"]
api(f"/tools/approvals/{approvals[0]['id']}", {"decision": "deny"})
went_on = respond("go on", previous_response_id=asked.id)
assert went_on.output_text == "As you wish.", went_on

for wrong, status in [
    ({"model": "agent:makr"}, 404),
    ({"input": [{"type": "web_search_call"}]}, 400),
    ({"previous_response_id": "resp_nothing"}, 400),
    ({"previous_response_id": "resp_00000000000000000000000000000000"}, 400),
    ({"tools": [{"type": "web_search"}]}, 400),
    ({"background": True}, 400),
    ({"input": "fail"}, 424),
]:
    try:
        client.responses.create(**{"model": MODEL, "input": "x", **wrong})
        raise SystemExit(f"{wrong} was taken")
    except openai.APIStatusError as error:
        assert error.status_code == status and error.body["message"], (wrong, error)
assert [event.type for event in respond("fail", stream=True)][-1] == "response.failed"

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
