#!/usr/bin/env python3
"""Writes vectors.json: callback tokens made without any code of this module, and what is to be said of each.

    python3 vectors.py > vectors.json
"""
import base64
import hashlib
import hmac
import json
import sys

NOW = 1_790_000_000
OLD, NEW = "the old secret of 32 bytes or more", "the new secret of 32 bytes or more"


def b64(raw, padded=False):
    text = base64.urlsafe_b64encode(raw).decode()
    return text if padded else text.rstrip("=")


def token(payload, secret=NEW, padded=False):
    raw = payload if isinstance(payload, bytes) else payload.encode()
    mac = hmac.new(secret.encode(), raw, hashlib.sha256).digest()
    return b64(raw, padded) + "." + b64(mac, padded)


def kid(secret):
    return b64(hmac.new(secret.encode(), b"turntable callback key ID", hashlib.sha256).digest()[:6])


def compact(claims):
    return json.dumps(claims, separators=(",", ":"), ensure_ascii=False)


FULL = {
    "session_id": "harbor-s19", "tool_use_id": "tu_91a", "tool_id": "ask_pilot", "name": "ask_pilot",
    "total_tools": 2, "agent": "harbor", "iat": NOW - 60, "exp": NOW + 60,
}
LEAST = {"session_id": "s", "tool_use_id": "t"}
# What this module adds, and FlightDeck ignores.
OURS = {"call_id": "f00/1/tool-use/0"}
MINTED = dict(FULL, **OURS)
vectors = []


def good(title, text, **claims):
    vectors.append({"name": title, "token": text, "claims": claims})


def bad(name, text, reason):
    vectors.append({"name": name, "token": text, "reason": reason})


# Lengths 0, 1 and 2 modulo 3, so that padding is none, two and one.
for n in range(3):
    claims = dict(FULL, session_id="s" * (n + 1))
    good(f"unpadded {n}", token(compact(claims)), **claims)
    good(f"padded {n}", token(compact(claims), padded=True), **claims)
good("other key order", token(compact(dict(reversed(FULL.items())))), **FULL)
good("blanks between tokens", token(json.dumps(FULL, indent=2)), **FULL)
good("escaped", token(json.dumps(dict(FULL, name="M\u00fcller \u2693\U0001f6a2"))),
     **dict(FULL, name="M\u00fcller \u2693\U0001f6a2"))
good("not escaped", token(compact(dict(FULL, name="M\u00fcller \u2693\U0001f6a2 a/b~c"))),
     **dict(FULL, name="M\u00fcller \u2693\U0001f6a2 a/b~c"))
good("signed with the other secret", token(compact(FULL), secret=OLD), **FULL)
good("least", token(compact(LEAST)), **LEAST)
good("names its call", token(compact(MINTED)), **MINTED)
for secret in NEW, OLD:
    good(f"names {secret}", token(compact(dict(MINTED, kid=kid(secret))), secret=secret), **MINTED)
good("names no secret", token(compact(dict(MINTED, kid=None)), secret=OLD), **MINTED)
good("names no call", token(compact(dict(FULL, call_id=None))), **FULL)
good("nulls", token(compact(dict(LEAST, tool_id=None, name=None, exp=None, iat=None, total_tools=None, agent=None))),
     **LEAST)
good("blank ids", token(compact({"session_id": "", "tool_use_id": " "})), session_id="", tool_use_id=" ")
good("unknown fields", token(compact(dict(LEAST, scope=["x", {"y": 1}]))), **LEAST)
good("repeated field, the last counts", token('{"session_id":"x","tool_use_id":"t","session_id":"s"}'), **LEAST)
good("text after the object", token(compact(LEAST) + " and so on"), **LEAST)
good("converted scalars", token('{"session_id":7,"tool_use_id":true,"total_tools":"5","iat":12.9,"exp":"0"}'),
     session_id="7", tool_use_id="true", total_tools=5, iat=12)
good("blank numbers", token('{"session_id":"s","tool_use_id":"t","total_tools":"","exp":" "}'), **LEAST)
good("the last second", token(compact(dict(LEAST, exp=NOW))), **dict(LEAST, exp=NOW))
good("exp 0 never expires", token(compact(dict(LEAST, exp=0))), **LEAST)
good("exp below 0 never expires", token(compact(dict(LEAST, exp=-1))), **LEAST)
good("issued in the future", token(compact(dict(LEAST, iat=NOW + 9))), **dict(LEAST, iat=NOW + 9))

bad("empty", "", "Missing token")
bad("blank", " ", "Missing token")
bad("no dot", token(compact(FULL)).replace(".", ""), "Malformed token")
bad("dot first", "." + token(compact(FULL)).split(".")[1], "Malformed token")
bad("dot last", token(compact(FULL)).split(".")[0] + ".", "Malformed token")
bad("only a dot", ".", "Malformed token")
payload, mac = token(compact(FULL)).split(".")
bad("second dot", f"{payload}.{mac}.x", "Token is not valid base64url")
bad("second dot last", f"{payload}.{mac}.", "Token is not valid base64url")
bad("plus", f"{payload[:-1]}+.{mac}", "Token is not valid base64url")
bad("slash", f"{payload}.{mac[:-1]}/", "Token is not valid base64url")
bad("blank within", f"{payload[:4]} {payload[4:]}.{mac}", "Token is not valid base64url")
bad("newline within", f"{payload[:4]}\n{payload[4:]}.{mac}", "Token is not valid base64url")
bad("carriage return last", f"{payload}.{mac}\r", "Token is not valid base64url")
bad("not ASCII", f"{payload}.{mac[:-1]}\u00e4", "Token is not valid base64url")
bad("too much padding", f"{payload}.{mac}==", "Token is not valid base64url")
bad("padding alone", f"{payload}.=", "Token is not valid base64url")
bad("four of padding", f"{payload}.====", "Token is not valid base64url")
bad("text after padding", f"{payload}.{mac}=x", "Token is not valid base64url")
bad("one character", f"{payload}.A", "Token is not valid base64url")
bad("other secret", token(compact(FULL), secret="stranger"), "Bad token signature")
bad("other payload", f"{b64(compact(dict(FULL, session_id='mine')).encode())}.{mac}", "Bad token signature")
bad("names the other secret", token(compact(dict(FULL, kid=kid(OLD)))), "Bad token signature")
bad("names an unknown secret", token(compact(dict(FULL, kid="stranger"))), "Bad token signature")
bad("too long", token(compact(dict(FULL, name="n" * (64 << 10)))), "Malformed token")
bad("short signature", f"{payload}.{mac[:-4]}", "Bad token signature")
bad("a blank more than was signed", f"{b64(compact(FULL).encode() + b' ')}.{mac}", "Bad token signature")
bad("signature before JSON", f"{b64(b'nonsense')}.{mac}", "Bad token signature")
for name, text in {
    "not JSON": "nonsense", "text": '"s"', "array": "[]", "number": "7", "null": "null", "open": '{"session_id":"s"',
    "object as text": '{"session_id":{},"tool_use_id":"t"}', "array as text": '{"session_id":"s","tool_use_id":[]}',
    "text as number": '{"session_id":"s","tool_use_id":"t","exp":"soon"}',
    "object as call": '{"session_id":"s","tool_use_id":"t","call_id":{}}',
    "boolean as number": '{"session_id":"s","tool_use_id":"t","iat":true}',
    "number too large": '{"session_id":"s","tool_use_id":"t","total_tools":2147483648}',
    "time too large": '{"session_id":"s","tool_use_id":"t","exp":9223372036854775808}',
}.items():
    bad("payload: " + name, token(text), "Token payload is not valid JSON")
bad("payload: not UTF-8", token(b'{"session_id":"\xff","tool_use_id":"t"}'), "Token payload is not valid JSON")
bad("expired", token(compact(dict(FULL, exp=NOW - 1))), "Token has expired")
bad("expired before it misses something", token('{"exp":1}'), "Token has expired")
bad("no session", token('{"tool_use_id":"t"}'), "Token missing session_id or tool_use_id")
bad("no call", token('{"session_id":"s","tool_use_id":null}'), "Token missing session_id or tool_use_id")
bad("nothing", token("{}"), "Token missing session_id or tool_use_id")

json.dump({"now": NOW, "secrets": [NEW, OLD], "minted": {"claims": MINTED, "token": token(compact(dict(MINTED, kid=kid(NEW))))},
           "vectors": vectors}, sys.stdout, indent=1, ensure_ascii=True)
print()
