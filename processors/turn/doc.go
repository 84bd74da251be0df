// Package turn runs the turns of an agent: a user message goes in, a model and its tools are asked, one answer comes
// out.
//
//	message-input ----------+                          +--> enriched-message-input --> the model's worker
//	think-request-response -+                          |
//	think-dlq --------------+     one session's row    +--> tool-use ----------------> tool workers
//	tool-use-result --------+--> (state, event, now) --+--> tool-use-dlq
//	tool-use-dlq -----------+     -> (state, effects)  +--> tool-use-all-complete
//	reply-to ---------------+                          +--> message-input (the tool message, for readers)
//	session-control --------+                          +--> message-output
//	deadlines --------------+                          +--> {group}-dlq (records that cannot be used, and why)
//
// All topics are keyed by session and named "{agent}-...". The wire format is FlightDeck's; see package topics.
//
// # What it promises
//
// Every accepted message ends in exactly one record on message-output: an answer, or an error that says why. Every tool
// call ends in exactly one result: the tool's, or a synthesised error. Late, duplicate and foreign records change
// nothing; they go to the dead-letter topic with the reason. A turn that waits always has a deadline. A worker's record
// that is read before the step it answers, which a crash can bring about, is held until that step opens.
//
// Every output has a turntable.id header, "{turn}/{step}/{kind}/{index}", which is derived from what caused it: a
// repeat after a crash has the same id. The output of a turn has the same id however the turn ends.
//
// # A turn
//
// A session has one turn at a time; further messages wait in order. A turn is a series of think steps. A step asks the
// model and waits for its think-response (Rules.ThinkTimeout). A response that asks for tools opens one call for each,
// and waits for their results (Rules.ToolTimeout); with the last of them the next step begins. A response that ends the
// turn is the answer, and what it echoes is the session's history from then on. A turn that ends in an error leaves the
// history as it was before.
//
// # How it is built
//
// Apply is the whole processor: a pure function over the row, without Kafka, clock or I/O. State is the row, one
// Protobuf message a session; Event and Effect are what comes in and goes out, as data. Graph binds them to topics.
// Bytes of conversations pass through as they came: they are spliced, never decoded and written anew.
//
// # Doors and tools
//
// Doors are http.Handlers that let messages in, and the results of asynchronous tools; package token has the tokens
// that those need, package tools the workers for tools that are Go functions. They meet the processor in topics only,
// and run in its process or in others.
//
// # Sizes
//
// Everything in a row is bounded, by count and in bytes (Rules.RowLimit), and nothing larger than Rules.RecordLimit is
// written. What a row has no room for is given up in this order: older memories, held records, waiting messages, the
// result that has just arrived (the model is told), and last the turn, in an error output; see room.go. History, routes
// and request IDs are not given up. What a tool message has no room for is given up in this order: the copies of results
// in its metadata, the largest results themselves, and last the turn.
package turn
