// Package cost adds up what model calls cost: per session, user and tenant.
//
//	turn --> model-costs --> one session's row --> session-cost   (compacted: the latest totals of each session)
//	                          (Graph)         |
//	                                          +--> scope-costs --> one scope's row --> spending --> turn, for its budgets
//	                                                                (SpendingGraph)
//
// All topics are named "{agent}-...". model-costs and session-cost are keyed by session, scope-costs and spending by scope: a
// user (topics.UserScope) or a tenant (topics.TenantScope). There are two groups, because the sessions of a user are spread over
// all partitions. turn.Config.Costs writes model-costs: one record for each answer of a model and each summary that was paid for.
// turn.Config.Budgets reads spending and stops calling the model when a user or a tenant has reached its budget. The topics are
// created with topics.WithCosts.
//
// # Guarantees
//
// The totals of a session are the sums over its distinct records of model-costs, and those of a user or tenant are the sums over
// its distinct records in all sessions. A record is identified by its turntable.id, which is the same in each repeat, and each row
// remembers the IDs of its last records (Config.RememberFor), so neither a repeat by the turn nor a crash of a group counts
// twice. A record that is repeated outside of that window does.
//
// Sums are exact: an Amount is a decimal number, and a sum does not depend on the order of the records. What is written is the
// float64 that is nearest to the exact sum.
//
//	a record                            what happens
//	has no cost_usd                     its calls and tokens count; a session without any cost has estimated_cost_usd null
//	has a negative number               dead-lettered
//	costs more than 1,000,000 dollars   dead-lettered
//	has no user, or no tenant           it is not in a total of users, or of tenants
//	has a time after now, or none       it counts at the time at which it is read
//	has a session or scope that is
//	not its key                         dead-lettered
//	is a tombstone, or invalid          dead-lettered
//
// Dead letters are on the topics "{group}-dlq". Tokens and calls saturate: session-cost at the largest 32-bit number, because
// FlightDeck's readers have 32 bits for them, and spending at the largest 64-bit number.
//
// # Days and months
//
// Spending has the sums of the newest day and month, in UTC, by the time of the records (topics.ModelCost.AtMS). Days only go
// forward: a record of an earlier day counts to the month if it is the newest one, and to the total. A reader that checks a budget
// of today must treat the sum of another day as 0.
//
// # Sizes
//
// The row of a session or scope has up to 100 bytes, and 12 for each ID that it remembers: 12 kB at most by default. IDs are
// forgotten 24 hours after the last record. The totals themselves are kept without limit of time, like the records of
// session-cost and spending: a budget in total needs them.
package cost
