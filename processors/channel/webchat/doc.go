// Package webchat is the channel "webchat": a chat over WebSocket (RFC 6455) for the signed-in users of a site.
//
// Server is an http.Handler that receives, and the adapter.Adapter that answers. Frames are JSON objects in text messages.
//
//	client  {"type":"message","id":"c1","content":"Hello","thread":"t1"}         thread is optional
//	        {"type":"decision","id":"c2","gate_id":"...","approve":true,"thread":"t1"}
//	        {"type":"ping"}
//	server  {"type":"connected","user":"ada"}
//	        {"type":"accepted","id":"c1"}                                         the message is stored
//	        {"type":"message","key":"...","content":"Hi","format":"markdown","thread":"t1","in_reply_to":"c1","index":0,"count":1}
//	        {"type":"ask","key":"...","content":"...","gate_id":"...","tool":"pay","expires_ms":0,...}
//	        {"type":"error","id":"c1","code":"rate_limited","message":"..."}
//	        {"type":"pong"}
//
// A client gives each of its messages an ID that it does not use again, and sends a message without an "accepted" again, on a new
// connection too: the ID makes sure that it counts once. It shows a frame of a key once: frames are repeated after errors.
//
// # Who receives what
//
// Callers are authenticated as at the other doors (package auth), need the rights Write and Read, and auth.Answer for decisions (also /approve),
// and must have a UserID. That ID is the Recipient and the User of their messages, so an answer reaches the sockets of that user
// and no others. The thread is a name that the client chooses: each of a user's threads is a conversation, and so is having none.
// auth.Caller.MayUse is not asked, because callers do not choose session IDs here: a session is derived from the user's ID.
//
// # Users that are not connected
//
// An answer is sent when it was written to at least one of the user's sockets. Without a socket it fails with the reason "recipient
// is not connected" and is retried within the budget of deliveries (package delivery); then it is a dead delivery, which an
// operator can send again. A process knows its own sockets only. If several processes run with one account, an attempt may run
// where the user is not connected, and a later one where the user is: let the load balancer send users to the process that delivers,
// or give deliveries enough attempts.
//
// # Limits
//
// A message has at most 64 KiB. Connections are limited in all and per caller, frames per connection and minute. A client that
// reads too slowly, sends nothing for Config.Idle, or whose credential ends (status 4401), is disconnected. A client should send a ping more
// often than Config.Idle.
package webchat
