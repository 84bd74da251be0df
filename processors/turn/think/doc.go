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
// silence. Steps are taken at least once: after a crash of the worker the model can be asked again for the same step, and
// the turn takes the first response.
//
// A step is repeated, with the same turntable.id, when the turn crashes between the acknowledgement of the step's record
// and the write of its own row; the response may have been read, and rejected, before the turn knew the step again. So
// the worker answers every repeat:
//
//   - A settled step is not asked again. Its record, a response or a failure, is published again: the same bytes, the
//     same headers.
//   - A step that is still with the model is not asked a second time. The repeat waits, and the record is published for
//     it too.
//   - A step whose record is no longer in memory is asked again. That is so after a restart, in another worker that the
//     partition has moved to, and beyond the bounds of WithRemembered (24 hours, 10,000 records, 64 MiB). The response
//     has the same turntable.id, but may say something else; the turn takes one of the two and dead-letters the other.
//
// A model that has answered while the brokers are away is not asked again either: the response is kept until they are
// back, also when the partition is taken away and returns meanwhile.
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
