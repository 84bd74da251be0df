// Package invoke is the HTTP door of an agent: it answers POST /invoke with a batch or a stream. Both are made of the same
// events, so folding the stream gives the batch.
//
//	POST /invoke --> Door --> Agent --> events --+--> fold --> batch     application/json
//	                                             +--> lines              application/x-ndjson
//	                                             +--> frames             text/event-stream
//	                                             +--> Vercel parts       text/event-stream
//
// An Agent yields the events of turns. NewPipeline returns one on Kafka: messages go to {agent}-message-input, events
// come back on {agent}-agent-events, from the turn group and its model workers, or from a runner. The fold group (package
// fold) must run too: it decides how a turn ends, and each response of a pipeline reports what {agent}-batch-messages says.
// NewBuffered keeps the turns of any other agent for clients that lost their connection.
//
// # Requests
//
// With an agent on port 8080 (go run ./examples/invoke serve), one request has four forms:
//
//	body='{"session_id":"demo","data":{"inputs":{"messages":[{"role":"user","content":"Which berth is free?"}]}}}'
//	post() { curl -sN http://127.0.0.1:8080/invoke -H 'Content-Type: application/json' -d "$body" "$@"; }
//	post                                          # the batch
//	post -H 'x-ag-messages-transcript: last'      # its trailing unit
//	post -H 'Accept: application/x-ndjson'
//	post -H 'Accept: text/event-stream'
//	post -H 'Accept: text/event-stream' -H 'x-ag-messages-format: vercel'
//
// Flags in the body (stream, trim, force, resolve) take precedence over the headers that set them. The Accept header is
// read with its q-values; a header that names no known type is no preference. From flags, Accept header and
// Config.Capability the door decides before the agent runs: 200 with JSON, lines or frames, or 406. The status is 406 if the agent
// supports no type that the Accept header accepts, and for the flag force, unless the agent is StreamOnly or FlagBlind. It
// is 400 for an invalid session ID, 422 for a body that is not a JSON object, and 413 for a body over the limit.
//
// # Streams
//
// Lines and frames contain the bytes of the canonical events, except for blanks between tokens. Two more objects can occur,
// of types that fold ignores: keepalive (a comment in frames) after silence, and stream_end after the last event with the
// turn's state and the last event's ID. A stream without stream_end is incomplete; the HTTP response then also ends with a
// transfer error. If the turn fails, the stream contains an error event (that of the run, or else one that the door adds),
// and stream_end has the reason. Halves of a character that a producer split over two events are joined.
//
// If a model's worker dies in the middle of a step, another one repeats the step. A batch then has the events of the other one. A
// stream has sent those of the first: it ends with the reason superseded, and its member resume names the ID from which the client
// reads the turn again. Its events have a greater attempt.
//
// The Vercel stream contains only parts of the ai package's schema, between start and [DONE]. The door omits parts that
// would make the package's stream reader fail: deltas of blocks that are not open, and results of calls that were not made.
// An approval request without a call is sent as a call. A stop reason that the package does not know becomes "other".
//
// # Resume
//
// Each frame has the ID {turn}.{attempt}.{seq}. A POST or GET with that ID as Last-Event-ID, and the same session
// (session_id in the body or the query, or the header), continues after that event and never runs the agent. With a
// pipeline, any process can serve it. A request for JSON gets the batch of the whole turn. The response header x-ag-turn-id
// names the turn, so {turn}.1.0 reads it from the beginning. A turn that can no longer be read completely is answered with
// 410, for example if its first events are older than PipelineConfig.Lookback or were removed from the topic. So is a turn that never
// began. Clients that reconnect automatically stop after a 410.
//
//	post -H 'Accept: text/event-stream' --max-time 1 > cut.txt
//	last=$(sed -n 's/^id: //p' cut.txt | tail -1)
//	curl -sN "http://127.0.0.1:8080/invoke?session_id=demo" -H 'Accept: text/event-stream' -H "Last-Event-ID: $last"
//	curl -s  "http://127.0.0.1:8080/invoke?session_id=demo" -H "Last-Event-ID: $last"
//
// # Answers
//
// A turn whose run needs a person's decision pauses: its response ends with the stop reason paused, and no connection is held.
// A batch has the last open interaction request in pending_interaction, and with PipelineConfig.Gates all of them in
// pending_interactions. With PipelineConfig.Gates on the pipeline, a request whose last message has an answer decides it and continues
// the turn, under its ID: a stream has the events after the pause, a batch the whole turn.
//
//	{"role":"tool","content":[{"type":"tool_result","toolCallId":"call-1",
//	                           "output":{"approved":true,"interactionToken":"req-1"}}]}
//
// A request whose payload has truncated does not show its arguments, which are too long: it has their size, their digest and the url
// of the gate. An approval of it gets 409 unless it repeats the digest as argsSha256 beside approved.
//
// The answer is matched by interactionToken with the IDs of the session's open requests, else by the ID of the tool call, else
// by the tool's name and arguments, compared by value. If a decided request and a later one have the same ID, the answer is
// about the one whose call and arguments it has, so that its repeat does not decide the later one. A message of a Vercel client with approval parts is the same answer. A
// question (user_input, client_tool) is answered by any output. What runs are the arguments of the request; those in the
// client's history have no effect. The door writes a record to gate-decisions and waits at most 10 s for its outcome.
//
//	response           meaning
//	200                the turn goes on, or was continued by this decision before; if other requests are open, or the
//	                   decision has no outcome yet, it ends paused again
//	409 with outcome   another decision, or the deadline, came first
//	409                the answer matches no open request, or several
//	422                the answer neither approves nor denies, or contradicts another one
//
// A repeated answer is the same decision: it has the ID of its Idempotency-Key, or of the gate and the verdict. Answering
// needs auth.Answer, starting a turn auth.Write. When a decision is made elsewhere, a request with Last-Event-ID reads on
// after the pause. An answer is never written as a message; a message while a turn is paused is, unless
// PipelineConfig.RefuseWhilePaused is set. Its response has the header x-ag-waits-for with the ID of the open gate, a stream at once.
//
// Only turns of a pipeline wait. A turn of any other agent ends with its run, also under NewBuffered, and the answer is a
// request that begins another turn.
//
// A Vercel client sends its messages with the answers in the assistant's last message, as useChat does with
// sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses. The response continues that message: results
// and denials (tool-output-denied) of its calls first, then a new step. If the turn still waits for other answers, it has no
// step. Other clients get the calls again before their results.
//
// # The index of turns
//
// Every process with a pipeline keeps an index of the turns that began within PipelineConfig.Lookback, by session: the request, the
// position of the turn's first and last record, and whether it failed. A pipeline answers from this index: a request for an
// unknown turn or with a new Idempotency-Key reads nothing, and for a known turn it reads the records between the turn's
// first and last one, of one partition.
//
//	message-input (accepted) --+
//	agent-events (positions) --+--> follower --> index --> unknown: 410
//	message-output (failures) -+        |                  accepted: wait for its first event
//	batch-messages (ends) -----+        +--> requests      begun: read it, then its new events
//
// The follower adds a record to the index before it passes it to the requests that wait, under one lock, so no record is
// missing between a turn that is read again and its new events, and no process has to wait for the index of another one. A
// turn that is not in the index may have begun just now: before the answer is 410, the pipeline asks the brokers for the ends
// of two partitions and waits until the follower has reached them. Concurrent requests share that question.
//
// The index is in memory and bounded: PipelineConfig.IndexedTurns in all, 256 turns of a session, and no turn without a record
// within PipelineConfig.Lookback. When Run starts, it reads the topics once from PipelineConfig.Lookback on; until then
// requests get 503. The time grows with the events of that hour.
//
// At most 8 chunks of 256 KiB are read from Kafka at the same time. A chunk is read without waiting for the client, and
// callers take turns, so neither a slow client nor a caller with many requests takes the place of others.
// A caller is auth.Caller.Name, or the IP address for callers without a name.
//
// # Client disconnects
//
// When the client disconnects, the door stops writing and cancels the agent's context. Your own agent should then end its run.
// Under NewBuffered the run continues. The turn of a pipeline always continues; a record of session-control cancels it. If a
// request to a pipeline is repeated with its Idempotency-Key within PipelineConfig.Lookback, in any process, it gets the same
// turn, and the message is not written again.
//
// # Security
//
// A request that starts a turn without a session ID gets a new, random one. A caller whose sessions are limited, for example an
// API key with {user}:* (see auth.ParseSessions), may not use that session: the answer is 403. Such callers must send a
// session ID of their own.
//
// A door without Config.Authenticate accepts anyone and logs a warning once. A stream ends when the credential of its caller
// expires or is revoked; the turn continues. The door dials no address that a request names. Headers are limited before
// they are parsed (431), and callers are authenticated before their body is read. Bodies, nesting, concurrent requests,
// batches, and the bytes that wait for a slow client are bounded, for all callers and for each (429 with Retry-After). An error that is not an *Error is logged and
// reported to the client as a failure without details.
package invoke
