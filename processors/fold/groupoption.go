package fold

import "time"

// GroupOption changes a rule of Graph. Values are checked there; the error names the one that is out of range.
type GroupOption func(*groupOptions)

type groupOptions struct {
	rules     Rules
	turnLimit int // 0: derived from the record limit
}

// WithWindow sets how many records, and how many bytes of them, a turn holds that came ahead of a missing one (default
// 256 records, 256 KiB), and for how long it waits for that (default 30 s). Then the turn is closed as failed.
func WithWindow(records, bytes int, wait time.Duration) GroupOption {
	return func(o *groupOptions) {
		o.rules.WindowCount, o.rules.WindowBytes, o.rules.GapAfter = records, bytes, wait
	}
}

// WithGrace sets how long after a done event, or a later one, the terminal record is waited for (default 5 s). Without
// one the turn then ends as its events say. While a record is known to be missing, the turn waits for that first (see
// WithWindow).
func WithGrace(d time.Duration) GroupOption {
	return func(o *groupOptions) { o.rules.Grace = d }
}

// WithSilence sets after how long without a record a turn expires (default 30 minutes): longer than any tool is quiet.
func WithSilence(d time.Duration) GroupOption {
	return func(o *groupOptions) { o.rules.Silence = d }
}

// WithOpenTurns sets how many turns of a session may be open (default 16). One more expires that which was silent for
// the longest time.
func WithOpenTurns(n int) GroupOption {
	return func(o *groupOptions) { o.rules.OpenLimit = n }
}

// WithTurnLimit sets how many bytes of events a turn may have (default: the record limit less 64 KiB), counted as they
// are kept: joined deltas, no thoughts. A larger turn is closed as failed.
func WithTurnLimit(bytes int) GroupOption {
	return func(o *groupOptions) { o.turnLimit = bytes }
}

// WithRecordLimit sets the size in bytes, key and headers included, up to which a record is written (default 1 MiB, at
// least 128 KiB). It must not exceed the producer's max.request.size and the topics' max.message.bytes. A batch that is
// larger is cut and closed as failed.
func WithRecordLimit(bytes int) GroupOption {
	return func(o *groupOptions) { o.rules.RecordLimit = bytes }
}

// WithRemembered sets for how long a session remembers turns that have their batch, and how many at least (default 24
// hours, 512, at most 1024). A turn that is forgotten begins anew when its records come again.
func WithRemembered(d time.Duration, count int) GroupOption {
	return func(o *groupOptions) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithThinkResponses has every turn that was completed go on as a think-response, and one that was not as a record of
// think-dlq, so that the turn processor answers whoever asked. A turn that paused gives neither: its step waits. The
// conversation comes from topics.AgentEvent.Request. Put it into one record of every turn: without it the session's
// history begins anew with this answer, the answer counts for the step that is open when the turn processor reads it, and
// a turn that was not completed writes nothing to think-dlq, because it cannot name the message that it failed on. Such a
// step ends by its think timeout.
func WithThinkResponses() GroupOption {
	return func(o *groupOptions) { o.rules.ThinkResponses = true }
}

func rulesOf(opts []GroupOption) (Rules, error) {
	o := groupOptions{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.TurnLimit = o.rules.RecordLimit - recordMargin
	if o.turnLimit != 0 {
		o.rules.TurnLimit = o.turnLimit
	}
	return o.rules, o.rules.validate()
}
