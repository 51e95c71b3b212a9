"""A plain agent loop with OpenAI's package: pip install openai httpx, then python openai_loop.py "what do people say about rust?"."""
import json, os, sys
import httpx
from openai import OpenAI

prompt = sys.argv[1]
agent = f"/agents/{os.environ.get('TOOLYARD_AGENT', '1')}"
toolyard = httpx.Client(base_url=os.environ.get("TOOLYARD_URL", "http://127.0.0.1:8665"), timeout=65,
                        headers={"Authorization": f"ApiKey {os.environ['TOOLYARD_KEY']}"})
toolset = toolyard.post(f"{agent}/toolset", json={"prompt": prompt, "limit": 20, "format": "openai"}).raise_for_status().json()
model, messages = OpenAI(), [{"role": "user", "content": prompt}]
while True:
    said = model.chat.completions.create(model=os.environ.get("MODEL", "gpt-5"), messages=messages, tools=toolset["definitions"])
    message = said.choices[0].message
    messages.append(message)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        function = {"name": call.function.name, "arguments": call.function.arguments}
        answer = toolyard.post(f"{agent}/call", json={"data": {"id": call.id, "type": "function", "function": function}}).json()
        content = answer["call"]["data"]["content"] if "call" in answer else json.dumps(answer)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
print(message.content)
