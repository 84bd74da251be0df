"""A worker for tools: it answers the calls of {agent}-tool-use on {agent}-tool-use-result."""
import json
import os
import pathlib
import time

from worker import now, run

ORDERS = os.environ.get("ORDERS", pathlib.Path(__file__).parent.parent / "orders.json")


def order_status(arguments, key):
    """Finds the status of an order. key is the same if a call is repeated: the idempotency key of a tool that changes something."""
    status = json.loads(pathlib.Path(ORDERS).read_text()).get(str(arguments["number"]))
    if status is None:
        raise LookupError(f"there is no order {arguments['number']}")
    return status


TOOLS = {"order_status": order_status}


def answer(call, session, identity):
    if not call["tool_use_id"] or not call["name"]:
        raise ValueError
    began, status = time.monotonic(), "success"
    try:
        if call["name"] not in TOOLS:
            raise LookupError(f"there is no tool {call['name']}")
        result = {"result": TOOLS[call["name"]](call.get("input") or {}, identity)}
        if len(json.dumps(result, allow_nan=False)) > 500_000:
            raise ValueError("the result is too large for a record")
    except Exception as error:  # the model reads what went wrong
        status, result = "error", {"error": f"{type(error).__name__}: {error}", "reason": "tool_failed"}
    return "tool-use-result", "result", {
        "session_id": session, "tool_use_id": call["tool_use_id"], "tool_id": call.get("tool_id"), "name": call["name"],
        "result": result, "latency_ms": int((time.monotonic() - began) * 1000), "status": status,
        "total_tools": call.get("total_tools"), "timestamp": now(),
    }, {}


run("tools", "tool-use", answer)
