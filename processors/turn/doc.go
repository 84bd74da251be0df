// Package turn runs the turns of an agent: it takes a user message, asks a model and its tools, and writes one answer.
//
//	message-input ----------+                          +--> enriched-message-input --> the model's worker
//	think-request-response -+                          |
//	think-dlq --------------+     one session's row    +--> tool-use ----------------> tool workers
//	tool-use-result --------+--> (state, event, now) --+--> tool-use-dlq
//	tool-use-dlq -----------+     -> (state, effects)  +--> tool-use-all-complete
//	reply-to ---------------+                          +--> message-input (the tool message, for readers)
//	session-control --------+                          +--> message-output
//	deadlines --------------+                          +--> {group}-dlq (records that cannot be used, with the reason)
//
// All topics are keyed by session and named "{agent}-...". The wire format is FlightDeck's; see package topics.
//
// # Guarantees
//
// Every accepted message ends in exactly one record on message-output: an answer, or an error that states the reason. Every
// tool call ends in exactly one result: the tool's, or a synthesized error. Late and duplicate records, and those that
// answer no step or call of the session, change nothing; they are dead-lettered with the reason. A waiting turn always has
// a deadline. A worker's record that is read before the step that it answers, which is possible after a crash, is held
// until that step opens.
//
// Every output has a turntable.id header, "{turn}/{step}/{kind}/{index}", which is derived from what caused it: a repeat
// after a crash has the same ID. The output of a turn has the same ID however the turn ends.
//
// # A turn
//
// A session has one open turn at a time; further messages wait in order. A turn is a series of think steps. A step asks
// the model and waits for its think-response (WithThinkTimeout), which repeats ("echoes") the conversation and the message
// that it answers. A response that asks for tools opens one call for each, and the turn waits for their results
// (WithToolTimeout); with the last result the next step begins. A response that ends the turn is the answer, and the
// conversation in it becomes the session's history. A turn that ends in an error leaves the history as
// it was before the turn.
//
// # Long sessions
//
// A session has no last turn: the history is the only thing that grows with it, and WithHistoryLimit bounds what of it the
// model is sent. A turn that begins over the limit first hides the oldest exchanges, down to half of the limit. An exchange
// is a user's message and what follows it up to the next one, so the history always begins with a user's message, and every
// tool call in it has its result. The beginning of the prompt changes only when the limit is reached, so that providers can
// cache it. Exchanges are also hidden if the record for the model or the row would be too large otherwise, even during a
// turn. A turn ends in too_large only if its own messages do not fit.
//
// With WithCompaction, a turn that begins over the limit first asks a compactor (package compact) for a summary of these
// exchanges, and continues with the summary in their place:
//
//	turn --> {agent}-compaction-request --> compactor --> {agent}-compaction-result --> turn
//
// A compactor that is silent (2 minutes by default), fails, or answers late, twice or another turn does not hold the turn up:
// the exchanges are hidden without a summary. The message of a summary has the role assistant and begins with
// "[Conversation Summary]", as those of FlightDeck's model workers do.
//
// Hidden exchanges stay in the row, in parts that no event reads. They are purged with the session, by a tombstone on
// think-request-response, and, the oldest first, when the row needs their room: a session's row and parts never exceed
// WithRowLimit. Each time exchanges are hidden, the processor logs a line and calls Metrics.HistoryHidden.
//
// WithMaxSteps and WithMaxCost bound what a turn and a session may cost: the turn ends in an error output, code
// too_many_steps or over_budget.
//
// # Structure
//
// Apply is the whole processor: a pure function of the row, without Kafka, clock or I/O. State is the row, one Protobuf
// message per session; Event and Effect are inputs and outputs as data. Graph binds them to topics. Conversations pass
// through byte for byte: they are spliced, never decoded and encoded again. The large fields of a row are stored in parts.
// Apply reads those that the event needs, and returns those that the table must write and delete with the row.
//
// # Doors and tools
//
// Package door has the http.Handlers that accept messages and the results of asynchronous tools. Package token has the
// tokens that callbacks need; package tools has the workers for tools that are Go functions; package think has those for
// models, package compact those for compactors. They communicate with the processor through topics only, and can run in its process or in others.
//
// # Workers in other languages
//
// After a crash the processor repeats records of enriched-message-input and tool-use with the same turntable.id, and it may
// already have read and rejected a worker's answer to the first of them. A worker should therefore answer every repeat:
// remember the published answer by that ID and publish it again without calling the model or the tool. Packages think and
// tools do so with the same bytes and headers (WithRemembered: 24 h, 10,000 answers, 64 MiB); a repeat whose answer they no
// longer have is processed again under the same ID.
//
// A worker may drop repeats instead: the turn holds an answer that it reads before its step is open, for the think timeout
// at most. Such an answer must name the record that it answers: its turntable.id is that record's turntable.id followed by
// a slash and a word of the worker's own ("/think", "/failure" and "/result" in packages think and tools). A worker that
// sets no turntable.id should answer repeats.
//
// # Options
//
//	option                         default           meaning
//	WithThinkTimeout               10 min            how long a step waits for the model before the turn ends in an error
//	WithToolTimeout                5 min             how long tools may take before their calls get error results
//	WithRouteTTL                   24 h              how long a reply route can be used
//	WithRemembered                 24 h, 1000        how long, and how many, calls, requests and records are remembered
//	WithQueue                      Queue, 16         whether messages that arrive during a turn wait, and how many, or are rejected
//	WithSupersede                  off               how long a step may be silent while a message waits
//	WithHistoryLimit               half a row        longest history that the model is sent, in bytes and messages
//	WithCompaction                 off               a compactor summarizes the exchanges that would be hidden
//	WithMaxSteps                   100               how often a turn may ask the model
//	WithMaxCost                    off               cost of a session from which on the model is not asked
//	WithRecordLimit                1 MiB             largest record that is written
//	WithRowLimit                   960 KiB           largest row of a session: the record limit less 64 KiB
//	WithDelivery                   off               outputs carry a route_id instead of the bearer token
//	WithMetrics                    none              callbacks for hidden exchanges
//	WithIdlePurge                  off               how long a session may be idle before it is removed
//
// # Decisions beyond the wire format
//
//   - A think-response counts for the open step unless it names another one: by its turntable.id, else by the input and
//     the length of the history that it echoes. A tool message is compared without its timestamp, because a replay writes
//     a new one.
//   - A worker's record that names a step still to come is held in the row and applied when that step opens: the row may
//     be older than the record after a crash. It is dead-lettered when its turn ends without that step, when the row has
//     no room, or after the think timeout if its message was not read by then. Records whose turn or step is known to have
//     ended are dead-lettered at once. A record on tool-use-dlq is held or applied in the same way if its turntable.id is
//     that of the call, or begins with it and a slash.
//   - A tool's result or failure whose turntable.id names a call ends only that call. One that names none, as those of
//     FlightDeck's workers, ends the open call with its tool_use_id, unless it names another tool than the call does: it is
//     dead-lettered then.
//   - What a response leaves out is taken from the session: without previous_messages, the step's message and the response
//     are appended to the stored history, unless its messages begin with the step's own message, as those of FlightDeck's
//     older model workers do; then they are the whole history. A blank user_id is that of the message. In a response with
//     prevSessionCost, cost is that of the step alone. A message without a role is the user's.
//   - A response that ends the turn with a text in messages, without a cost, a history and a message to answer, is a report
//     that the model failed, as the SDKs of FlightDeck write it. It is dead-lettered; their record on think-dlq ends the
//     turn.
//   - A record on think-dlq ends the turn with the code think_failed, or with think_timeout if its header turntable.reason is
//     "deadline": at a deadline the code is the same whether the turn's own timer or package think's failure is first.
//   - A record on think-dlq with the input that it failed on must match the open step; one without input counts for it.
//     Package fold/group (WithThinkResponses) writes no such record for a turn without a request, because it cannot name
//     the input: the step ends by the think timeout.
//   - think-dlq may have any number of partitions, because the SDKs of FlightDeck let the broker create it. Its records take
//     the way over the loop topic, also if their partition is the right one.
//   - A purged session leaves digests of what it has seen, without text or IDs, until they expire. Otherwise late repeats
//     would start the session again.
//   - A turn that ends before its tools (cancelled, failed) still writes tool-use-all-complete and the tool message with
//     error results, so that readers see a result for every call. The model is not asked.
//   - A tool message that is too large first omits the copies in metadata.tool_results ("result":null), then replaces the
//     largest results by too_large errors.
//   - The callback of an agent whose turn ended in an error says so: {"result":message,"status":"error","error":{...}}.
//   - JSON null as a whole value is poison, not a tombstone: a faulty worker must not clear a history.
//
// # Sizes
//
// Everything in a row is bounded, by count and in bytes (Rules.RowLimit), and nothing larger than Rules.RecordLimit is
// written. What a row has no room for is given up in this order: hidden exchanges, the older of the remembered calls and
// records, held records, waiting messages, exchanges of earlier turns, the result that has just arrived (the model is told),
// and last the turn, in an error output; see room.go. Routes and request IDs are not given up. What a tool message has no
// room for is given up in this order: the copies of results in its metadata, exchanges of earlier turns, the largest results
// themselves, and last the turn.
package turn
