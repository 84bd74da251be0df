"""A worker for a model: it answers the steps of {agent}-enriched-message-input on {agent}-think-request-response."""
import re

from worker import AGENT, now, run


def model(messages):
    """Stands for the request to a provider. It returns a text and the calls of tools: their names and arguments."""
    content = messages[-1]["content"]
    if messages[-1]["role"] == "tool":  # one object for each call: tool_use_id, name, result, status
        return "; ".join(f"{each['name']}: {each['result'].get('result') or each['result'].get('error')}" for each in content), []
    if not isinstance(content, str):
        raise ValueError("the model reads text only")
    order = re.search(r"\d+", content)
    if not order:
        return "Which order?", []
    return "Let me look.", [("order_status", {"number": int(order[0])})]


def answer(step, session, identity):
    messages = (step.get("history") or []) + [step["latest_input"]]
    try:
        text, calls = model(messages)
    except Exception as error:  # ends the turn at once; without this record it ends at its deadline
        return "think-dlq", "failure", step, {"error.reason": f"{type(error).__name__}: {error}"}
    uses = [{"tool_use_id": f"{identity}/{i}", "name": name, "input": arguments} for i, (name, arguments) in enumerate(calls)]
    blocks = [{"type": "text", "text": text}]
    blocks += [{"type": "tool_use", "id": use["tool_use_id"], "name": use["name"], "input": use["input"]} for use in uses]
    metadata = {"agent": AGENT}
    return "think-request-response", "think", {
        "session_id": session, "user_id": step.get("user_id"), "think_input_tokens": 0, "think_output_tokens": 0,
        "last_input_response": [{"role": "assistant", "content": blocks, "timestamp": now(), "metadata": metadata}],
        "tool_uses": uses, "end_turn": not uses, "timestamp": now(),
    }, {"turntable.events": "none"}


run("models", "enriched-message-input", answer)
