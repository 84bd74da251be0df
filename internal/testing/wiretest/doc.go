// Package wiretest plays everybody around the turn pipeline, from outside: user, model worker, tool worker, writer of
// reply routes and of session control; and it judges what the pipeline did from the topics alone.
//
// It speaks the plain wire format and knows no codec of this project, so an error in a codec shows as a violation and
// not as agreement. It needs bootstrap servers and an agent name; who runs the pipeline behind them is none of its
// business: a process that is killed a hundred times, four partitions on three brokers, or the Java application.
//
//   - [Driver] writes and answers. What the model and the tools do travels in the records themselves ([Plan]), so the
//     workers keep no state, are deterministic, and are at-least-once like real ones.
//   - [Oracle] reads every topic from its start, keeps digests (never bodies), and checks the promises: [Report].
//   - [Load] runs plain turns in a closed loop; [Attack] runs a seeded scenario with every mischief there is.
//
// All waiting is driven by consumed records and ends with the caller's context.
package wiretest
