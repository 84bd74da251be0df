// Package gatehttp is the HTTP entrance to the gates of an agent, what waits for a person's decision: it lists them, waits for
// outcomes, accepts decisions, and lists and revokes standing approvals. Its Index also shows gates to the sockets of
// package processors/delivery/websocket (websocket.Config.Gates).
//
//	{agent}-gate-streams-table --> Index --+--> GET /api/gates, WebSocket
//	                                       |
//	POST /api/gates/{id}/decision ------> Handler --> {agent}-gate-decisions --> gate group (package gate)
//
// The door does not run the gate group, and communicates with it through topics only, so it can run in any process and in
// any number of processes. An Index follows the table of the gate group: a gate is visible after its row is committed, so a
// person never answers a gate that a crash takes back, and every process sees the same gates, also after a restart. It follows
// {agent}-gate-requests too: events can show a gate before its row is written, and a request about such a gate waits for the row, 5 s
// at most. A request about an unknown gate waits half a second.
//
// # Routes
//
//	GET    /api/gates?session_id=S                 the gates of a session, open ones first; with status=pending only
//	                                               those. With wait=20s it waits until there is one
//	GET    /api/gates?status=pending               the open gates of all sessions that the caller may use, oldest first:
//	                                               limit (100, at most 500), after (next of the page before)
//	GET    /api/gates/{id}                         one gate; with wait=55s it waits for the outcome
//	POST   /api/gates/{id}/decision                a decision; with wait=20s it waits so long for the outcome
//	GET    /api/gates/grants                       the standing approvals of the agent; with session_id=S of a session
//	DELETE /api/gates/grants/{id}                  revokes one; with session_id=S one of a session
//
// A gate is a gate.View as JSON. Lists are {"gates":[...],"next":"..."} and {"grants":[...]} of Grant. A wait is at most 55 s.
//
//	$ curl 'localhost:8080/api/gates?session_id=mira:1&status=pending&wait=20s'
//	{"gates":[{"gate_id":"5f0c...","session_id":"mira:1","status":"pending","kind":"tool","tool":"pay",
//	  "args":{"to":"otto","cents":1200},"args_sha256":"6e29...","allowed":["approve","deny","edit"],...}]}
//	$ curl localhost:8080/api/gates/5f0c.../decision -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' \
//	    -d '{"verdict":"approve","args_sha256":"6e29..."}'
//	{"decision_id":"81d1...","gate":{"gate_id":"5f0c...","status":"approved","outcome":{...},...}}
//	$ curl localhost:8080/api/gates/5f0c.../decision -H 'Content-Type: application/json' \
//	    -d '{"verdict":"deny","reason":"over budget"}'
//	{"error":"Another outcome stands","decision_id":"c0a3...","gate":{"gate_id":"5f0c...","status":"approved",...}}
//	$ curl 'localhost:8080/api/gates/5f0c...?wait=55s'
//	$ curl -X DELETE localhost:8080/api/gates/grants/5f0c...
//
// # Decisions
//
// The body of a decision is a JSON object:
//
//	verdict      approve, deny or answer; required
//	args_sha256  the digest of the arguments that the person saw; send it always
//	reason       a text for the model
//	option_id    one of the gate's options
//	edited_args  the arguments to run instead, if allowed contains edit: they replace the original ones completely
//	answer       the value of an answer
//	scope        once (default), session or agent: approve later calls of the tool too
//
// Other members are refused, so that a typing error cannot approve something else. Who decided is the authenticated caller
// (auth.Caller.Name), never a member of the body.
//
// The door checks a decision before it writes the record (gate.View.Check), and then waits for the outcome. Deciders race
// through the topic: the first decision in its partition wins, and each is answered according to the outcome that won. A
// repeat of a request (the same caller, Idempotency-Key and body) is the same decision in every process.
//
//	status                                                                          body
//	200  the decision is the gate's outcome, also if it is repeated                 decision_id, gate
//	202  the brokers have the decision; no outcome was seen during the wait         decision_id, gate
//	409  another outcome stands: another person's, the policy's, or the deadline    error, decision_id, gate
//	409  an approval of arguments that the caller was not shown                     error, url
//	412  args_sha256 is not that of the gate: the person saw other arguments        error, decision_id, gate
//	422  the gate does not accept it: its verdict, option, edit or answer           error
//
// Arguments of more than 2 KiB are approved only by a caller that has read them, from the gate, a list or a WebSocket of the same
// Index, or that repeats args_sha256; questions on channels and events may have shown only their beginning. Behind a load balancer,
// send args_sha256: another process does not know what the caller has read.
//
// The gate stays open after 412, 422 and the second 409. After 202, ask for the gate: the policy is evaluated again when the decision is
// applied, and a record that the gate does not accept in the end is dead-lettered.
//
// Errors of all routes are JSON objects with the member "error":
//
//	400  the body is not such an object, or a parameter, the session's ID or the Idempotency-Key is not usable
//	401  the caller is not authenticated, or its credential ended during a wait
//	403  the caller does not have the right, or may not use the session that it named, or the page's origin or the name in
//	     Host is not trusted
//	404  the gate was never known, or ended so long ago that its session's row has forgotten it (gate.Config.RememberFor)
//	405  another method
//	408  the body arrives too slowly
//	413  the body is larger than Config.BodyLimit, or its record is too large for the brokers
//	415  the content type is not JSON
//	429  the caller or the session exceeds Config.Limits; Retry-After says when to repeat the request
//	500  the brokers did not acknowledge the record within 30 s; it may be written later
//	503  the index has not caught up or is incomplete, the gate group has not read the request of the gate yet (for a minute at most), or too many
//	     requests at a time; Retry-After says when to repeat it
//
// # Security
//
// Every request is authenticated and authorized, because the IDs of gates can be derived. To read gates needs the right
// auth.Read, to decide auth.Answer, and everything about standing approvals auth.Control. A gate of a session that the caller
// may not use gets 404, after the same work as one that does not exist; the audit records the attempt with 403.
//
// A standing approval for the agent counts in the sessions of all users. To give one (scope agent), to list them and to
// revoke them needs auth.Control and the permission to use every session: the door asks auth.Caller.MayUse about a random
// session ID.
//
// # Limits
//
// An Index is bounded: see Config.GateLimit and RowMemory. If it has left gates out, lists have "incomplete":true,
// and a request for an unknown gate gets 503. It reads them again when others have ended. The gates of a row that cannot be
// decoded are left out until the row is written again or deleted.
//
// # Shutdown
//
// A Handler starts no goroutine and is not closed. End the context of Index.Run first, which ends all waits; then stop the
// http.Server with Shutdown, then close the publisher.
package gatehttp
