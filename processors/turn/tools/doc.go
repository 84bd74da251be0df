// Package tools runs tools that are Go functions. It reads the calls of an agent from tool-use and writes their results to
// tool-use-result.
//
//	{agent}-tool-use --> Worker --> func(ctx, Call) (any, error) --> {agent}-tool-use-result
//	                        |
//	                        +--> Pending: nothing; the result comes through the callback door, with the call's token
//
// # Guarantees
//
// Every call to a registered tool gets a result: the value that the function returns, its error, or an error if it panics,
// exceeds its deadline or returns a value that cannot be a result. Calls are processed at least once: after a crash of the
// worker, a tool can be called again for the same tool_use_id, so pass Call.Key as idempotency key to the systems that the
// tool changes. The turn takes the first result of a call, from any writer.
//
// A call is repeated, with the same turntable.id, when the turn crashes between the acknowledgement of the call's record
// and the write of its own row; the turn may have read and rejected the result before it made the call again. So the
// worker answers every repeat:
//
//   - A settled call does not run the tool again. Its result is published again with the same bytes and headers. A Pending
//     call has no result here, so its repeat writes nothing.
//   - While the tool is still running, the repeat waits; the result is then published again for it.
//   - If the worker that settled the call ended before it acknowledged the call's record, that record is delivered again.
//     The next worker looks for the result on its topic, and for the turn's output, before it calls the tool. If one is
//     there, nothing is written. The result of a call without a turntable.id cannot be found.
//   - If the turn may have written the call before a crash, the call has the header topics.HeaderAnswersFrom. A worker that
//     does not remember the call looks for its result from that offset on, and publishes it again.
//   - The tool is called again, with the same Call.Key, for a call that was interrupted. The turn takes one of the two
//     results and dead-letters the other.
//
// The context of a tool ends when its turn has its output: after a cancellation, a purge, a deadline or an answer
// (ErrTurnEnded). A call of such a turn is skipped, and nothing is written for it. For this, Run follows message-output: it
// knows the turns that have ended since it started.
//
// Without a turntable.id, calls of one session with the same tool_use_id, tool and input are repeats of each other.
//
// A slow tool delays neither other tools nor other calls of the same tool within two limits: the calls of one tool that run
// at a time (Config.Concurrency, Config.ToolConcurrency), and the calls that wait (Config.Waiting). Config.Limits adds limits by tenant
// or other keys, also per minute. Sessions take turns: however many calls of a session wait, at most two of them begin
// before the next call of another session. A slow tool never causes a rebalance. Calls are read by package worker, from a
// share group where the brokers offer them. A share group delivers a call a limited number of times; if all of them were
// interrupted, the call is answered with an error.
//
// The call of a function that ignores its context is still answered at the deadline. A second later the function is logged
// by name and no longer counts toward the limits, so that other calls can run. At most ten times Config.Concurrency such
// functions are left running; then no further call of the tool begins until one of them returns.
package tools
