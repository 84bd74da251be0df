package gate

import (
	"time"

	"github.com/turntable-streams/turntable/processors/approval"
)

// Option sets a rule of Graph and GrantsGraph. Give both the same options. They check the values and return an error that
// names the first option that is out of range.
type Option func(*options)

type options struct {
	rules    Rules
	rowLimit int // 0: the record limit less rowMargin
}

// WithPolicy sets the policy of the gates (default: the zero Policy, which asks for every request and waits for 10 minutes).
// It is evaluated when a request arrives, and again for the arguments that are approved: a rule that denies overrides the
// approval. A policy that allows approves the requests of requesters without a policy. Policy.Shadow has no effect here: the
// requester decides whether it waits.
func WithPolicy(p approval.Policy) Option {
	return func(o *options) { o.rules.Policy = p }
}

// WithGrants sets how long a standing approval counts that a decision gives for the session (default 24 hours) and for the
// agent (default 30 days). Both are at least 1 ms.
func WithGrants(session, agent time.Duration) Option {
	return func(o *options) { o.rules.SessionGrant, o.rules.AgentGrant = session, agent }
}

// WithHold sets how long a decision that arrives before its request waits for it (default 10 minutes, at least 1 ms). After
// that, it is dead-lettered.
func WithHold(d time.Duration) Option {
	return func(o *options) { o.rules.HoldFor = d }
}

// WithRemembered sets for how long ended gates are remembered (default 24 hours), and how many of them beside the 256 whose
// outcome is kept (default 1000). Both are at least 1 ms and 1. After that, a repeated request is a new gate.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithOpenLimit sets how many gates of a session may be open (default 256, at least 1). Further requests are denied,
// with the cause no_room.
func WithOpenLimit(n int) Option {
	return func(o *options) { o.rules.OpenLimit = n }
}

// WithRecordLimit sets the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must
// not exceed the producer's max.request.size and the topics' max.message.bytes.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the largest row of a session in bytes (default: the record limit less 64 KiB; at least 64 KiB, at most
// the record limit).
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

// WithChannels makes the group ask people on the channels that requests come from (topics.GateRequest.Channel): it writes the
// questions, and what became of them, to "{agent}-channel-messages", and accepts the decisions that people write there. The
// topic must exist (topics.WithChannels), and delivery.WithChannels must read it. Otherwise no one is asked on a channel, and
// the decisions of channels are dead-lettered.
func WithChannels() Option {
	return func(o *options) { o.rules.Channels = true }
}

func rulesOf(agent string, opts []Option) (Rules, error) {
	o := options{rules: defaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.Agent = agent
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	return o.rules, o.rules.validate()
}
