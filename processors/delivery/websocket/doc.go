// Package websocket shows browsers what happens in their sessions: the answers, and every record of the pipeline. It
// speaks FlightDeck's protocol, so that FlightDeck's dashboard works against it unchanged.
//
//	message-input, enriched-message-input, ... message-output --> Server --> the clients that subscribed to the session
//
// Server is an http.Handler, to be mounted anywhere; it looks at no path. Its Run reads the topics.
//
// # The protocol
//
// A client sends one kind of frame, which takes the place of the one before it:
//
//	{"type":"subscribe","session_id":"s"}
//
// and gets an answer whenever the session's agent gives one that has no other place to go, and an event for each
// record of the session, whole:
//
//	{"type":"chat_response","data":{"id":"...","role":"assistant","content":"...","timestamp":"...","cost":0.0022},...}
//	{"type":"pipeline_event","data":{"topic":"...","sessionId":"s",...,"partition":0,"offset":7,"value":{}},...}
//
// Anything else that a client sends is ignored. What is ours besides FlightDeck's: both kinds carry event_id and
// session_id beside data, and there are two kinds of frame that FlightDeck's dashboard passes over: "resumed", and
// "refused" where Authenticate's Caller may not subscribe.
//
// # Who gets what
//
// A frame reaches the subscribers of its session and nobody else, and holds no bearer token: members named
// bearerToken or bearer_token are left out at any depth, and what looks like having one and cannot be read is
// withheld. An output whose reply descriptor names a callbackService is the sink's; it is shown as an event, not as
// an answer.
//
// # Why outputs are no deliveries here
//
// An output without a callback has nobody in particular to go to: each of any number of processes has some of the
// clients, or there is none. So every Server reads message-output for itself, as it reads the other topics, and
// there is no delivery, no receipt and no retry: a receipt could only say what one process' sockets did. What a
// client missed it asks for, see below. A service that is to be delivered to by WebSocket, with retries and a
// receipt, is one of topics.KindWebSocket, and Server is the sink.Transport for it: an attempt succeeds when the
// answer is written to a client of this process, so that sink and clients have to be in one process. Do not make it
// the delivery of unrouted outputs: these come by message-output already.
//
// # Coming back
//
// A client that lost its connection sends the event_id of the last frame that it got:
//
//	{"type":"subscribe","session_id":"s","last_event_id":"..."}
//
// and gets the frames that it missed, then
// {"type":"resumed","data":{"session_id":"s","complete":true,"replayed":2}}, then what comes. They come from memory
// where this process sent that frame and remembers it, else from the topics, by the positions that stand in the id:
// so it may come back to another process. Where that cannot be had (too long ago, too much, brokers away), complete
// is false and reason says why. What stands in an event_id before the "~" names the event: a client that has seen it
// drops it. Records that a foreign partitioner put elsewhere come back from memory only.
//
// # Bounds
//
// Everything that a client can make grow has a limit: clients, the frames it sends, what waits for it. A client that
// is too slow is dropped with status 1013 and a reason, not waited for; one that does not answer pings is cut off.
// When Run ends, all are closed with 1001.
package websocket
