// Package websocket shows browsers what happens in their sessions: the answers, and every record of the pipeline. It
// speaks FlightDeck's protocol, so FlightDeck's dashboard works with it unchanged.
//
//	message-input, enriched-message-input, ... message-output --> Server --> clients that subscribed to the session
//
// Server is an http.Handler for any path. Its Run method reads the topics.
//
// # The protocol
//
// A client sends one kind of frame. Each replaces the client's previous subscription:
//
//	{"type":"subscribe","session_id":"s"}
//
// The client then receives a chat_response for each answer of the session's agent that has no callback service, and a
// pipeline_event with the complete record for each record of the session:
//
//	{"type":"chat_response","data":{"id":"...","role":"assistant","content":"...","timestamp":"...","cost":0.0022},...}
//	{"type":"pipeline_event","data":{"topic":"...","sessionId":"s",...,"partition":0,"offset":7,"value":{}},...}
//
// Other frames from a client are ignored. Two things are additions to FlightDeck's protocol: both kinds of frame have the
// members event_id and session_id beside data; and there are more kinds, which FlightDeck's dashboard ignores:
// "resumed" (see Resuming), "refused" if auth.Caller.MayUse denies a subscription, and the two of gates.
//
// # Gates
//
// With Config.Gates, clients also see what waits for a person's decision in their session, as the door of package
// processors/gate/gatehttp shows it: after a subscription each gate that is open, then each that is opened or has ended.
//
//	{"type":"gate_opened","data":{"gate_id":"...","status":"pending","tool":"pay","args":{},...},"session_id":"s"}
//	{"type":"gate_closed","data":{"gate_id":"...","status":"approved","outcome":{},...},"session_id":"s"}
//
// These frames have no event_id. They show a state, so they are not resumed: every subscription, also one with
// last_event_id, is followed by the gates that are open now, and a client drops those that it knew before. A gate that ends
// at once, by a rule, has a gate_closed frame only. Decisions are sent to that door; a socket accepts none. If the gates
// cannot be read, the client is disconnected with status 1013.
//
// # Order
//
// The frames of a topic are sent in the order of their offsets, and the frames of a turn in the order of their causes,
// although the server reads each topic independently:
//
//	enriched -> think-response -> tool-use -> tool-use-result -> all-complete -> tool message -> enriched -> ... -> output
//
// A record that arrives before its cause waits for it, at most 500 ms and beside at most 63 others of its session (1 MiB);
// after that it is sent without its cause. So frames are neither lost nor repeated. A record whose cause is never written
// waits that long: the end of a step with a call that timed out or was denied, and the first record of a turn that began before the client
// subscribed. Missed frames that a client receives when it resumes are in the same order, and their other records in that of their timestamps.
//
// The order follows from the header turntable.id. Model workers and tools in other languages do not write it. The calls and
// results of a step are then matched by tool_use_id, and a think-response by the last_input_message that it repeats. A
// think-response without one, or whose last_input_message has no timestamp, does not wait; what the turn writes follows it.
//
// # Who receives what
//
// By default a frame is sent only to the subscribers of its session. It contains no bearer token: members named bearerToken or
// bearer_token are removed at any depth, and a record that cannot be parsed and may contain one is withheld. An output
// whose reply descriptor names a callbackService is delivered by the sink; clients see it as a pipeline_event, not as a
// chat_response.
//
// # Operators
//
// With Config.Operators, a client may subscribe to all sessions. It then receives the new frames of each:
//
//	{"type":"subscribe","session_id":"*"}
//
// Its caller must be authenticated, have the right auth.Control and be allowed to use every session; others receive a
// "refused" frame, also without the option. Tokens are removed as for everyone. Gates are not shown, and nothing is resumed: a last_event_id is
// answered with "complete":false, and the client can resume a single session by an event_id of that session. An operator that is too slow for all
// sessions is disconnected like any client. The frames of up to 4096 sessions without clients are ordered by cause.
//
// FlightDeck's dashboard subscribes to one session and shows the pipeline events of all. Config.EverySessionToEveryone serves
// it: each client sees every session, as in FlightDeck, so it cannot be used with authentication.
//
// # Why outputs are not deliveries here
//
// An output without a callback service has no single receiver: the subscribers of its session may be connected to any
// number of processes, or to none. Every Server therefore reads message-output itself, like the other topics. There is no
// delivery, no receipt and no retry, because a receipt could only describe the connections of one process. A client
// requests what it missed (see Resuming).
//
// To deliver to a service by WebSocket with retries and a receipt, give it the kind topics.KindWebSocket and use Server as
// its sink.Transport. An attempt succeeds when the answer was written to a client of this process, so the sink and the
// clients must be in one process. Do not use this kind for unrouted outputs: clients already receive them from
// message-output.
//
// # Resuming
//
// A client that lost its connection sends the event_id of the last frame that it received:
//
//	{"type":"subscribe","session_id":"s","last_event_id":"..."}
//
// An event_id contains the positions from which the server reads, so it is signed (HMAC-SHA256) for one session, and the
// server reads nothing for an ID that none of its keys has signed. Give all servers of an agent the same keys
// (Config.ResumeKeys). By default each server has a random key, and a client can resume at that server only.
//
// The client receives the frames that it missed, then
// {"type":"resumed","data":{"session_id":"s","complete":true,"replayed":2}}, then new frames. The missed frames come from
// memory if this process sent the last frame and still has it. Otherwise the process reads them from the topics, from the
// positions in the event_id, so a client may reconnect to another process with the same key. If that fails (another key,
// too long ago, too many frames, brokers unavailable), complete is false and reason says why. The part of an event_id before
// the first "~" identifies the event, so that a client can drop repeats. Records that another partitioner put in a different partition are resumed from
// memory only.
//
// # Credentials of browsers
//
// Scripts cannot set the header Authorization of a WebSocket. With an Authenticate function that reads auth.Bearer, as those
// of auth.APIKeys and of package processors/auth/jwt do, a page offers its token as a subprotocol:
//
//	new WebSocket(url, ["turntable", "turntable.bearer." + token])
//
// The server selects the subprotocol turntable, so the token is not in its response. It never reads a token from the URL,
// because proxies log URLs. An Authenticate function of your own can also use a cookie; then limit the origins (Config.Origins),
// because browsers send cookies with the requests of every page.
//
// # Limits
//
// Clients share two things: the frames in memory (Replay.TotalBytes, Replay.Sessions) and the reads from the topics, of which
// 8 run at the same time. At a limit of the memory, the caller whose sessions use the most loses its oldest frames. Callers
// that wait for a read take turns. A caller is auth.Caller.Name, or the IP address for callers without a name.
//
// The number of clients, the size of the frames that they send, and the frames queued for them have limits. A client that
// reads too slowly is disconnected with status 1013 and a reason. A client that does not answer pings is disconnected. A
// client whose credential has expired is disconnected with status 4401. When Run ends, all clients are disconnected with
// status 1001.
package websocket
