package turn

import "time"

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
