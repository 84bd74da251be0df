// Package delegationhttp is the HTTP entrance to the delegations of an agent (package delegation): whether they are open, and the results of
// those that have ended, in full. It is for results that are not announced because the call had no origin, and for those that
// were too long to be announced in full.
//
//	{agent}-delegation-status --> Index --> GET /api/delegations
//
// The door does not run the group of package delegation and communicates with it through the topic only, so it can run in any
// process and in any number of processes. An Index reads the topic from its beginning, so a restarted process has the same
// delegations. It keeps a small entry of each, and reads results from the brokers when they are asked for.
//
// # Routes
//
//	GET /api/delegations?session_id=S           the delegations of a session, newest first, without results: limit (100, at
//	                                            most 500)
//	GET /api/delegations/{id}[?session_id=S]    one delegation with its result. The ID is the callback_id that
//	                                            agent_send_async returned
//
//	$ curl 'localhost:8080/api/delegations/call_1?session_id=channel-5f0c'
//	{"callback_id":"call_1","session_id":"channel-5f0c","agent":"front","target":"research","status":"completed",
//	  "result":"42 boats","depth":1,"channel":"slack","started_at":"...","deadline_at":"...","ended_at":"..."}
//
// The status is open, completed, failed, timed_out or cancelled. A delegation that has ended is shown for 24 hours (Config.Lookback).
// IDs are unique in a session only: without session_id, a request for an ID that several sessions of the caller have is answered
// with 409.
//
// # Answers
//
//	200  the delegation, or the list
//	400  a malformed parameter
//	401  no valid credential
//	403  the caller has no right to read
//	404  no such delegation, or one of a session that the caller may not use
//	409  several sessions have a delegation with the ID: name one with session_id
//	429  too many requests of the caller or of the session
//	503  the index has not read the topic yet, or the brokers do not answer: the header Retry-After says when to try again
package delegationhttp
