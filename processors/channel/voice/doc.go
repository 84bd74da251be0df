// Package voice is the channel "voice": people speak with an agent in calls, and hear its answers.
//
//	telephony, transcriber -> Call.Heard -> adapter.Receiver
//	Calls.Send -> Synthesizer -> Player of the call
//
// It contains the rules of a call: who is called, what is spoken, and when a call has ended. The three services around it are
// interfaces: the program that has the media of a call begins it with Calls.Begin and a Player, passes on what its transcriber
// understood with Call.Heard, and ends it with Call.End. A Synthesizer makes speech of text; most providers offer that as one HTTP
// request with a streamed response.
//
// # Routing
//
// The Recipient of a message's origin is the ID of its call. An answer is spoken in that call and nowhere else: if the call has ended,
// the answer fails for good with the reason "call has ended". It is not sent to another call of the same person, and not as text.
// Calls must have IDs that are never used again, such as those of the telephony platform, because a result may be ready after the
// end of a call.
//
// A call is in the memory of one process. The sink that delivers to an account must run in the process that has its calls: to any
// other process they look ended. With several processes, give each an account of its own.
//
// # Speech
//
// The text is plain. A text over 4096 bytes is refused, not cut: what is missing at its end might change what it says. Synthesis and
// playing together take at most Config.Timeout, and the audio at most Config.MaxAudio bytes. The audio is collected before
// it is played, so a failed synthesis is not heard in part and can be retried. A chunk that was played is not played again.
//
// A transcript that begins with "/" is not a command: the slashes are removed.
package voice
