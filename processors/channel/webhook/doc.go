// Package webhook is the adapter for programs that speak HTTP: signed requests in both directions by the Standard Webhooks scheme
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
//
// A request has the headers webhook-id, webhook-timestamp (Unix seconds) and webhook-signature, which is "v1," and the Base64 of
// the HMAC-SHA256 of "{id}.{timestamp}.{body}". A timestamp more than 5 minutes away from this host's clock is refused. Several
// secrets can be used at a time, so that they can be replaced without an interruption.
//
// A message to the agent, to Handler:
//
//	{"message": "text", "sender_id": "u1", "sender_name": "Ann", "recipient": "room-1", "thread_id": "t1", "is_group": true,
//	 "mentioned": true, "guild": "g1", "roles": ["admin"], "message_id": "m1", "metadata": {}}
//
// Only message and one of recipient and sender_id are required. The event is the webhook-id: a repeated one is harmless. A
// decision about a request for approval has, instead of message, "decision": {"gate_id": "...", "approve": true}.
//
// A message of the agent, to the configured URL:
//
//	{"type": "message", "delivery_id": "d", "key": "d/0", "account": "main", "recipient": "room-1", "thread_id": "t1",
//	 "reply_to": "m1", "user_id": "u1", "is_group": true, "text": "text", "format": "markdown", "chunk": {"index": 0, "count": 1},
//	 "ask": {"gate_id": "...", "tool": "...", "expires_ms": 0}, "sender_name": "agent", "metadata": {}}
//
// The webhook-id and the header Idempotency-Key of a message are the same for every attempt to send it. A response of 2xx means
// that the receiver has taken it; its body may be {"id": "..."}.
package webhook
