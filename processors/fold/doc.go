// Package fold folds an agent's event stream on Kafka: the group "{agent}-fold-streams" reads {agent}-agent-events and
// writes one batch message per turn to {agent}-batch-messages. Package folder folds the events; this package orders them,
// decides when a turn ends, and stores open turns in the group table. All topics are keyed by session.
//
// Graph returns the group for processors.New. The catalog needs topics.WithEvents, and for Config.Gates topics.WithGates.
//
//	agent-events ------+     one session's row    +--> batch-messages
//	session-control ---+--> (row, input, now) ----+--> think-request-response, think-dlq (Config.ThinkResponses)
//	gate-outcomes -----+     -> (row, effects)    +--> gate-requests (both Config.Gates)
//	deadlines ---------+                          +--> {group}-dlq
//
// # Input
//
// An attempt is one run of the agent for a turn; a run that is started again has the next number. A producer numbers the
// records (seq) of an attempt from 1 without gaps and ends it with a terminal record:
//
//	{"session_id","turn_id","attempt","seq","result":{"ok":true,"stopReason":"end_turn"}}
//
// Repeated records are dropped. Records after a missing one wait for it. A newer attempt replaces the older one. A user's
// records are counted but not folded. An event that is not an object or is too large is dead-lettered and counts as
// received: no record waits for it. A record that cannot be decoded is dead-lettered and counts as missing.
//
// # Turns with several writers
//
// With processors/turn, the records have a step, and each step has writers of its own that do not know of each other. Every call
// of the model is an attempt at its step and numbers its records from 1. The turn's own records (author turn) are applied in the
// order in which they arrive; the one that ends a step names the attempt that counts, and waits for its records. Until then the
// greatest attempt counts. So the batch of an answered turn is the same for any order of the writers' records, and has nothing of
// a worker that died:
//
//	{"turn_id","step":1,"attempt":1,"seq":1,"author":"turn","event":{"type":"step_start",...},"request":...}
//	{"turn_id","step":1,"attempt":1732650000000,"seq":1,"event":{"type":"message_start",...}}      ... of the worker
//	{"turn_id","step":1,"attempt":1,"seq":2,"author":"turn","settles":{"attempt":1732650000000,"seq":7},"event":{"type":"step_end",...}}
//	{"turn_id","step":1,"attempt":1,"seq":5,"author":"turn","event":{"type":"tool_result",...}}
//	{"turn_id","step":2,"attempt":1,"seq":1000000,"author":"turn","settles":{...},"result":{"ok":true,...}}
//
// Only the turn ends such a stream. It names until when it may be silent (until_ms); Config.Silence begins then. A cancel on
// session-control reaches it through the turn, Config.ThinkResponses does not answer it, and Config.Grace and Config.Gates do not apply. A
// model worker in another language takes turn_id and step from enriched-message-input, and names its attempt in the header
// turntable.events of its response (topics.HeaderEvents). If it does not, the turn writes the events of the response.
//
// # How a turn ends
//
// A turn ends with its terminal record, whose stop reason takes precedence over that of the events. Without a terminal
// record, a second done event that names a stop reason ends the turn immediately, and any done event ends it after
// Config.Grace. A turn that gets no more records expires after Config.Silence. A record of session-control can cancel it.
// A purge always succeeds: a row that is damaged is deleted with all its parts, and its turns end without a batch.
//
// Every turn ends in one batch with the events before its end. Its state, with the possible reasons (topics.ReasonGap and
// the constants beside it), is complete, failed (gap, too_large, run_failed, internal), expired (silence, too_many_turns)
// or cancelled. For a terminal record with a code, that is the reason; think_timeout means expired. The batch's turntable.id is derived from session and turn: under processors.AtLeastOnce, a crash can repeat
// the batch with the same ID. While a closed turn is remembered, its later records have no effect; records of a newer
// attempt are dead-lettered.
//
// # Paused runs
//
// A run that needs a person's decision raises interaction requests and pauses: its done event or its terminal record has the
// stop reason paused. By default, that ends the turn in a batch. Config.Gates makes the turn wait: each interaction request
// without an answer becomes a record on gate-requests, and the turn stays open until its run ends. The processors of gates
// (package processors/gate) write one outcome for each to gate-outcomes. Whatever decides, and whenever, the turn has one
// batch, and under Config.ThinkResponses one think-response, with the parts before and after the pause.
//
//	runner   ... interaction_request  done(paused)                            interaction_response  tool_result ... result
//	          seq 7                   seq 8                                   seq 9                 seq 10
//	fold                              gate-request                                                                  batch
//	gate                                           decision -> gate-outcome
//
// A runner that pauses follows gate-outcomes and continues the same turn and attempt with the next seq, also after a terminal
// record that paused. It finds its gates by their IDs: topics.GateID of the session, the turn, and folder.GateCall of the turn,
// the attempt and the request's number. For each outcome it writes an interaction_response or a tool_result, so that the
// request counts as answered; it then runs exactly the arguments it stored, or the effective_args of the outcome. A run that
// is started again has a newer attempt: the gates of the older one are withdrawn, and it asks again. It can continue before
// all of its gates have an outcome, and pause again.
//
// While a gate is open, the time of Config.Silence does not run; after the last outcome it begins again, and the runner has that
// long to continue. When a turn ends in another way (cancel, purge, a failed run, too many turns), its gates are withdrawn.
// At most 256 gates of a turn are open; a turn with more is closed as failed (too_large). A turn whose ID is longer than
// folder.MaxGateTurn bytes does not wait. A request whose record would be
// too large is sent without arguments and with the effect deny.
//
// # Cost
//
// Text is written to the table once, in parts. For a burst of 10,000 deltas of 32 bytes, the table's changelog gets 1.2 times
// the bytes of their text under processors.AtLeastOnce, and 1.4 times under processors.ExactlyOnce. For sparse deltas under
// ExactlyOnce, set
// processors.WithCommitInterval(100 * time.Millisecond).
package fold
