package turn

import "time"

// Memoir configures WithMemoir. Zero fields have the defaults that are named here.
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

const (
	defaultMemoirAfter   = 30 * time.Minute
	defaultMemoirContext = 64 << 10
)

func (m Memoir) withDefaults() Memoir {
	if m.After == 0 {
		m.After = defaultMemoirAfter
	}
	if m.ContextBytes == 0 {
		m.ContextBytes = defaultMemoirContext
	}
	return m
}

// Budget is what the model calls of one user, or of one tenant, may cost, in dollars. A zero field is no limit. Days and months
// are those of UTC.
type Budget struct {
	Total, Day, Month float64
}

// Budgets configure WithBudgets.
type Budgets struct {
	// User is the budget of each user, and Tenant that of each tenant.
	User, Tenant Budget
}

// WithMemoir ends sessions by inactivity and gives the model a memory of its user (default off). A session that has had no
// record for Memoir.After ends, unless a turn, a gate, a reply route or a held record is open: in one step it writes a record
// of session-end and the conversation to memoir-sessions, with what was hidden from the model, and forgets the conversation. The next message of the
// session begins a new one. The cost of the session stays until it has been idle for the time of WithRemembered. A session
// whose last turn ended before the option was switched on ends after its next turn. Each step for the model goes to
// memoir-lookups instead of enriched-message-input: package memoir has the group that adds the user's memory and passes it on.
// Without that group no step reaches a model. The conversation goes to the memory of the user of its messages. If messages of
// several users were answered in it, it goes to none of their memories, but to that of topics.SharedMemoryKey, which no step
// reads. The topics must exist (topics.WithMemoir), with as many partitions as the others.
func WithMemoir(m Memoir) Option {
	m = m.withDefaults()
	return func(o *options) { o.rules.Memoir = &m }
}

// WithCosts writes what each answer of a model and each summary cost to model-costs (default off): also that of an answer which
// no step waits for, because it was paid for. The user of the message is charged, whatever user the answer names. Package
// memoir/cost has the groups that add the costs up. The topics must exist (topics.WithCosts), with as many partitions as the
// others.
func WithCosts() Option {
	return func(o *options) { o.rules.Costs = true }
}

// WithBudgets limits what the model calls of a user and of a tenant may cost (default: no limits); WithMaxCost is the limit of
// a session. A turn of a user or tenant that has reached its budget does not call the model or tools again: it ends in an error
// output, code over_budget. It implies WithCosts. The spending so far is read from the topic spending, which the groups of
// package memoir/cost write. It is some milliseconds old, and calls that are under way are not in it, so a budget can be
// exceeded by what the calls cost that began before it was reached. All callers to whom a door gives FlightDeck's placeholder for
// users without an ID share one budget, and a message without a user ID has none.
func WithBudgets(b Budgets) Option {
	return func(o *options) { o.rules.Budgets, o.rules.Costs = b, true }
}

// WithTenants says to which tenant a user belongs (default: none): of is called with the user's ID and returns the ID of the
// tenant, or "" if the user has none. It must be pure: the same for equal arguments, in all processes. See TenantBefore.
func WithTenants(of func(user string) string) Option {
	return func(o *options) { o.rules.TenantOf = of }
}

// WithLatencies writes how long each tool call took to tool-use-latency (default off). Package memoir/latency has the group
// that aggregates them. The topics must exist (topics.WithLatencies).
func WithLatencies() Option {
	return func(o *options) { o.rules.Latencies = true }
}

// WithBothSpellings writes the records for the model so that the model workers of FlightDeck's Python SDK can read them too
// (default off): enriched-message-input has userId, latestInput and memoirContext beside user_id, latest_input and
// memoir_context, and each entry of a tool message has its result a second time, as JSON text in the member content. A record
// that would be too large with both has only the first, and no texts: such a worker cannot read it.
func WithBothSpellings() Option {
	return func(o *options) { o.rules.BothSpellings = true }
}
