// Package latency aggregates how long tool calls take: for each tool the number of calls and errors, and the quantiles of the
// latencies.
//
//	turn --> tool-use-latency --> one tool's row --> the group's table --> Table, in any process
//	          (key: tool name)      (Graph)                                (Follow)
//
// turn.Config.Latencies writes tool-use-latency: one record for each call that was handed out, with the time until its result. A call
// that failed or timed out has the status "error" and counts too. The topics are created with topics.WithLatencies. Graph has
// the group "{agent}-latencies"; its topics have the agent's name in front. A Table has the aggregates of all tools in one
// process. Aggregates can be merged: of several tools, or of several agents.
//
// # Accuracy
//
// A row has a sketch (DDSketch), not the latencies. A quantile is at most 1 % above or below the exact one; see Accuracy. Count,
// Errors, Sum and Longest are exact. Merging loses nothing: the merged aggregate is the one that has all calls.
//
//	a record                             what happens
//	latency_ms is 0                      counts exactly as 0
//	latency_ms is more than 30 days      counts as 30 days; see Longest
//	latency_ms is negative               dead-lettered: a clock was set back
//	tool_name is not its key, or has
//	more than 256 bytes                  dead-lettered
//	is a tombstone, or invalid           dead-lettered
//
// Dead letters are on the topic "{agent}-latencies-dlq". An aggregate is one of all time since the row began, not of the last
// minutes. To see a period, keep an aggregate and compare with a later one.
//
// # Guarantees
//
// Each record counts once. It is identified by its turntable.id, which is the same in each repeat, and each row remembers the
// IDs of its last records (Config.RememberFor). A record that is repeated outside of that window counts twice.
//
// # Sizes
//
// A row has about 40 bytes after its first call. It grows to about 19 kB: at most 1085 bins, and 12 bytes for each ID that it
// remembers. The row is written with each record.
//
// A model can invent names of tools. Each name that is handed out has a row of its own until it has had no call for 30 days
// (Config.Expiry). The number of rows is not limited: at most one of about 50 bytes for each call in that time. A Table keeps
// 10,000 tools. Let only known tools be called if that is too much: a worker's unknown tools still have an error result, and a
// latency.
package latency
