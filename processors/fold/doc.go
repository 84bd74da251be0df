// Package fold turns the canonical event stream of an agent's turn into batch messages. A batch is the fold of the events
// that were streamed and nothing else, so batch and stream cannot differ.
//
// Event is one event, Folder folds events one by one with a Snapshot at any time, Fold folds all of them, Log keeps them
// small until they are folded, Trim cuts a batch to its trailing unit. The result has the same keys and nulls
// as that of the reference implementation, Agenta's Python SDK. Payloads keep their bytes, and integers of any size are
// exact. A malformed event is left out and counted; Strict rejects it instead. Packages below bridge translate ACP updates,
// Anthropic's streaming events and think-responses into events. testdata/turns.jsonl is a corpus of turns for
// implementations in other languages.
//
// Package group folds a stream on Kafka, one batch message per turn.
//
// An interaction_request that has only its type counts as wrapped with its data missing, as in the reference.
package fold
