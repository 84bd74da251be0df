// Package group folds an agent's event stream on Kafka: the group "{agent}-fold-streams" reads {agent}-agent-events and
// writes one batch message per turn to {agent}-batch-messages. Package fold folds the events; this package orders them,
// decides when a turn ends, and stores open turns in the group table. All topics are keyed by session.
//
// Graph returns the group for processors.New. The catalog needs topics.WithEvents.
//
//	agent-events ------+     one session's row    +--> batch-messages
//	session-control ---+--> (row, input, now) ----+--> think-request-response, think-dlq (WithThinkResponses)
//	deadlines ---------+     -> (row, effects)    +--> {group}-dlq
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
// # How a turn ends
//
// A turn ends with its terminal record, whose stop reason takes precedence over that of the events. Without a terminal
// record, a second done event that names a stop reason ends the turn immediately, and any done event ends it after
// WithGrace. A turn that gets no more records expires after WithSilence. A record of session-control can cancel it.
// A purge always succeeds: a row that is damaged is deleted with all its parts, and its turns end without a batch.
//
// Every turn ends in one batch with the events before its end. Its state, with the possible reasons (topics.ReasonGap and
// the constants beside it), is complete, failed (gap, too_large, run_failed, internal), expired (silence, too_many_turns)
// or cancelled. The batch's turntable.id is derived from session and turn: under processors.AtLeastOnce, a crash can repeat
// the batch with the same ID. While a closed turn is remembered, its later records have no effect; records of a newer
// attempt are dead-lettered.
//
// # Options
//
//	option                         default                  meaning
//	WithWindow                     256 records, 256 KiB,    records that wait for a missing one, their bytes, and for how long
//	                               30 s
//	WithGrace                      5 s                      wait for the terminal record after a done event
//	WithSilence                    30 min                   wait after the last record
//	WithOpenTurns                  16                       open turns of a session
//	WithTurnLimit                  960 KiB                  bytes of a turn: the record limit less 64 KiB
//	WithRecordLimit                1 MiB                    largest record that is written
//	WithRemembered                 24 h, 512                how long, and at least how many, closed turns are remembered
//	WithThinkResponses             off                      closed turns feed the turn pipeline
//
// # Cost
//
// Text is written to the table once, in parts. For a burst of 10,000 deltas of 32 bytes, the table's changelog gets 1.2 times
// the bytes of their text under processors.AtLeastOnce, and 1.4 times under processors.ExactlyOnce. For sparse deltas under
// ExactlyOnce, set
// processors.WithCommitInterval(100 * time.Millisecond).
package group
