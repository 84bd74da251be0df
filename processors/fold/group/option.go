package group

import "time"

// Option configures Graph. Graph checks the values; its error wraps ErrOption and names the value that is out of
// range.
type Option func(*options)

type options struct {
	rules     Rules
	turnLimit int // 0: derived from the record limit
}

// WithWindow sets how many records a turn holds while an earlier record is missing (default 256, 1 to 10,000), how many
// bytes of them (default 256 KiB), and for how long it waits for the missing record (default 30 s, at least 1 ms). When one
// of these is exceeded, the turn is closed as failed.
func WithWindow(records, bytes int, wait time.Duration) Option {
	return func(o *options) {
		o.rules.WindowCount, o.rules.WindowBytes, o.rules.GapAfter = records, bytes, wait
	}
}

// WithGrace sets how long a turn waits for the terminal record after its last record, once it has a done event (default 5
// s, at least 1 ms). Then the turn is closed with the outcome of its events. While an earlier record is missing, the turn
// waits for that record instead (see WithWindow).
func WithGrace(d time.Duration) Option {
	return func(o *options) { o.rules.Grace = d }
}

// WithSilence sets after how long without a record a turn expires (default 30 minutes, at least 1 ms). Set it longer than
// the longest tool call.
func WithSilence(d time.Duration) Option {
	return func(o *options) { o.rules.Silence = d }
}

// WithOpenTurns sets how many turns of a session can be open (default 16, 1 to 256). A further turn expires the open turn
// that has been idle for the longest time.
func WithOpenTurns(n int) Option {
	return func(o *options) { o.rules.OpenLimit = n }
}

// WithTurnLimit sets how many bytes of events a turn can have (default: the record limit minus 64 KiB, at least 1 KiB). The
// size is that of the turn's Log: deltas are joined and thoughts do not count. A larger turn is closed as failed.
func WithTurnLimit(bytes int) Option {
	return func(o *options) { o.turnLimit = bytes }
}

// WithRecordLimit sets the maximum size of a record that is written, in bytes with key and headers (default 1 MiB, at
// least 128 KiB). It must not exceed the producer's max.request.size and the topics' max.message.bytes. A batch that is
// larger is reduced to the turn's first events and has the state failed.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRemembered sets for how long a session remembers closed turns (default 24 hours, at least 1 ms). count is how many
// closed turns a session remembers for that time at least (default 512, 1 to 1024); it may forget older ones earlier. If
// records of a forgotten turn are redelivered, the turn is opened again.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithThinkResponses makes every complete turn emit a think-response, and every other turn a record on think-dlq, so that
// the turn processor answers the message. A paused turn emits neither, and its step stays open.
//
// The conversation is read from topics.AgentEvent.Request. Set it in one record of every turn. Without it, the turn
// processor assigns the answer to the step that is open when it reads the record, appends it to the stored history, and
// stores the cost of this turn as the cost of the session. A turn that is not complete then emits nothing on think-dlq,
// because it cannot name the message that failed; its step ends by its think timeout.
func WithThinkResponses() Option {
	return func(o *options) { o.rules.ThinkResponses = true }
}

// WithGates makes a run that pauses wait for decisions (see Paused runs in the package documentation): its turn stays open
// without a batch, and each of its open interaction requests becomes a record on gate-requests. The turn waits for the
// outcomes without expiring, until 5 minutes after their deadline (see WithGateTimeout).
//
// The catalog for processors.WithTopics needs topics.WithGates. While turns wait, builds without this option cannot read
// their rows.
func WithGates() Option {
	return func(o *options) { o.rules.Gates = true }
}

// WithGateTimeout sets the deadline of gates: how long after a pause a decision can be made (default 10
// minutes, approval.DefaultTTL; 1 ms to 30 days). Every request carries it as expires_at, so that the gate, and a turn
// processor with turn.WithGates, assume the same deadline. The turn expires 5 minutes later if it has no outcome then, for
// example because no processor of gates is running.
func WithGateTimeout(d time.Duration) Option {
	return func(o *options) { o.rules.GateTimeout = d }
}

func rulesOf(opts []Option) (Rules, error) {
	o := options{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.TurnLimit = o.rules.RecordLimit - recordMargin
	if o.turnLimit != 0 {
		o.rules.TurnLimit = o.turnLimit
	}
	return o.rules, o.rules.validate()
}
