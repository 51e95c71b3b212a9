"""A service as an author of Agenta writes it, with its authentication on: agenta_service.py PORT.

AGENTA_HOST and AGENTA_API_KEY lead to a running server, which the service asks whether its caller may run it.
"""

import os
import sys

import agenta as ag
import uvicorn

ag.init(host=os.environ["AGENTA_HOST"], api_key=os.environ["AGENTA_API_KEY"])
app = ag.create_app()


@ag.route("/", app=app)
@ag.workflow(schemas={"inputs": {"type": "object", "properties": {"name": {"type": "string"}}}})
async def greet(name: str):
    return {"greeting": f"Hello, {name}"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
