"""A plain agent loop with Anthropic's package: pip install anthropic httpx, then python anthropic_loop.py "what do people say about rust?"."""
import json, os, sys
import httpx
from anthropic import Anthropic

prompt = sys.argv[1]
agent = f"/agents/{os.environ.get('TOOLYARD_AGENT', '1')}"
toolyard = httpx.Client(base_url=os.environ.get("TOOLYARD_URL", "http://127.0.0.1:8665"), timeout=65,
                        headers={"Authorization": f"ApiKey {os.environ['TOOLYARD_KEY']}"})
toolset = toolyard.post(f"{agent}/toolset", json={"prompt": prompt, "limit": 20, "format": "anthropic"}).raise_for_status().json()
model, messages = Anthropic(), [{"role": "user", "content": prompt}]
while True:
    said = model.messages.create(model=os.environ.get("MODEL", "claude-sonnet-4-5"), max_tokens=4096, messages=messages, tools=toolset["definitions"])
    messages.append({"role": "assistant", "content": said.content})
    results = []
    for call in (block for block in said.content if block.type == "tool_use"):
        function = {"name": call.name, "arguments": call.input}
        answer = toolyard.post(f"{agent}/call", json={"data": {"id": call.id, "type": "function", "function": function}}).json()
        content = answer["call"]["data"]["content"] if "call" in answer else json.dumps(answer)
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": content})
    if not results:
        break
    messages.append({"role": "user", "content": results})
print("".join(block.text for block in said.content if block.type == "text"))
