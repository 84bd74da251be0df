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
//	                                                   +--> agent-events (Config.Events)
//	gate-outcomes ----------+                          +--> gate-requests (Config.Approval, Config.Gates)
//	gate-requests (Config.Gates)
//
// All topics are keyed by session and named "{agent}-...". The wire format is FlightDeck's; see package topics.
//
// # Guarantees
//
// Every accepted message ends in exactly one record on message-output: an answer, or an error that states the reason. Every
// tool call ends in exactly one result: the tool's, or a synthesized error. Late and duplicate answers, and answers to no
// step or call of the session, change nothing and are dead-lettered with the reason. A redelivery of an applied record is
// skipped. A waiting turn always has a deadline. After a crash, a worker's record can be read before the step that it
// answers has opened; it is then held until the step opens.
//
// Every output has a turntable.id header, "{turn}/{step}/{kind}/{index}", which is derived from what caused it: a repeat
// after a crash has the same ID. The output of a turn has the same ID however the turn ends.
//
// # A turn
//
// A session has one open turn at a time; further messages wait in order. A turn is a series of think steps. A step asks
// the model and waits for its think-response (Config.ThinkTimeout), which repeats ("echoes") the conversation and the message
// that it answers. A response that asks for tools opens one call for each, and the turn waits for their results
// (Config.ToolTimeout); with the last result the next step begins. A response that ends the turn is the answer, and the
// conversation in it becomes the session's history. A turn that ends in an error leaves the history as
// it was before the turn.
//
// # Long sessions
//
// A session can have any number of turns. Only its history grows with them, and Config.HistoryLimit bounds the part of the
// history that is sent to the model. A turn that begins over the limit first hides the oldest exchanges, down to half of
// the limit. An exchange is a user's message and what follows it up to the next one, so the history always begins with a
// user's message, and every tool call in it has its result. The beginning of the prompt changes only when the limit is
// reached, so that providers can cache it. Exchanges are also hidden if the record for the model or the row would be too
// large otherwise, even during a turn. A turn ends in too_large only if its own messages do not fit.
//
// With Config.Compaction, a turn that begins over the limit first asks a compactor (package compact) for a summary of these
// exchanges, and continues with the summary in their place:
//
//	turn --> {agent}-compaction-request --> compactor --> {agent}-compaction-result --> turn
//
// If the compactor fails, or does not answer in time (2 minutes by default), the exchanges are hidden without a summary. A
// late or repeated result is dead-lettered. The message of a summary has the role assistant and begins with "[Conversation
// Summary]", as in FlightDeck's model workers.
//
// Hidden exchanges stay in the row, in parts that no event reads. They are deleted when the session is purged, by a
// tombstone on think-request-response, or, the oldest first, when the row has no room for them: a session's row and its
// parts together never exceed Config.RowLimit. Each time exchanges are hidden, the processor logs a line and calls
// Metrics.HistoryHidden.
//
// # Approvals
//
// With Config.Approval, a policy (package processors/approval) says which tool calls wait for a person's approval. The gate of
// a call, package processors/gate or another group with the same topics, ends in exactly one outcome:
//
//	turn --> {agent}-gate-requests --> gate (a person, a policy or a deadline decides) --> {agent}-gate-outcomes --> turn
//
//	outcome      the call
//	approved     is handed out with the arguments of the outcome, if they have its digest, and the policy, evaluated again,
//	             does not deny them; Config.ToolTimeout begins now
//	denied       ends in an error result, reason denied: "the call was refused, because ..."
//	timed_out    ends in an error result, reason approval_timed_out: "no one answered in time ..."
//	cancelled    ends in an error result, reason cancelled
//	none         ends as timed out 5 minutes after the gate's deadline, and the gate is withdrawn
//
// Calls that the policy denies are requested too, so that the refusal has an outcome; they never run. The other calls of the
// response run meanwhile on the clock of their step. To FlightDeck's readers a waiting call is one that was not handed out yet:
// tool-use-all-complete and the tool message follow with the last result, in the same form. The deadline_ms of the former is
// that of the calls that did not wait.
//
// The gate's ID is topics.GateID(session, turn, call), and call_id is the turntable.id of the call's record on tool-use. If
// the outcome changed the arguments, the tool_use block of the conversation has the arguments that ran, and the result of
// the call has the member "turntable_approval": otherwise the model would try the original ones again.
//
// A turn that ends withdraws the gates of its calls. A message that arrives while a call waits is queued; with
// Config.SupersedeGates it withdraws the gates, and the turn continues without the calls. A policy in shadow mode hands out every
// call and records what it would have asked.
//
// With Config.Gates, the clock of a think step stops while a gate of another requester, such as an agent behind
// processors/fold, is open for its turn. The requester names the turn in turn_id: by the turn's ID, or by the request_id
// of its message. The turn waits for the outcome until 5 minutes after the request's expires_at, or for 30 days if it has none,
// because the deadline is then that of the gate's policy. It withdraws the gate if the turn ends or is superseded before. A
// session has up to 256 such gates; more do not stop the clock.
//
// With Config.Channels, the metadata of a message says where its output goes: to its origin on a channel, or to the agent that
// delegated a task. The turn stores that with the message and copies it to the records of its tool calls and gates; nothing is
// looked up by session or agent. An ephemeral prompt is sent with each step of its turn, and is not in the history.
//
// # Reply routes
//
// A route of reply-to says where the answer to one message goes. A route with a request_id belongs to the message with the same
// request_id. Without one, package turnhttp gives the message and its route a turntable.id from which the turn knows both.
//
// Other doors may do neither, such as FlightDeck's chat-api for requests without a request_id. The topics have no common order, so
// the turn has to guess: the route goes to the oldest message that has no output and no route yet and is not older than the route.
// If a session gets several such messages at the same time, one caller can get the answer to another one's message. Send a
// request_id with each message and its route, or wait for each answer before the next message.
//
// If the model is faster than the reader of reply-to, a route is read after its turn has ended. With Config.Delivery the output is
// delivered to it all the same. Otherwise the output has no route, and the route is dead-lettered.
//
// # Memory
//
// With Config.Memoir a session ends when it has had no record for a while (Memoir.After), or by the action end on session-control,
// and its conversation goes to the memory of its user. A session with an open turn, gate, reply route or held record does not
// end. The end and the removal of the conversation are one step of the row: a record that is read before it postpones the
// end, and one that is read after it belongs to a new conversation. A record that was written before the end was due is read
// before it, also after a downtime or a lag: the end waits for it, for at most 10 minutes after it was due or after the processor
// began to read the partition, whichever is later.
//
//	turn --> {agent}-session-end, {agent}-memoir-sessions (the conversation), a tombstone on {agent}-think-request-response
//	turn --> {agent}-memoir-lookups --> package memoir, which adds the memory --> {agent}-enriched-message-input --> the model
//
// A step for the model gets the memory of its message's user. A message without a user belongs to the last user of the session.
// If there is none, or for the placeholder of FlightDeck's chat API, the step gets the memory of the session (topics.MemoryKey).
// The conversation goes to the same memory. The user_id of a response counts only if neither the message nor the session has a
// user, because a worker may write any. A conversation with answers to messages of several users, as in a room, goes to none of
// their memories: its snapshot has no user_id and the key topics.SharedMemoryKey, which no step reads. Messages without an
// answer are not part of the conversation. What the history limit, the compactor or a worker's compaction has hidden from the
// model is part of it. A conversation of more than 128 KiB becomes several snapshots, and hidden exchanges for which the row has
// no room become one before the session ends: nothing is left out. Only of a message that is too long for a record the end is
// replaced by an ellipsis. Gates of other requesters keep a session open with Config.Gates.
//
// # Costs and latencies
//
// Config.MaxSteps bounds the steps of a turn, Config.MaxCost the cost of a session, and Config.Budgets the costs of users and tenants:
// beyond them the turn ends in an error output, code too_many_steps or over_budget. With Config.Costs each answer of a model is
// charged on model-costs, also one that comes too late; with Config.Latencies each tool call is measured on tool-use-latency.
// Packages memoir/cost and memoir/latency add them up. The user who is charged is that of the message whose step the record
// answers, which is the user whose budget was checked; a response without an open or waiting turn is charged to the user in the
// message that it echoes. The user_id of a response counts only if these have none.
//
// # Structure
//
// All rules are in a pure function of row, event and time, without Kafka, clock or I/O (apply in transition.go). It returns the new
// row and the records to write. The row is one Protobuf message per session. Graph binds the function to topics.
// Conversations pass through byte for byte: they are spliced, never decoded and encoded again. The large fields of a row
// are stored in parts. An event reads only the parts that it needs.
//
// # Doors and tools
//
// Package turnhttp has the http.Handlers that accept messages and the results of asynchronous tools. Package token has the
// tokens that callbacks need; packages tools, think and compact have the workers for tools, models and compactors that are
// Go functions. They communicate with the processor through topics only, and can run in its process or in others.
//
// # Workers in other languages
//
// After a crash the processor repeats records of enriched-message-input and tool-use with the same turntable.id, and it may
// already have read and rejected a worker's answer to the first copy. A worker should therefore answer every repeat:
// remember the published answer by that ID and publish it again without calling the model or the tool. Packages think and
// tools do so with the same bytes and headers (their RememberFor: 24 h, 10,000 answers, 64 MiB); a repeat whose answer they no
// longer have is processed again under the same ID.
//
// A worker may drop repeats instead, because the turn holds an answer that it reads before the answer's step is open, for
// the think timeout at most. Such an answer must name the record that it answers: its turntable.id is that record's
// turntable.id followed by a slash and a word of the worker's own ("/think", "/failure" and "/result" in packages think and
// tools). A worker that sets no turntable.id should answer repeats.
//
// # Decisions beyond the wire format
//
//   - A timeout of a step, of its calls or of a compaction waits for records that were written before it was due and are not
//     read yet, as after a downtime: an answer that was on its topic in time is not late. It waits for at most 30 s from the
//     deadline, or from when the processor began to read the partition. The end of a session (Config.Memoir) and its removal
//     (Config.IdlePurge) wait for at most 10 minutes.
//   - A think-response answers the open step unless it names another one: by its turntable.id, or without one by the input
//     and the length of the history that it echoes. A tool message is compared without its timestamp, because a replay
//     writes a new one.
//   - A worker's record that names a future step is held in the row and applied when that step opens, because after a crash
//     the row can be older than the record. It is dead-lettered if its turn ends without that step, if the row has no room,
//     or after the think timeout if its message was not read by then; as the timeout of a step, this waits for records that
//     are not read yet. A record whose turn or step is known to have ended is dead-lettered immediately. A record on
//     tool-use-dlq is held or applied in the same way if its turntable.id is that of the call, or begins with it and a slash.
//   - A tool's result or failure whose turntable.id names a call ends only that call. A record without such an ID, as
//     FlightDeck's workers write it, ends the open call with its tool_use_id; if it names another tool than the call, it is
//     dead-lettered.
//   - Missing fields of a response are taken from the session. Without previous_messages, the step's message and the
//     response are appended to the stored history, unless the response's messages begin with the step's own message, as
//     those of FlightDeck's older model workers do; then they are the complete history. A blank user_id is replaced by that
//     of the message. In a response with prevSessionCost, cost is the cost of the step alone. A message without a role is
//     the user's.
//   - FlightDeck's SDKs report that the model failed by a response that ends the turn with a text in messages and has no
//     cost, no history and no input message. It is dead-lettered; the SDK's record on think-dlq ends the turn.
//   - A record on think-dlq ends the turn with the code think_failed, or think_timeout if its header turntable.reason is
//     "deadline": the code of a step at its deadline does not depend on whether the turn or package think is first. If the
//     header is "empty", the code is empty_response.
//   - A response that ends the turn without a text of the assistant is no answer, whichever worker wrote it: the turn ends in
//     an error output, code empty_response.
//   - A tool call with the member invalid in tool_uses is refused: the model gets that text as the call's result.
//     The dollars in its header turntable.cost, if there is one, are added to the cost of the session.
//   - A record on think-dlq that contains the failed input must match the open step; a record without input fails the open
//     step. Package fold (fold.Config.ThinkResponses) writes no such record for a turn without a request, because it cannot
//     name the input: the step ends by the think timeout.
//   - think-dlq may have any number of partitions, because the SDKs of FlightDeck let the broker create it. Its records are
//     always sent through the loop topic, even from the right partition.
//   - A purged session keeps digests of the records it has applied, without text or IDs, until they expire. Otherwise a
//     late repeat would start the session again.
//   - A purge always succeeds. A session whose row is damaged is erased with all its parts: messages that can be read end in
//     an error output, code cancelled; those that cannot end without one, which is logged. A row of a newer format is not
//     erased by a build that cannot read it, because that build would leave its messages without an output: the processor
//     stops with rows.ErrVersion and does not commit the purge, so a newer instance performs it. During a rolling deployment
//     that is the instance that takes over the partition; after a rollback, deploy the newer build again.
//   - A turn that ends before its tools (cancelled, failed) still writes tool-use-all-complete and the tool message with
//     error results, so that readers see a result for every call. The model is not asked.
//   - A tool message that is too large first omits the copies in metadata.tool_results ("result":null), then replaces the
//     largest results by too_large errors.
//   - An outcome that is read before its call, because a crash lost the row of the request, is held like a result. So is the
//     result of a call whose approval was lost; it counts when the approval is read again. Any other outcome of a call that
//     does not wait for it is dead-lettered, except cancelled ones, which answer the turn's own withdrawal.
//   - An outcome counts only with the gate ID and the call ID of the waiting call. Without its digest
//     (effective_args_sha256), an approval is a refusal.
//   - If the turn of an agent that was called as a tool ends in an error, the callback's body is
//     {"result":message,"status":"error","error":{...}}.
//   - A value that is JSON null is poison, not a tombstone: a faulty worker must not clear a history.
//
// # Sizes
//
// Every field of a row is bounded, by count and in bytes (Config.RowLimit), and no record larger than Config.RecordLimit is
// written. If a row would be too large, the following is given up in this order: hidden exchanges, the older of the
// remembered calls and records, the stored message of the open step, held records, waiting messages, exchanges of earlier
// turns, the result that has just arrived (the model gets an error in its place), calls that wait for approval (the largest
// first, in too_large errors), and last the turn, in an error output; see room.go. The arguments of a call that waits for
// approval are stored in the row in addition to the conversation. A call for which there is no room is not requested. Routes and request IDs are not given up. If a tool message would be too large, the following is given up in
// this order: the copies of results in its metadata, exchanges of earlier turns, the largest results themselves, and last
// the turn.
package turn
