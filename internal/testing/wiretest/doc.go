// Package wiretest tests a turn pipeline from outside. It plays all programs around it (user, model worker, tool worker,
// writers of reply routes and of session control) and judges the pipeline by its topics alone.
//
// It reads and writes plain JSON and uses no codec of this project, so that an error in a codec shows as a violation. It
// needs only bootstrap servers and an agent name, so that any pipeline can be tested: a process that is killed a hundred
// times, four partitions on three brokers, or the Java application.
//
//   - [Driver] writes messages and runs the workers. What these do is part of the records ([Plan]), so that they keep
//     no state, are deterministic, and are at-least-once like real workers.
//   - [Oracle] reads every topic from its start, keeps digests (never bodies), and checks the promises: [Report].
//   - [Load] runs plain turns in a closed loop; [Attack] runs a seeded scenario with repeats, late, misplaced and
//     malformed records, failures and silent workers.
//
// The model tests of processors/turn have an oracle of their own. It predicts the effects of every single event of the pure
// transition, and sees rows, but not Kafka: no repeats, restarts or rebalances. This package's oracle sees only topics, and
// judges what must hold for them in any order and after any fault. Neither can do the other's work.
//
// All waits end when the expected records are read, or with the caller's context.
package wiretest
