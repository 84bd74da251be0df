// Package transport sends the answers of an agent to the channels that their questions came from. It is a transport of the sink:
// the sink reads the deliveries, and writes a receipt for each attempt, with what was sent.
//
//	{agent}-deliveries --> sink.Sink --> Transport --> adapter.Adapter --> platform
//	                          |
//	                          +--> {agent}-delivery-receipts  (Report)
//
// An answer goes to the origin in its delivery and nowhere else. An account that is not in the settings any more, or has no
// adapter, refuses it: the delivery is dead and says why.
//
// # Rendering
//
// A text gets the prefix that the account's settings ask for, is rendered in the format of the account or of the platform, and
// is split into chunks within the platform's limit. A text of which nothing is visible is not sent, and neither are errors if the
// account or the platform wants none: the receipt says that it was suppressed, and why. An output that is an error is sent as a
// short text for its code, which has nothing of the error's own message. Spoken texts are not split: one over the limit is refused.
//
// # Chunks
//
// Chunks are sent one after the other, and messages of one conversation too. If a chunk fails, the report of the attempt says what was
// sent, and the next attempt continues with that chunk. It renders the text with the format, prefix and limit of the
// first attempt, whatever the settings say by then. If the result is not the same text, because another build renders it, the
// message is sent again from its first chunk, with other keys. An attempt whose lease ends soon stops after a chunk, and the next
// one continues.
//
// Every chunk is sent at least once. It has the same key in every attempt, by which platforms that support it deduplicate. Without
// that, a chunk can be repeated if the platform's response was lost, and all chunks of an attempt if the process died before
// its receipt was written. A process remembers what it sent of the last 4096 messages, so a record that is read twice, or
// a receipt that was late, repeats nothing in the same process.
//
// A report never says that a person got a message, only that the platform accepted it: StatusSent.
package transport
