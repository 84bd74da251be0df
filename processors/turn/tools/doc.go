// Package tools runs tools that are Go functions: it takes the calls of an agent from tool-use and writes their results
// to tool-use-result.
//
//	{agent}-tool-use --> Worker --> func(ctx, Call) (any, error) --> {agent}-tool-use-result
//	                        |
//	                        +--> Pending: nothing; the result comes through the callback door, with the call's token
//
// # What it promises
//
// Every call to a named tool gets a result: what the function returns, its error, or an error where it panics, is over
// its deadline, or returns what is no result. Calls are taken at least once: a crash, or a partition that goes to
// another worker, can call a tool again for the same tool_use_id, so give Call.Key to whoever acts on it. Repeats that
// one worker sees are dropped. The turn takes the first result of a call, whoever wrote it.
//
// A slow tool holds up neither other tools nor other calls of its own, as long as there is room: each tool has so many
// calls at a time (WithConcurrency), and reading goes on up to so many calls ahead of the first unanswered one
// (WithWindow). It never causes a rebalance.
//
// A function that ignores its context keeps its place until it returns; its call is answered at the deadline all the
// same.
package tools
