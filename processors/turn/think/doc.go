// Package think runs the model of an agent: it takes the steps of turns from enriched-message-input, asks a model, and
// writes what it said to think-request-response.
//
//	{agent}-enriched-message-input --> Worker --> Model --> {agent}-think-request-response
//	                                     |
//	                                     +--> {agent}-think-dlq, where the model failed
//
// # What it promises
//
// Every step gets a record: a response, or a failure, which ends the turn in an error output. Nothing is dropped in
// silence. Steps are taken at least once: a crash, or a partition that goes to another worker, can ask the model again
// for the same step, and the turn takes the first response. A step that comes again to the same worker is asked once,
// by its turntable.id.
//
// A slow model holds up no other session, as long as there is room (WithConcurrency, WithWindow), and never causes a
// rebalance.
//
// # What it writes
//
// History and input pass through byte for byte, so that the next step reads what this one did. Text without calls is a
// message for each block, with the text as content; with calls it is one message whose content are the blocks. The
// session's cost is what it was and what this step cost. A model without prices has no cost of its own.
package think
