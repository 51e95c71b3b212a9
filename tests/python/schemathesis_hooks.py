"""What schemathesis looks at besides its own checks."""

import atexit
import collections
import json
import sys

import schemathesis

answers = collections.Counter()


@schemathesis.check
def refused_for_its_shape(ctx, response, case):
    """A request that fits the document may be refused for what it means, never for its shape.

    The server says the one in a sentence or an object, the other in a list of `{type, loc, msg}`.
    """
    answers[f"{response.status_code // 100}xx"] += 1
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 422:
        return
    try:
        detail = json.loads(response.content)["detail"]
    except (ValueError, KeyError, TypeError):
        return
    assert not isinstance(detail, list), f"fits the document, but: {detail}"


@atexit.register
def told():
    print("answers:", json.dumps(answers), file=sys.stdout, flush=True)
