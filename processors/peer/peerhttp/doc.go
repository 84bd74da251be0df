// Package peerhttp is the HTTP entrance of delegation between instances: peers send tasks to it, and the callers of this instance
// send tasks to peers through it.
//
//	peers    POST /api/peer/delegate --+                                              +-> runs: a turn of an agent
//	                                   +-> Handler --> {agent}-peer-commands --> group (package peer)
//	callers  POST /api/peer/proxy -----+                                              +-> attempts: the sink, a peer
//	                                       Handler <-- Replies <-- {agent}-peer-replies <--+
//
// The door does not run the group, and communicates with it through topics only, so it can run in any process and in any
// number of processes. It keeps no reply: the group does. A task that is repeated, in any process and also after a restart, is
// not run again: it gets the same reply.
//
// # Routes
//
//	GET    /.well-known/hybridclaw-peer.json   the agent card, for everyone
//	POST   /api/peer/delegate                  runs a task for a peer; 200 with its reply
//	GET    /api/peer/tasks/{taskId}            how a task of the peer is; with wait=25s it waits for the end
//	DELETE /api/peer/tasks/{taskId}            cancels it, and withdraws what it has left for approval; with wait=5s it waits for the end
//	POST   /api/peer/proxy                     sends a task to a peer
//
// A peer has a bearer token of the settings, which also authorizes the routes below /api/peer/tasks: other peers get 404 for its
// tasks. The door calls the function of the settings once for each request, so a token that was revoked is refused in the next
// one. Requests that wait continue.
//
//	$ curl localhost:8080/api/peer/delegate -H 'Authorization: Bearer T2' \
//	    -d '{"taskId":"t-9","parentInstanceId":"hq-1","content":"How many rows?"}'
//	{
//	  "taskId": "t-9",
//	  "peerInstanceId": "tenant-a",
//	  "peerRunId": "peer_1777190000000_1a2b3c4d",
//	  "status": "success",
//	  "result": "42 rows",
//	  ...
//	$ curl localhost:8080/api/peer/delegate -i -H 'Authorization: Bearer T2' -H 'Prefer: respond-async, wait=10' \
//	    -d '{"taskId":"t-10","parentInstanceId":"hq-1","content":"Count all rows."}'
//	HTTP/1.1 202 Accepted
//	Location: tasks/t-10
//	Preference-Applied: respond-async
//	$ curl 'localhost:8080/api/peer/tasks/t-10?wait=25s' -H 'Authorization: Bearer T2'
//	$ curl localhost:8080/api/peer/proxy -H 'Authorization: Bearer KEY' -H 'Content-Type: application/json' \
//	    -d '{"peerId":"tenant-a","content":"How many rows?"}'
//
// # A task of a peer
//
// The checks are those of package peer, in its order; the slot of a task is taken before its body is read. The status is 200 for
// every outcome of the run: success, error, and rejected if it needs a person's approval. A task that was rejected is over. To retry,
// let a person of this instance approve the request that it has left (GET /api/gates?session_id= with its peerSessionId, package
// gatehttp), and send the task again under a new task ID: the same call then runs once. DELETE withdraws the request. Package peer
// has the details.
//
// Without Prefer, the request waits until the run has ended, for timeoutMs or Config.RunTime at most. If its client disconnects and
// no other request waits for the task, the run is cancelled. If the process of the door stops or is killed, the run continues,
// and the repeated request gets its reply.
//
// With Prefer: respond-async the task is detached: it continues although no request waits for it. The answer is 202 when the time
// of wait is over (in seconds; without it 0; at most 60) and the group has accepted the task. Location is relative to the request;
// it is also answered with 202 while the task runs, also while it waits for a person (peer.Config.WaitForApproval). With a callback token (callback.token) package delivery also sends
// the reply to the callback service that the settings name for the token. A task ID that is too long for a path is answered as
// without Prefer.
//
// # A task for a peer
//
// The body of a request to /api/peer/proxy is a JSON object; members of a wrong type count as absent:
//
//	peerId           the peer, by its ID in the settings; required
//	content          required
//	taskId           a random UUID without it
//	agentId, model   of the peer
//	timeoutMs        1000 to 600000; without it, the peer's in the settings
//	parentSessionId  the session that the task belongs to; without it, one that is derived from the caller, the peer and the task
//	parentRunId      is passed on
//
// Callers are authenticated (Config.Authenticate) and need the right auth.Write, and the permission to use parentSessionId. Without
// authentication every request is refused, also from the same machine.
//
// The answer is 200 with the reply of the peer, whatever its status says. Without Prefer one attempt is made, as the caller
// waits for it. With Prefer: respond-async attempts are repeated until the time of the task is over; after 202, repeat the request
// with the same taskId to wait for the outcome. A task that has ended keeps its outcome under its taskId: after peer_busy send it
// under a new one, and after unavailable under the same. Otherwise:
//
//	400  the body has no peerId or no content, is not JSON, or an ID in it is not usable
//	401  the caller is not authenticated
//	403  the caller may not use the session; the peer may not be asked for the agent; the session may not delegate
//	404  there is no such peer
//	409  another task for the peer was sent with the task ID; the task has passed this instance already
//	410  the task has ended, and its outcome is no longer kept
//	502  the peer refused the request, cannot be reached, or returned no well-formed reply
//	503  the peer is busy, with its Retry-After; delegation is disabled; the session has no room
//	504  the peer did not answer in time; "answered" says whether the headers of a response had arrived
//
// # Errors
//
// An error is a JSON object with error, a text for people, and code, which is stable: HybridClaw's, and those of this list. An error
// of a task of the proxy also has taskId and peerId, and if they are known agentId, timeoutMs, answered, peerStatus and
// peerError. peerError is a text of the peer: do not show it to a model as it is.
//
//	401  unauthorized         the caller of the proxy
//	403  forbidden            the caller of the proxy
//	404  not_found            the path
//	405  method_not_allowed   with Allow
//	408  slow_body            the body arrives too slowly
//	414  target_too_long      the path and the query
//	415  content_type         of the proxy: want application/json
//	429  rate_limit           Config.Limits
//	431  headers_too_large
//	503  unavailable          too many requests at a time, or the group or the replies do not answer: repeat the request
//
// 401 has WWW-Authenticate, and 429 and 503 have Retry-After.
//
// # Audit
//
// Every request to /api/peer/delegate that is refused, and every one with an unknown token, is written to the audit of the
// instance as peer.delegate.refused (Config.AuditAgent), before it is answered, at most Config.RefusalRate per second and label. Config.Audit
// is the log of the operator.
//
// # Limits
//
// inboundMaxConcurrent and maxConcurrent of the settings are for one process and for each token: with n processes, n times as many
// tasks run. A task has one slot, from before its body is read until it has ended, also if its client has disconnected or was
// answered with 202. Repeated requests for a task share its slot, also if there is no free one. So do the limits
// of Config.Limits count in one process.
//
// # Shutdown
//
// A Handler starts no goroutine and is not closed. End the context of Replies.Run first, which ends all waits: asynchronous ones
// with 202 if the task is known to run, all others with 503. Then stop the http.Server with Shutdown, then close the publisher. The
// tasks continue. A client that disconnects counts as gone a second later, so that a server that ends its requests when it stops,
// with Close or a BaseContext that ends, cancels none.
package peerhttp
