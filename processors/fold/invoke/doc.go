// Package invoke is the HTTP door of an agent: it answers POST /invoke with a batch or a stream, and both are made of
// the same events, so that folding what was streamed gives what the batch says.
//
//	POST /invoke --> Door --> Agent --> events --+--> fold --> batch     application/json
//	                                             +--> lines              application/x-ndjson
//	                                             +--> frames             text/event-stream
//	                                             +--> Vercel parts       text/event-stream
//
// An Agent is anything that yields events. NewPipeline is one that stands on Kafka: messages go to
// {agent}-message-input, events come back on {agent}-agent-events. NewBuffered keeps the turns of any other agent for
// clients that were cut off.
//
// # What is decided before anything runs
//
// The body's flags stream, trim, force and resolve win over the headers that fill them. The Accept header is read with
// its q-values; one that names nothing known is no preference. From these and from what the agent declares
// (Capability) follow 200 with JSON, lines or frames, or 406. A batch is asked of a stream-only agent, or a stream of
// a batch-only one: 406, and nothing has run. force is 406 as long as no agent can take a session over. A session id
// that cannot be one is 400, a body that is no JSON object 422, one over the limit 413.
//
// # Streams
//
// Lines and frames carry the canonical events, in their own bytes but for the blanks between tokens. Two objects more
// may come, of types that fold ignores: keepalive (in frames a comment) after silence, and stream_end behind the last
// event, with the turn's state and the last event's id; without it the stream is not whole. A failure is an error
// event, unless the run has told it itself, and the reason in stream_end. Characters that a producer cut in two come
// whole.
//
// The Vercel stream has the parts that the ai package knows, all of them of its schema, between start and [DONE]. What
// would make its reader stop is left out: deltas of blocks that are not open, results of calls that were not made. A
// gate without a call shows one. A stop reason that the package does not name is other.
//
// # Reading on
//
// Each frame has the id {turn}.{attempt}.{seq}. A POST or a GET with that id as Last-Event-ID, and the same session
// (session_id in the body or the query, or the header), goes on behind it, and never runs anything; asked for JSON, it
// is answered with the batch of the whole turn. The header x-ag-turn-id names the turn, so that {turn}.1.0 reads it
// from its beginning. A turn that cannot be read any more is 410: clients that reconnect by themselves stop at that.
//
// # Who goes on without whom
//
// When the client has gone, nothing is written any more and the agent's context ends. An agent of the caller's own
// ends its run then; under NewBuffered the run goes on; the turn of a pipeline goes on in any case, and its session
// control cancels it. A request of a pipeline that is repeated with its Idempotency-Key is the same turn.
//
// # Safety
//
// A door without WithAuthenticate is open, and says so once in its log. It calls no address that a request names.
// Bodies, their nesting, requests at a time, batches, what waits for a slow client and for how long are all bounded.
// Errors that are no *Error are logged and told as a failure, no more; no answer has a stack trace.
package invoke
