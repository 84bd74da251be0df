// Package turnhttp is the HTTP entrance of an agent: it accepts messages and the results of asynchronous tools, and writes
// them to the agent's topics. It implements FlightDeck's chat API; with Config.FlightDeck also its peculiarities.
//
//	POST /api/chat            --> Chat ----------+--> {agent}-reply-to (if the message names a reply)
//	                                             +--> {agent}-message-input
//	POST /api/tools/response  --> ToolResponse ----> {agent}-tool-use-result
//
// A Handler does not run turns and communicates with them through topics only, so it can run in the process of package
// turn or in another. It answers with success after the brokers have acknowledged the records. It does not wait for the
// turn: the answer to a message is written to {agent}-message-output.
//
// # Routes
//
//	route                     request                                              success
//	POST /api/chat            JSON object: session_id, content; optional user_id,  200, session_id and request_id
//	                          request_id, reply
//	OPTIONS /api/chat         CORS preflight                                       204
//	POST /api/tools/response  a callback token (package token) as bearer token;    202, tool_use_id
//	                          the result as JSON
//
// Errors are JSON objects with the member "error":
//
//	400  the body is not JSON, a field is missing or not usable, or the Idempotency-Key is not usable
//	401  the caller is not authenticated, or the callback token is not valid
//	403  the caller may not write, or not to the session, or the request comes from a page of an origin that is not
//	     trusted, or names another host
//	404  another path
//	405  another method
//	408  the body arrives too slowly
//	413  the body is larger than Config.BodyLimit, or its record is too large for the turn (Config.RecordLimit) or the brokers
//	414  path and query are longer than 8 KiB
//	415  the content type of a message is not JSON
//	422  the Idempotency-Key was used for another request
//	429  the caller or the session exceeds Config.Limits; Retry-After says when to repeat the request
//	431  a header is longer than 8 KiB (Authorization and Cookie: 16 KiB), or all together are longer than 48 KiB
//	500  the brokers did not acknowledge the records within 30 s; the records may be written later
//	503  too many requests, or too many bytes of bodies, at a time; Retry-After says when to repeat the request
//
// # Repeated requests
//
// A request that is repeated with its Idempotency-Key gets the same answer from the same process, and nothing is written
// again. Another process writes the same record again, with the same turntable.id and request_id, and the turn drops it
// while it remembers the request (turn.Config.RememberFor). Only successful answers are remembered, so a failed request can be
// repeated with its key.
//
// # Security
//
// A request passes the limits of its headers, of concurrent requests and of its caller, in this order, before its body is
// read, and the limits of its session before a record is written. Callers are authenticated before their body is read. The
// audit (Config.Audit) records who wrote, answered or was refused.
//
// Session IDs of messages must not contain control characters, or characters that change the direction of text.
//
// Chat is open by default: without Config.Authenticate anyone may write to every session, and New logs a warning. Tool
// callbacks are closed by default: without Config.CallbackSecrets every one is answered with 401, and New logs a warning. A
// secret has at least 32 bytes; a callback token must expire and must be of this agent. A reply may name only the services
// that Config.CallbackServices permits (default: none).
//
// # Shutdown
//
// A Handler starts no goroutine and is not closed. Stop the http.Server with Shutdown, which waits for the requests in
// flight; a request waits at most 30 s for the brokers. Then close the publisher. Package processors/httpserver has a server
// with limits for connections and headers, which the doors cannot limit.
package turnhttp
