package turn

import (
	"time"

	"github.com/turntable-streams/turntable/processors/approval"
)

// Option sets a rule of Graph. Graph validates the values and returns an error, which wraps ErrOption, for the first one
// that is out of range.
type Option func(*options)

type options struct {
	rules    Rules
	rowLimit int // 0: derived from the record limit
	metrics  Metrics
	ordered  bool // the outputs of a step are acknowledged one after the other
}

// WithThinkTimeout sets how long a step waits for its think-response before the turn ends in an error output, code
// think_timeout (default 10 minutes, at least 1 ms).
func WithThinkTimeout(d time.Duration) Option {
	return func(o *options) { o.rules.ThinkTimeout = d }
}

// WithToolTimeout sets how long the tools of a step may take before the open calls get error results (default 5 minutes,
// at least 1 ms).
func WithToolTimeout(d time.Duration) Option {
	return func(o *options) { o.rules.ToolTimeout = d }
}

// WithRouteTTL sets how long a reply route can be used (default 24 hours, at least 1 ms).
func WithRouteTTL(d time.Duration) Option {
	return func(o *options) { o.rules.RouteTTL = d }
}

// WithRemembered sets for how long a session remembers finished calls, request ids and applied records, and how many of
// each (default 24 hours, 1000; at least 1 ms, 1). After that, a duplicate is treated as new. Use at least the lifetime
// of callback tokens.
func WithRemembered(d time.Duration, count int) Option {
	return func(o *options) { o.rules.RememberFor, o.rules.RememberCount = d, count }
}

// WithQueue sets what happens to messages that arrive while a turn of their session runs, and how many may wait (default
// Queue, 16; at least 1). With Queue, a message over the limit gets an error output, code queue_full.
func WithQueue(policy Policy, limit int) Option {
	return func(o *options) { o.rules.Policy, o.rules.QueueLimit = policy, limit }
}

// WithSupersede lets a waiting message end a think step whose model has not responded for this long (default: off; at least
// 1 ms): the step's turn ends in an error output, code think_timeout, and the waiting message gets its turn. Use it with
// model workers that drop a step when the model fails, without writing to think-dlq: the session is then blocked only for
// this time and not for the think timeout. Steps without a waiting message keep the think timeout. It sets the policy to
// Supersede; the limit of WithQueue applies.
func WithSupersede(after time.Duration) Option {
	return func(o *options) { o.rules.Policy, o.rules.SupersedeAfter = Supersede, after }
}

// WithHistoryLimit sets the longest history that the model is sent (default: half of the row limit in bytes, any number of
// messages; a zero field is the default; at least 1 KiB and at most the row limit). A turn that begins with a longer
// history hides the oldest exchanges, down to half of the limit: they are no longer sent to the model. An exchange is a
// user's message and all that follows it up to the next one; tool calls stay with their results, and the newest exchange
// always stays. Hidden exchanges stay in the table until the session is purged or its row has no room for them. Each time,
// a line is logged and the metric is called, see WithMetrics. While a turn runs, its conversation can exceed the limit.
// Workers repeat the conversation in their response, so half of their largest record is a good limit.
func WithHistoryLimit(limit HistoryLimit) Option {
	return func(o *options) { o.rules.History = limit }
}

// WithCompaction lets a compactor summarize the exchanges that WithHistoryLimit would hide (default off). A turn that
// begins with a history over its limit writes them to compaction-request and waits for the record of compaction-result that
// repeats the request's compaction_id; then the summary takes their place. If there is no summary in time, if the compactor
// reports an error, or if the summary is blank or too long, the exchanges are hidden without one. Package compact has the
// worker. The topics must exist (topics.WithCompaction), with as many partitions as the others. The cost of a summary is
// added to the session's cost.
func WithCompaction(c Compaction) Option {
	c = c.withDefaults()
	return func(o *options) { o.rules.Compaction = &c }
}

// WithMaxSteps sets how often a turn may ask the model (default 100, at least 1). If the response to the last step asks for
// tools, they are not called: the turn ends in an error output, code too_many_steps.
func WithMaxSteps(steps int) Option {
	return func(o *options) { o.rules.MaxSteps = steps }
}

// WithMaxCost sets the maximum cost of a session in dollars (default 0: no limit). A session that has reached it does not
// call the model or tools again: the turn ends in an error output, code over_budget, and so do later turns until the
// session is purged or a tombstone on think-request-response clears its cost. The limit is checked before each step and
// before tools are called, so a session can exceed it by the cost of one step. Costs are those that workers report: a model
// without a price costs nothing. The larger of the cost of the session that a response reports and the sum of the known costs of
// its calls counts; a lower or negative cost that is reported later appears in the outputs, but does not lower what counts.
func WithMaxCost(dollars float64) Option {
	return func(o *options) { o.rules.MaxCost = dollars }
}

// WithRecordLimit sets the maximum size in bytes of a record that is written, including key and headers (default 1 MiB, at
// least 128 KiB). It must not exceed the producer's max.request.size. Where a topic's max.message.bytes is
// lower, that is its limit.
func WithRecordLimit(bytes int) Option {
	return func(o *options) { o.rules.RecordLimit = bytes }
}

// WithRowLimit sets the maximum size in bytes of a session's row (default: the record limit less 64 KiB; at least 64 KiB,
// at most the record limit; 0 is the default).
func WithRowLimit(bytes int) Option {
	return func(o *options) { o.rowLimit = bytes }
}

// WithDelivery declares that processors/delivery delivers the outputs (default off). The reply descriptor of an output then
// has a route_id in place of its bearer token; the token stays in the reply-to record. FlightDeck's own consumer of
// message-output cannot use such a descriptor. A tombstone on reply-to withdraws the oldest open route without a
// request_id, unless processors/delivery wrote the tombstone or it belongs to a route that was used before this option was
// switched on.
func WithDelivery() Option {
	return func(o *options) { o.rules.Delivery = true }
}

// WithApproval makes tool calls wait for a person's approval (default off). The policy is evaluated for each call that the
// model asks for: a call that it does not allow is not handed out, but requested on gate-requests, and waits for its record
// of gate-outcomes. The other calls of the same response run. An approved call is handed out with the arguments of the
// outcome, and the policy is evaluated again before that. Any other outcome ends the call with an error result, whose reason
// is denied, approval_timed_out or cancelled. Clocks: a waiting call times out with its gate; WithToolTimeout begins at the
// approval. If the gate has no outcome 5 minutes after its deadline, the call ends as timed out. If the policy is in shadow
// mode, all calls are handed out, and what it would have asked is only recorded.
//
// The topics must exist (topics.WithGates), with as many partitions as the others. Package gate has the group that decides.
// Without it, every call that the policy does not allow times out. Before the option is removed, let the open gates end: their
// calls time out, because the group then reads no outcomes.
func WithApproval(policy approval.Policy) Option {
	return func(o *options) { o.rules.Approval = &policy }
}

// WithGates stops the clock of a think step (WithThinkTimeout, WithSupersede) while an agent behind it asks a person (default
// off): while a gate of gate-requests that names the step's turn is open. The gate names it by turn_id, which is the turn's ID
// or the request_id of its message. The clock runs again when all these gates have their outcomes, or 5 minutes after their
// deadlines (30 days if the request states none). A turn that ends, for example because it is cancelled, withdraws them. The topics must exist
// (topics.WithGates), with as many partitions as the others.
func WithGates() Option {
	return func(o *options) { o.rules.Gates = true }
}

// WithSupersedeGates lets a message that arrives while a gate of its session's turn is open end the gate (default off: the
// message waits for its turn, and the gate for its decision). The gates are withdrawn with the cause superseded, the calls that
// wait for them end in error results, reason cancelled, and the turn continues. The message waits for its turn.
// It requires WithApproval or WithGates.
func WithSupersedeGates() Option {
	return func(o *options) { o.rules.SupersedeGates = true }
}

// WithChannels lets messages of processors/channel say where their outputs go (default off: such messages are answered as
// others). The metadata members topics.MetaOrigin, MetaPrompt (at most 16 KiB), MetaTask and MetaResult of a message are read;
// a message with an invalid one gets an error output, code invalid_message. All but MetaResult are removed from the message
// that the model and the history get. The output, an error output too, goes to the origin, or to the agent that delegated the
// task, and takes no reply route. The records of tool calls and of gate requests have the origin, and each step of the turn has
// the prompt. A message with MetaResult waits for its turn under every policy of WithQueue and does not count towards its
// limit. Writers of message-input are trusted: a door must drop reserved members of its callers, see topics.Reserved.
func WithChannels() Option {
	return func(o *options) { o.rules.Channels = true }
}

// WithEvents makes each turn write its part of one event stream to agent-events, which processors/fold folds into one batch
// message, and from which POST /invoke (package fold/invoke) answers. The topics must exist (topics.WithEvents). By default, a
// turn does so if the first response is that of a think.Worker: always if its model is a think.Stream, and otherwise if the
// catalog of processors.WithTopics has topics.WithEvents. Other workers may write a stream of their own. WithEvents is for workers
// that write none.
//
//	record                 written by            when
//	step_start             the turn              a step begins; that of the first step names the request
//	the reply's events     the model's worker    see think.Stream; the turn writes them for a worker that wrote none
//	step_end               the turn              the response has tool calls; it names the attempt at the step that counts
//	interaction_request    the turn              a call waits for its approval; interaction_response follows with the outcome
//	tool_result            the turn              a call has ended
//	result                 the turn              the turn has ended: the last record, exactly one
//
// The result has the stop reason of the last response and the usage of all steps, or "cancelled", or the error of the output
// with its code. Do not combine it with workers that write a whole stream of their own for each step, such as an agent behind
// group.Config.ThinkResponses. Upgrade the fold groups and the doors that read agent-events before the turns, and the turns before
// the workers: older readers take the workers' attempts for new attempts at the whole turn, and drop the records and the end that
// the turn writes.
func WithEvents() Option {
	return func(o *options) { o.rules.Events = true }
}

// WithIdlePurge removes a session when it has had no open turn, route or held record, and no event, for this long
// (default 0: never; negative values are invalid).
func WithIdlePurge(d time.Duration) Option {
	return func(o *options) { o.rules.IdleAfter = d }
}

func optionsOf(opts []Option) (options, error) {
	o := options{rules: DefaultRules()}
	for _, opt := range opts {
		opt(&o)
	}
	o.rules.RowLimit = o.rules.RecordLimit - rowMargin
	if o.rowLimit != 0 {
		o.rules.RowLimit = o.rowLimit
	}
	return o, o.rules.validate()
}
