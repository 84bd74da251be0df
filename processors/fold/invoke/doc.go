// Package invoke is the HTTP door of an agent: it answers POST /invoke with a batch or a stream. Both are made of the same
// events, so folding the stream gives the batch.
//
//	POST /invoke --> Door --> Agent --> events --+--> fold --> batch     application/json
//	                                             +--> lines              application/x-ndjson
//	                                             +--> frames             text/event-stream
//	                                             +--> Vercel parts       text/event-stream
//
// An Agent yields the events of turns. NewPipeline returns one on Kafka: messages go to {agent}-message-input, events
// come back on {agent}-agent-events. NewBuffered keeps the turns of any other agent for clients that lost their connection.
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
// read with its q-values; a header that names no known type is no preference. From flags, Accept header and the agent's
// Capability the door decides before the agent runs: 200 with JSON, lines or frames, or 406. The status is 406 if the agent
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
// 410, for example if its first events are older than WithLookback or were removed from the topic. So is a turn that never
// began. Clients that reconnect automatically stop after a 410.
//
//	post -H 'Accept: text/event-stream' --max-time 1 > cut.txt
//	last=$(sed -n 's/^id: //p' cut.txt | tail -1)
//	curl -sN "http://127.0.0.1:8080/invoke?session_id=demo" -H 'Accept: text/event-stream' -H "Last-Event-ID: $last"
//	curl -s  "http://127.0.0.1:8080/invoke?session_id=demo" -H "Last-Event-ID: $last"
//
// # The index of turns
//
// Every process with a pipeline keeps an index of the turns that began within WithLookback, by session: the request, the
// position of the turn's first and last record, and whether it failed. A pipeline answers from this index: a request for an
// unknown turn or with a new Idempotency-Key reads nothing, and for a known turn it reads the records between the turn's
// first and last one, of one partition.
//
//	message-input (accepted) --+
//	agent-events (positions) --+--> follower --> index --> unknown: 410
//	message-output (failures) -+        |                  accepted: wait for its first event
//	                                    +--> requests      begun: read it, then its new events
//
// The follower adds a record to the index before it passes it to the requests that wait, under one lock, so no record is
// missing between a turn that is read again and its new events, and no process has to wait for the index of another one. A
// turn that is not in the index may have begun just now: before the answer is 410, the pipeline asks the brokers for the ends
// of two partitions and waits until the follower has reached them. Concurrent requests share that question.
//
// When Run starts, it reads the three topics once from WithLookback on; until then requests get 503. The index is in memory
// and bounded: WithIndexedTurns in all, 256 turns of a session, and no turn without a record within WithLookback. No other
// processor is needed. At most 8 chunks of 256 KiB are read from Kafka at the same time. A chunk is read without waiting
// for the client, and callers take turns, so neither a slow client nor a caller with many requests takes the place of others.
// A caller is auth.Caller.Name, or the IP address for callers without a name.
//
// # Client disconnects
//
// When the client disconnects, the door stops writing and cancels the agent's context. Your own agent should then end its
// run. Under NewBuffered the run continues. The turn of a pipeline always continues; a record of session-control cancels
// it. If a request to a pipeline is repeated with its Idempotency-Key within WithLookback, in any process, it gets the same
// turn, and the message is not written again.
//
// # Options
//
//	option                            default               meaning
//	WithAuthenticate                  accepts anyone        who may call, and for which sessions
//	WithCORS                          off                   origins of browsers
//	WithLimits                        see there             what one caller and one session may use
//	WithAudit                         the logger            who started a turn or was refused
//	WithCapability                    the agent's           batch, stream or both
//	WithResolve                       none                  a function that each request passes first
//	WithBodyLimit, WithBatchLimit     1 MiB, 64 MiB         largest body; largest batch
//	WithConcurrency                   1024                  requests at a time
//	WithKeepalive, WithWriteTimeout   15 s, 30 s            silence before a keepalive; wait for a slow client
//
// # Security
//
// A door without WithAuthenticate accepts anyone and logs a warning once. A stream ends when the credential of its caller
// expires or is revoked; the turn continues. The door dials no address that a request names. Headers are limited before
// they are parsed (431), and callers are authenticated before their body is read. Bodies, nesting, concurrent requests,
// batches, and the bytes that wait for a slow client are bounded, for all callers and for each (429 with Retry-After). An error that is not an *Error is logged and
// reported to the client as a failure without details.
package invoke
