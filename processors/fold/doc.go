// Package fold turns the canonical event stream of an agent's turn into batch messages. A batch is the fold of the events
// that were streamed and nothing else, so batch and stream cannot differ.
//
// # Pure fold
//
// Event is one event, Folder folds events one by one with a Snapshot at any time, Fold folds all of them, Log keeps them
// small until they are folded, Trim cuts a batch to its trailing unit. The result has the contract's key sets, nulls,
// payload bytes and integers of any size. A malformed event is left out and counted; Strict rejects it instead. Packages
// below bridge translate ACP updates, Anthropic's streaming events and think-responses into events. testdata/turns.jsonl
// is a corpus of turns for implementations in other languages.
//
// # Group
//
// Graph folds {agent}-agent-events into {agent}-batch-messages, one record per turn. The catalog needs topics.WithEvents.
//
//	agent-events ------+     one session's row    +--> batch-messages
//	session-control ---+--> (row, input, now) ----+--> think-request-response, think-dlq (WithThinkResponses)
//	deadlines ---------+                          +--> {group}-dlq
//
// A producer numbers the records of an attempt from 1 without holes and ends it with
//
//	{"session_id","turn_id","attempt","seq","result":{"ok":true,"stopReason":"end_turn"}}
//
// Repeats are dropped, records behind a missing one wait, and a newer attempt replaces the older one. Every turn ends in
// one batch with what came before its end: complete, failed (gap, too_large, run_failed, internal), expired (silence,
// too_many_turns) or cancelled.
//
//	option                         default                  meaning
//	WithWindow                     256 records, 256 KiB,    what waits for a missing record, and for how long
//	                               30 s
//	WithGrace                      5 s                      wait for the terminal record after a done event
//	WithSilence                    30 min                   wait after the last record
//	WithOpenTurns, WithTurnLimit   16, 960 KiB              open turns of a session; bytes of a turn
//	WithRecordLimit                1 MiB                    largest record that is written
//	WithRemembered                 24 h, 512                memory of closed turns
//	WithThinkResponses             off                      closed turns feed the turn pipeline
//
// Text is written to the table once, in parts. 10,000 deltas of 32 bytes in a burst write 1.2 times their text at least
// once and 1.4 times exactly once. For sparse deltas under exactly once, set
// processors.WithCommitInterval(100 * time.Millisecond).
//
// An interaction_request that has only its type counts as wrapped with its data missing, as in the reference.
package fold
