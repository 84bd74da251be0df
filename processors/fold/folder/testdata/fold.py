"""An independent fold, from the rules alone, that reproduces turns.jsonl: python3 fold.py [turns.jsonl]

Standard library only. It is the tolerant fold, written for clarity, not speed; ports to other languages can be read off
it. Numbers are kept as they are written (Number), so nothing goes through a float but the comparison of ids.
"""
import json
import pathlib
import sys

MAX_DEPTH = 984
SEVEN = ("message", "message_start", "message_delta", "message_end", "tool_call", "tool_result", "done")


class Refused(Exception):
    """The turn cannot be folded."""


class Malformed(Exception):
    """The event is left out."""


class Number(str):
    """A number by its literal."""

    def value(self):
        return float(self) if any(c in self for c in ".eE") else int(self)


def refuse_constant(name):
    raise Refused(name)


def parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse_constant)


def dump(value):
    """Compact JSON with numbers as they were written."""
    if isinstance(value, Number):
        return str.__str__(value)
    if isinstance(value, dict):
        return "{" + ",".join(dump(k) + ":" + dump(v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def text(s):
    """Joins the halves of surrogate pairs; one that stays alone is U+FFFD."""
    return s.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(value):
    if isinstance(value, Number):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [clean(v) for v in value]
    if isinstance(value, dict):
        return {text(k): clean(v) for k, v in value.items()}
    return value


def truthy(value):
    return bool(value.value()) if isinstance(value, Number) else bool(value)


def key(value):
    if isinstance(value, (list, dict)):
        raise Malformed("id")
    return value.value() if isinstance(value, Number) else ("text", value) if isinstance(value, str) else value


def depth(value):
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def fields(event):
    """Returns the object that the event's fields are in."""
    kind = event.get("type")
    flat = "data" not in event
    if kind == "interaction_request" and len(event) == 1:
        return {}  # its data is missing
    flat = flat or kind == "tool_result" and any(k in event for k in ("output", "isError", "denied", "render"))
    flat = flat or kind == "data" and "name" in event
    # Their flat forms have a data of their own, of any kind. That of a wrapped event is an object.
    flat = flat or kind in ("tool_result", "data") and not isinstance(event["data"], dict)
    data = event if flat else event["data"]
    if depth(data) > MAX_DEPTH:
        raise Refused("depth")
    return data if truthy(data) else {}


def derived_tool(data):
    payload = data.get("payload")
    if not isinstance(payload, dict):
        return None
    call = payload.get("toolCall")
    call = call if isinstance(call, dict) else {}
    for name in (payload.get("toolName"), call.get("name"), call.get("title"), call.get("kind")):
        if isinstance(name, str) and not isinstance(name, Number) and name:
            return name
    return None


class Fold:
    def __init__(self):
        self.messages, self.open, self.calls = [], {}, {}
        self.request, self.stop, self.malformed = None, None, 0

    def add(self, event):
        try:
            if not isinstance(event, dict):
                raise Malformed("no object")
            kind, data = event.get("type"), fields(event)
            if not isinstance(kind, str) or isinstance(kind, Number):
                return
            if not isinstance(data, dict):
                if kind in SEVEN or kind == "interaction_request":
                    raise Malformed("data")
                return
            rule = getattr(self, "on_" + kind, None)
            if rule:
                rule(data)
        except Malformed:
            self.malformed += 1

    def on_message(self, data):
        self.messages.append({"role": "assistant", "content": data.get("text", "")})

    def on_message_start(self, data):
        self.open[key(data.get("id"))] = len(self.messages)
        self.messages.append({"role": "assistant", "content": ""})

    def on_message_delta(self, data):
        block, delta = key(data.get("id")), data.get("delta", "")
        if block in self.open:
            if not isinstance(delta, str) or isinstance(delta, Number):
                raise Malformed("delta")
            self.messages[self.open[block]]["content"] += delta

    def on_message_end(self, data):
        if self.open:
            self.open.pop(key(data.get("id")), None)

    def on_tool_call(self, data):
        call = data.get("id")
        given = data.get("rawInput")
        given = data.get("input") if given is None else given
        if call is not None and key(call) in self.calls:
            self.messages[self.calls[key(call)]]["input"] = given
            return
        if call is not None:
            self.calls[key(call)] = len(self.messages)
        self.messages.append({"role": "tool", "content": "", "tool_call_id": call, "tool_name": data.get("name"),
                              "input": given})

    def on_tool_result(self, data):
        self.messages.append({"role": "tool", "content": data.get("output", ""), "tool_call_id": data.get("id"),
                              "is_error": data.get("isError")})

    def on_interaction_request(self, data):
        self.request = data

    def on_done(self, data):
        self.stop = data.get("stopReason")

    def batch(self, given):
        if given is not None and (not isinstance(given, str) or isinstance(given, Number)):
            raise Refused("stop reason")
        stop, pending = self.stop if given is None else given, None
        if isinstance(stop, str) and stop == "paused" and self.request is not None:
            pending = dict(self.request)
            pending.setdefault("tool", derived_tool(self.request))
        return clean({"messages": self.messages, "stop_reason": stop, "pending_interaction": pending})


def trim(messages):
    start = len(messages)
    while start and messages[start - 1].get("role") == "tool":
        start -= 1
    return messages[max(start - 1, 0):]


def fold(events, given):
    if not isinstance(events, list):
        raise Refused("events")
    folder = Fold()
    for event in events:
        folder.add(event)
    batch = folder.batch(given)
    said = "".join(m["content"] for m in batch["messages"]
                   if m["role"] == "assistant" and isinstance(m["content"], str) and not isinstance(m["content"], Number))
    return {"batch": batch, "trimmed": trim(batch["messages"]), "assistant_text": said, "malformed": folder.malformed}


def main():
    sys.setrecursionlimit(20000)
    path = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "turns.jsonl"
    seen, wrong = set(), 0
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            turn = parse(line)
            if turn["id"] in seen:
                raise SystemExit("two turns are called " + turn["id"])
            seen.add(turn["id"])
            try:
                got = fold(turn["events"], turn.get("stop_reason"))
                want = {name: turn.get(name) for name in ("batch", "trimmed", "assistant_text")}
                want["malformed"] = int(turn.get("malformed", "0"))
            except Refused:
                got, want = True, turn.get("error")
            if dump(got) != dump(want):
                wrong += 1
                print(turn["id"] + ":\n  want", dump(want)[:500], "\n  got ", dump(got)[:500])
    print(len(seen), "turns,", wrong, "differ")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
