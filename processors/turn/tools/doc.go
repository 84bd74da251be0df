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
// its deadline, or returns what is no result. Calls are taken at least once: after a crash of the worker a tool can be
// called again for the same tool_use_id, so give Call.Key to whoever acts on it. The turn takes the first result of a
// call, whoever wrote it.
//
// A call is repeated, with the same turntable.id, when the turn crashes between the acknowledgement of the call's record
// and the write of its own row; the result may have been read, and rejected, before the turn knew the call again. So the
// worker answers every repeat:
//
//   - A settled call is not made again. Its result is published again: the same bytes, the same headers. A call that is
//     Pending has no result here, and its repeat writes nothing.
//   - A call that is still running is not made a second time. The repeat waits, and the result is published for it too.
//   - A call whose result is no longer in memory is made again, with the same Call.Key. That is so after a restart, in
//     another worker that the partition has moved to, and beyond the bounds of WithRemembered (24 hours, 10,000 results,
//     64 MiB). The turn takes one of the two results and dead-letters the other.
//
// Without a turntable.id, calls of one session with the same tool_use_id, tool and input are repeats of each other.
//
// A slow tool holds up neither other tools nor other calls of its own, as long as there is room: each tool has so many
// calls at a time (WithConcurrency), and reading goes on up to so many calls ahead of the first unanswered one
// (WithWindow). It never causes a rebalance.
//
// A function that ignores its context keeps its place until it returns; its call is answered at the deadline all the
// same.
package tools
