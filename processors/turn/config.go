package turn

import (
	"errors"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of Graph and NewImporter about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("turn: invalid configuration")

// Policy determines what happens to a message that arrives while a turn of its session runs.
type Policy string

// The policies.
const (
	// Queue lets the message wait for its turn.
	Queue Policy = "queue"
	// Reject answers the message immediately with an error output, code busy.
	Reject Policy = "reject"
	// Supersede is Queue, but a think step that has been silent for Config.SupersedeAfter while a message waits times out.
	Supersede Policy = "supersede"
)

// Config configures Graph. Fields that are zero have their defaults. What a pointer points to must not be modified afterwards. The
// topics that a field needs must exist, with as many partitions as the others.
type Config struct {
	// ThinkTimeout is how long a step waits for its think-response before the turn ends in an error output, code think_timeout
	// (default 10 minutes, at least 1 ms).
	ThinkTimeout time.Duration
	// ToolTimeout is how long the tools of a step may take before the open calls get error results (default 5 minutes, at least 1 ms).
	ToolTimeout time.Duration
	// RouteTTL is how long a reply route can be used (default 24 hours, at least 1 ms).
	RouteTTL time.Duration
	// RememberFor is for how long a session remembers finished calls, request ids and applied records (default 24 hours, at least 1 ms),
	// and RememberCount how many of each (default 1000, at least 1). After that, a duplicate is treated as new. Use at least the
	// lifetime of callback tokens.
	RememberFor   time.Duration
	RememberCount int
	// Policy says what happens to messages that arrive while a turn of their session runs (default Queue, or Supersede with
	// SupersedeAfter), and QueueLimit how many may wait (default 16, at least 1). With Queue, a message over the limit gets an error
	// output, code queue_full.
	Policy     Policy
	QueueLimit int
	// SupersedeAfter lets a waiting message end a think step whose model has not responded for this long (default: off; at least 1 ms):
	// the step's turn ends in an error output, code think_timeout, and the waiting message gets its turn. Use it with model workers
	// that drop a step when the model fails, without writing to think-dlq: the session is then blocked only for this time and not for
	// the think timeout. Steps without a waiting message keep the think timeout. It has no effect under the policies Queue and Reject,
	// nor if it is above ThinkTimeout.
	SupersedeAfter time.Duration
	// HistoryLimit is the longest history that the model is sent. A turn that begins with a longer history hides the oldest exchanges,
	// down to half of the limit: they are no longer sent to the model. An exchange is a user's message and all that follows it up to
	// the next one; tool calls stay with their results, and the newest exchange always stays. Hidden exchanges stay in the table until
	// the session is purged or its row has no room for them. Each time, a line is logged and Metrics.HistoryHidden is called. While a
	// turn runs, its conversation can exceed the limit. Workers repeat the conversation in their response, so half of their largest
	// record is a good limit.
	HistoryLimit HistoryLimit
	// Compaction lets a compactor summarize the exchanges that HistoryLimit would hide (default off). A turn that begins with a history
	// over its limit writes them to compaction-request and waits for the record of compaction-result that repeats the request's
	// compaction_id; then the summary takes their place. If there is no summary in time, if the compactor reports an error, or if the
	// summary is blank or too long, the exchanges are hidden without one. Package compact has the worker. It needs
	// topics.WithCompaction. The cost of a summary is added to the session's cost.
	Compaction *Compaction
	// MaxSteps is how often a turn may ask the model (default 100, at least 1). If the response to the last step asks for tools, they
	// are not called: the turn ends in an error output, code too_many_steps.
	MaxSteps int
	// MaxCost is the maximum cost of a session in dollars (default 0: no limit). A session that has reached it does not call the model
	// or tools again: the turn ends in an error output, code over_budget, and so do later turns until the session is purged or a
	// tombstone on think-request-response clears its cost. The limit is checked before each step and before tools are called, so a
	// session can exceed it by the cost of one step. Costs are those that workers report: a model without a price costs nothing. The
	// larger of the cost of the session that a response reports and the sum of the known costs of its calls counts; a lower or negative
	// cost that is reported later appears in the outputs, but does not lower what counts.
	MaxCost float64
	// RecordLimit is the maximum size in bytes of a record that is written, including key and headers (default 1 MiB, at least 128
	// KiB). It must not exceed the producer's max.request.size. Where a topic's max.message.bytes is lower, that is its limit.
	RecordLimit int
	// RowLimit is the maximum size in bytes of a session's row, including its parts, the references to them and its deadline (default:
	// RecordLimit less 64 KiB; at least 64 KiB, at most RecordLimit). A stored row that exceeds a lowered limit is written only if it
	// has not grown, or if its deadline is due.
	RowLimit int
	// Delivery declares that processors/delivery delivers the outputs (default off). The reply descriptor of an output then has a
	// route_id in place of its bearer token; the token stays in the reply-to record. FlightDeck's own consumer of message-output cannot
	// use such a descriptor. A tombstone on reply-to withdraws the oldest open route without a request_id, unless processors/delivery
	// wrote the tombstone or it belongs to a route that was used before Delivery was switched on.
	Delivery bool
	// Approval makes tool calls wait for a person's approval (default off). The policy is evaluated for each call that the model asks
	// for: a call that it does not allow is not handed out, but requested on gate-requests, and waits for its record of gate-outcomes.
	// The other calls of the same response run. An approved call is handed out with the arguments of the outcome, and the policy is
	// evaluated again before that. Any other outcome ends the call with an error result, whose reason is denied, approval_timed_out or
	// cancelled. Clocks: a waiting call times out with its gate; ToolTimeout begins at the approval. If the gate has no outcome 5
	// minutes after its deadline, the call ends as timed out. If the policy is in shadow mode, all calls are handed out, and what it
	// would have asked is only recorded.
	//
	// It needs topics.WithGates. Package gate has the group that decides. Without it, every call that the policy does not allow times
	// out. Before Approval is removed, let the open gates end: their calls time out, because the group then reads no outcomes.
	Approval *approval.Policy
	// Gates stops the clock of a think step (ThinkTimeout, SupersedeAfter) while an agent behind it asks a person (default off): while a
	// gate of gate-requests that names the step's turn is open. The gate names it by turn_id, which is the turn's ID or the request_id
	// of its message. The clock runs again when all these gates have their outcomes, or 5 minutes after their deadlines (30 days if the
	// request states none). A turn that ends, for example because it is cancelled, withdraws them. It needs topics.WithGates.
	Gates bool
	// SupersedeGates lets a message that arrives while a gate of its session's turn is open end the gate (default off: the message waits
	// for its turn, and the gate for its decision). The gates are withdrawn with the cause superseded, the calls that wait for them end
	// in error results, reason cancelled, and the turn continues. The message waits for its turn. It requires Approval or Gates.
	SupersedeGates bool
	// Channels lets messages of processors/delegation say where their outputs go (default off: such messages are answered as others). The
	// metadata members topics.MetaOrigin, MetaPrompt (at most 16 KiB), MetaTask and MetaResult of a message are read; a message with an
	// invalid one gets an error output, code invalid_message. All but MetaResult are removed from the message that the model and the
	// history get. The output, an error output too, goes to the origin, or to the agent that delegated the task, and takes no reply
	// route. The records of tool calls and of gate requests have the origin, and each step of the turn has the prompt. A message with
	// MetaResult waits for its turn under every Policy and does not count towards QueueLimit. Writers of message-input are trusted: a
	// door must drop reserved members of its callers, see topics.Reserved.
	Channels bool
	// Events makes each turn write its part of one event stream to agent-events, which processors/fold folds into one batch message, and
	// from which POST /invoke (package fold/invoke) answers. It needs topics.WithEvents. By default, a turn does so if the first
	// response is that of a think.Worker: always if its model is a think.Stream, and otherwise if the catalog of processors.WithTopics
	// has topics.WithEvents. Other workers may write a stream of their own. Events is for workers that write none.
	//
	//	record                 written by            when
	//	step_start             the turn              a step begins; that of the first step names the request
	//	the reply's events     the model's worker    see think.Stream; the turn writes them for a worker that wrote none
	//	step_end               the turn              the response has tool calls; it names the attempt at the step that counts
	//	interaction_request    the turn              a call waits for its approval; interaction_response follows with the outcome
	//	tool_result            the turn              a call has ended
	//	result                 the turn              the turn has ended: the last record, exactly one
	//
	// The result has the stop reason of the last response and the usage of all steps, or "cancelled", or the error of the output with
	// its code. Do not combine it with workers that write a whole stream of their own for each step, such as an agent behind
	// fold.Config.ThinkResponses. Upgrade the fold groups and the doors that read agent-events before the turns, and the turns before
	// the workers: older readers take the workers' attempts for new attempts at the whole turn, and drop the records and the end that
	// the turn writes.
	Events bool
	// OrderedOutputs acknowledges the outputs of a turn's step one after the other (default off): tool-use-all-complete, then the tool
	// message, then enriched-message-input. Readers of several topics that show records in order of arrival, as FlightDeck's dashboard
	// does, then see them in that order. It costs two more round trips to the brokers for each step with tools. Under exactly once, only
	// readers of uncommitted records, the default of most clients, see that order: the outputs are committed together. Otherwise, the
	// timestamps of the outputs still have that order. See processors.Context.OrderOutputs.
	OrderedOutputs bool
	// BothSpellings writes the records for the model so that the model workers of FlightDeck's Python SDK can read them too (default
	// off): enriched-message-input has userId, latestInput and memoirContext beside user_id, latest_input and memoir_context, and each
	// entry of a tool message has its result a second time, as JSON text in the member content. A record that would be too large with
	// both has only the first, and no texts: such a worker cannot read it.
	BothSpellings bool
	// SourceAgent is the source_agent of outputs whose model names none in the metadata of its reply, and of error outputs (default:
	// the agent's name). FlightDeck writes "agent-1".
	SourceAgent string
	// IdlePurge removes a session when it has had no open turn, route or held record, and no event, for this long (default 0: never; at
	// least 1 ms).
	IdlePurge time.Duration
	// Memoir ends sessions by inactivity and gives the model a memory of its user (default off). It needs topics.WithMemoir and the
	// group of package memoir.
	//
	// A session ends when it has had no record for Memoir.After and no turn, gate, reply route or held record is open. In one step it
	// writes a record of session-end, writes the conversation to memoir-sessions, with what was hidden from the model, and forgets
	// it. The next message begins a new conversation. The cost stays until the session has been idle for RememberFor. A session
	// whose last turn ended before Memoir was set ends after its next turn.
	//
	// Each step for the model goes to memoir-lookups instead of enriched-message-input. The group of package memoir adds the user's
	// memory and passes the step on; without it no step reaches a model. The conversation goes to the memory of the user of its
	// messages. If messages of several users were answered in it, its memory is that of topics.SharedMemoryKey, which no step reads.
	Memoir *Memoir
	// Costs writes what each answer of a model and each summary cost to model-costs (default off): also that of an answer which no step
	// waits for, because it was paid for. The user of the message is charged, whatever user the answer names. Package memoir/cost has
	// the groups that add the costs up. It needs topics.WithCosts.
	Costs bool
	// Budgets limit what the model calls of a user and of a tenant may cost (default: no limits); MaxCost is the limit of a session. A
	// turn of a user or tenant that has reached its budget does not call the model or tools again: it ends in an error output, code
	// over_budget. It implies Costs. The spending so far is read from the topic spending, which the groups of package memoir/cost write.
	// It is some milliseconds old, and calls that are under way are not in it, so a budget can be exceeded by what the calls cost that
	// began before it was reached. All callers to whom a door gives FlightDeck's placeholder for users without an ID share one budget,
	// and a message without a user ID has none.
	Budgets Budgets
	// Tenants says to which tenant a user belongs (default: none): it is called with the user's ID and returns the ID of the tenant, or
	// "" if the user has none. It must be pure: the same for equal arguments, in all processes. See TenantBefore.
	Tenants func(user string) string
	// Latencies writes how long each tool call took to tool-use-latency (default off). Package memoir/latency has the group that
	// aggregates them. It needs topics.WithLatencies.
	Latencies bool
	// Metrics are callbacks for metrics (default: none).
	Metrics Metrics
}

// HistoryLimit is the longest history that the model is sent. A zero field has its default.
type HistoryLimit struct {
	// Bytes is its size as JSON (default: half of the row limit). A token of a model is about four bytes of English text.
	Bytes int
	// Messages is its number of messages, those of the model and of tools included (default: any number).
	Messages int
}

// Compaction configures the compactor. Zero fields have the defaults that are named here.
type Compaction struct {
	// Timeout is how long a turn waits for a summary (default 2 minutes, at least 1 ms).
	Timeout time.Duration
	// Keep is how many exchanges stay after the summary, at most (default 8). Half of the history limit bounds them too.
	Keep int
}

// Memoir configures the ends of sessions and the memories of users. Zero fields have the defaults that are named here.
type Memoir struct {
	// After is how long a session may have no record before it ends (default 30 minutes, at least 1 ms). The time at which a
	// record is read counts. A session does not end while a record may be unread that was written before its end was due, as
	// after a downtime: the end is then postponed until the inputs of the partition are read, for at most 10 minutes from when it
	// was due, or from when the processor began to read the partition if that is later.
	After time.Duration
	// ContextBytes is the longest memory of a user in bytes, for which the records for the model keep room (default 64 KiB, at
	// least 1 KiB, at most half of the record limit). It must be that of the group of the memories, memoir.Config.Limit.
	ContextBytes int
}

// Budget is what the model calls of one user, or of one tenant, may cost, in dollars. A zero field is no limit. Days and months
// are those of UTC.
type Budget struct {
	Total, Day, Month float64
}

// Budgets are those of users and tenants.
type Budgets struct {
	// User is the budget of each user, and Tenant that of each tenant.
	User, Tenant Budget
}

// usesGates reports whether the group writes to gate-requests and reads gate-outcomes.
func (c *Config) usesGates() bool { return c.Approval != nil || c.Gates }

// hasBudgets reports whether the spending of users or tenants is limited.
func (c *Config) hasBudgets() bool { return c.Budgets != Budgets{} }

const (
	// rowMargin is how much smaller a row must be than a record: space for the key, the record's frame and a later deadline.
	rowMargin  = 64 << 10
	minHistory = 1 << 10 // minimum of HistoryLimit.Bytes
	minRecord  = envoption.MinRecordLimit
)

// complete gives fields that are zero their defaults. Its error is that of Graph.
func (c *Config) complete() error {
	var check bounds.Check
	bounds.AtLeast(&check, "ThinkTimeout", &c.ThinkTimeout, 10*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "ToolTimeout", &c.ToolTimeout, 5*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RouteTTL", &c.RouteTTL, topics.DefaultRouteTTL, time.Millisecond)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(&check, "RememberCount", &c.RememberCount, 1000, 1)
	bounds.AtLeast(&check, "SupersedeAfter", &c.SupersedeAfter, 0, time.Millisecond)
	switch {
	case c.Policy == "" && c.SupersedeAfter != 0:
		c.Policy = Supersede
	case c.Policy == "":
		c.Policy = Queue
	case c.Policy == Supersede && c.SupersedeAfter == 0:
		check.Wrong("SupersedeAfter", "is 0, want a time for the policy %s", Supersede)
	case c.Policy != Queue && c.Policy != Reject && c.Policy != Supersede:
		check.Wrong("Policy", "is %q, want %q, %q or %q", c.Policy, Queue, Reject, Supersede)
	}
	bounds.AtLeast(&check, "QueueLimit", &c.QueueLimit, 16, 1)
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord)
	bounds.Between(&check, "RowLimit", &c.RowLimit, c.RecordLimit-rowMargin, minRecord-rowMargin, c.RecordLimit)
	bounds.Between(&check, "HistoryLimit.Bytes", &c.HistoryLimit.Bytes, 0, minHistory, c.RowLimit)
	bounds.AtLeast(&check, "HistoryLimit.Messages", &c.HistoryLimit.Messages, 0, 1)
	if c.Compaction != nil {
		compaction := *c.Compaction
		bounds.AtLeast(&check, "Compaction.Timeout", &compaction.Timeout, 2*time.Minute, time.Millisecond)
		bounds.AtLeast(&check, "Compaction.Keep", &compaction.Keep, 8, 1)
		c.Compaction = &compaction
	}
	bounds.AtLeast(&check, "MaxSteps", &c.MaxSteps, 100, 1)
	checkCost(&check, "MaxCost", c.MaxCost)
	bounds.AtLeast(&check, "IdlePurge", &c.IdlePurge, 0, time.Millisecond)
	if c.Memoir != nil {
		memoir := *c.Memoir
		bounds.AtLeast(&check, "Memoir.After", &memoir.After, 30*time.Minute, time.Millisecond)
		bounds.Between(&check, "Memoir.ContextBytes", &memoir.ContextBytes, 64<<10, 1<<10, c.RecordLimit/2/spellings(c.BothSpellings))
		c.Memoir = &memoir
	}
	for name, of := range map[string]Budget{"Budgets.User": c.Budgets.User, "Budgets.Tenant": c.Budgets.Tenant} {
		checkCost(&check, name+".Total", of.Total)
		checkCost(&check, name+".Day", of.Day)
		checkCost(&check, name+".Month", of.Month)
	}
	if c.Budgets.Tenant != (Budget{}) && c.Tenants == nil {
		check.Wrong("Tenants", "is nil, but tenants have budgets")
	}
	c.Costs = c.Costs || c.hasBudgets()
	if c.SupersedeGates && !c.usesGates() {
		check.Wrong("SupersedeGates", "needs Approval or Gates")
	}
	if c.Approval != nil {
		if err := c.Approval.Validate(); err != nil {
			check.Wrong("Approval", "is invalid: %w", err)
		}
	}
	return check.Err(ErrConfig)
}

// checkCost checks a limit in dollars, of which 0 is none.
func checkCost(check *bounds.Check, name string, dollars float64) {
	if !(dollars >= 0 && dollars <= math.MaxFloat64) { // NaN too
		check.Wrong(name, "is %v, want 0 (none) or more", dollars)
	}
}
