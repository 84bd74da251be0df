// Package compact has the worker that summarizes the oldest exchanges of long sessions (turn.Config.Compaction). It calls a
// Compactor, which usually asks a model.
//
//	{agent}-compaction-request --> Worker --> Compactor --> {agent}-compaction-result
//
// The worker writes one result for each request: a summary, or an error, with which the turn continues without a summary. A
// repeated request gets the same result again. Before a worker handles a redelivered request, it looks for the result on
// its topic, so the compactor is called again only for an interrupted call. The result of a repeated request is remembered
// for 24 h, 10,000 results and 64 MiB.
//
// The context of a call ends at the deadline of the turn, and with its turn (ErrTurnEnded): a request of a turn that has
// ended is skipped. A compactor that ignores its context still counts toward Config.Concurrency; the turn does not wait for
// it.
package compact
