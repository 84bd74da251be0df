// Package folder turns the event stream of an agent's turn into a batch: the list of the turn's messages, with its stop
// reason. A batch is computed only from the streamed events, so batch and stream cannot differ. The events are the
// canonical events of the reference implementation, Agenta's Python SDK, and a batch has the same keys and nulls as its
// batches.
//
//   - Event is one event.
//   - Folder folds events one by one and gives a Snapshot at any time; Fold folds all events of a turn.
//   - Log is a compact form in which events are stored until they are folded.
//   - Trim cuts the messages of a batch to the last one and, if that is a tool's, those that belong to it.
//
// Payloads keep their bytes, and integers of any size are exact. A malformed event is omitted and counted; with Strict it
// is an error. Packages bridge and bridge/acp translate Anthropic's streaming events, think-responses and updates of the Agent
// Client Protocol (ACP) into events. testdata/turns.jsonl is a corpus of turns for implementations in other languages.
//
// Package fold folds a stream on Kafka, one batch message per turn. The stream of a turn contains all its steps, tool calls and
// results under the turn's ID, and one terminal record. It has one writer, the agent's runner; or, with processors/turn, the turn
// and the workers of its model write it together:
//
//	turn                         model's worker                 fold
//	step_start (step 1) -------> thought, message, tool_call    events of the attempt that step_end names
//	step_end, tool_result ...
//	step_start (step 2) -------> message
//	result ----------------------------------------------------> batch message
//
// An interaction_request event that has only its type is read as an event whose data is missing, as in the reference
// implementation.
package folder
