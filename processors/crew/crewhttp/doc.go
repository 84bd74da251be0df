// Package crewhttp is the entrance of people to crews of coding agents: a WebSocket that shows what happens, and HTTP requests that
// ask for it, in the shapes of FlightDeck (github.com/justinchuby/flightdeck).
//
//	tables of agents, crews, repositories --> Index --+--> GET /api/...
//	{agent}-crew-events --------------------> Index --+--> WebSocket /ws
//	POST, DELETE /api/... --> Handler --> inputs of the three groups, {agent}-gate-decisions
//
// The door runs no group and communicates with them through topics only, so it can run in any number of processes. It shows what
// is committed. A request is answered with 202 when the brokers have its record; what comes of it follows as events.
//
// # The WebSocket
//
// Frames are flat JSON objects with the member type. The first frame is the state:
//
//	{"type":"init","agents":[...],"locks":[...],"systemPaused":false,"seqs":{"agent/5f0c...":17,...}}
//
// It has the newest tool calls of each agent, 2 MiB of all agents together; GET /agents/{id} has all. An index with more agents
// than it shows adds "incomplete":true.
//
// Then come the events of the topic of events as they are: every frame has a subject, such as agent/ID, crew/ID or
// repository/NAME, and a seq, which rises by one with each event of the subject. seqs has the last seq that the state includes.
// A client may get an event that the state includes, and drops frames whose seq it has. resume_gap {subject} after the state
// means that events between the state and the next one are missing. agent:text is sent only to those who subscribe to it; it has
// the text of up to 100 ms, in one frame from fromSeq to seq, and comes before later events of its agent. So a client without a
// subscription sees gaps where text was. agent:data {agentId, data} follows each agent:text with the same text, for clients that show
// output as it is. It has no seq and is not repeated.
//
// A client sends:
//
//	{"type":"subscribe","agentId":"A"}           the text of an agent: agent:buffer {agentId, data, seq} with the end of what it
//	                                             wrote, then agent:text; without agentId that of all agents, without a buffer
//	{"type":"unsubscribe","agentId":"A"}         the opposite; it does not except an agent from all
//	{"type":"subscribe-project","projectId":"P"} only events of the project, or of none, after a new init; null for all
//	{"type":"resume","from":{"agent/A":17}}      the events of each subject after a seq, also those that were sent since the
//	                                             connection was opened, then {"type":"resumed"}; resume_gap {subject} if some are gone
//	                                             or if they are too many bytes with those of the subjects before (Config.QueueBytes)
//	{"type":"input","agentId":"A","text":"..."}  text for the agent as it is, before what else waits for it
//	{"type":"permission_response","agentId":"A","approved":true,"requestId":"G","optionId":"O","alwaysAllow":false}
//	                                             an answer; without requestId to the agent's newest request
//	{"type":"queue_open"}, {"type":"queue_closed"} open decisions do not confirm themselves while the person looks at them
//	{"type":"resize",...}                        no effect
//
// resume and subscribe-project wait until the client has read what an earlier one was answered with. Later frames of the first
// four types wait behind them, in their order. Other frames are handled immediately. A client with more waiting frames than 16 of
// the maximum size (Config.FrameLimit) is disconnected with status 1013.
//
// Frames that are no JSON objects and frames that cannot be carried out are answered with {"type":"error","message":"..."};
// unknown types are ignored.
//
// # Requests
//
// The paths follow Config.Prefix.
//
//	POST   /crews                        {crewId?, host, cwd, repository?, projectId?, projectName?}: where a crew works
//	GET    /crews, /roles
//	POST   /crews/{id}/message           {text, mode?, attachments?}: to all running agents
//	POST   /agents                       {crewId, roleId, task?, context?, parentId?, model?, provider?, cwd?, sessionId?,
//	                                     autopilot?, noRestart?}: a new agent
//	GET    /agents, /agents/{id}         with crewId, projectId
//	DELETE /agents/{id}                  {reason?}; also POST /agents/{id}/terminate
//	POST   /agents/{id}/message          {text, mode?: queue or interrupt, attachments?: [{mimeType, data}]}
//	POST   /agents/{id}/input            {text}
//	POST   /agents/{id}/interrupt        {text?}
//	POST   /agents/{id}/restart
//	POST   /agents/{id}/autopilot        {on}
//	POST   /agents/{id}/permission       {approved, requestId, optionId?, reason?, alwaysAllow?, scope?, argsSha256?}
//	GET    /agents/{id}/permissions/{requestId}   the whole of an open request
//	GET    /coordination/locks           with crewId, projectId
//	POST   /coordination/locks           {agentId, filePath, reason?, ttlMs?}
//	DELETE /coordination/locks/{path}    {agentId?, repository?, force?}, also as parameters; slashes of the path are %2F
//	GET    /coordination/activity        with agentId, type, limit: newest first
//	GET    /decisions                    with agentId, status, needsConfirmation
//	POST   /decisions/{id}/confirm       or reject, or dismiss
//	POST   /decisions/batch              {action, ids}
//	GET    /groups, /groups/{name}/messages
//	POST   /groups/{name}/messages       {content, crewId?}
//	POST   /groups/{name}/messages/{id}/reactions          {emoji}; DELETE .../reactions/{emoji}
//	GET    /bus/messages                 with agentId, limit: oldest first
//	GET    /delegations, /tasks
//	POST   /tool-auto-allow/{tool}       {roleId}: a standing approval for the agents of a role; DELETE ends it
//	POST   /system/pause, /system/resume {crewId?}: all crews of the caller, or one
//
// A repeat of a request with the same caller, Idempotency-Key and body has no further effect, in every process. Its answer has the
// same IDs. Bodies have no other members. Standing approvals are listed by the door of package processors/gate/gatehttp.
//
// The answer to a permission request waits for the outcome (Config.DecisionWait): 200 if it is the caller's, 409 if another one
// stands, 202 if it is not known yet, 404 for an unknown request, 422 for an option that the request does not have, or to allow a
// dangerous request always.
//
// Events and rows show requests of more than 2 KiB by their beginning, with truncated, bytes, argsSha256 and the url of the whole.
// Such a request is approved only by a caller that has read the url in this process, or that repeats argsSha256: other approvals get
// 409 with the reason and the url, or a frame with the error, and the request stays open. Another digest gets 412.
//
// What an event or an answer of this door has named in the last 5 seconds may be used at once: a request waits up to 5 seconds until
// the groups have written the row of the agent or the crew.
//
// Errors are JSON objects with the member "error":
//
//	400  the body, a parameter or the Idempotency-Key is not usable
//	401  the caller is not authenticated
//	403  the caller does not have the right, or may not use the crew that it named, or the origin of the page or the name with
//	     which it addresses the door is not trusted
//	404  there is no such agent, crew, lock, decision, group or request, or the caller may not use its crew
//	409  the agent has ended, the decision is resolved otherwise, or a name is ambiguous
//	413  the body is larger than Config.BodyLimit, or its record is too large for the brokers
//	415  the content type is not JSON
//	429  more than 50 messages in 10 s, 30 new agents in a minute, or the limits of Config.Limits; Retry-After says when to repeat it
//	500  the brokers did not acknowledge the record within 30 s; it may be written later
//	503  the index has not read the tables, or there are too many requests at a time
//
// # Security
//
// Every request and socket is authenticated (Config.Authenticate), by the header Authorization, the cookie flightdeck-token, a
// subprotocol (auth.Subprotocol) or, for sockets, the parameter token, which proxies may log. A socket without a credential is
// closed with status 4401. auth.Caller.MayUse is asked about the ID of a crew. What belongs to no crew is for callers that may
// use every crew. To look needs the right auth.Read, to write messages and spawn agents auth.Write, to answer permission requests
// and decisions auth.Answer, and the rest auth.Control. An approval for all agents of a role also needs every crew.
//
// Without Config.Authenticate, everyone who reaches the door has all rights, but not the pages that people visit: whatever the
// authentication, a request or socket of a page of another origin gets 403 (Config.Origins), a body must be JSON, which a page cannot
// send to another origin without asking first, and a door at a loopback address accepts only the names of this machine
// (Config.Hosts).
//
// What looks like a secret is replaced in shown texts (Redact), except in permission requests: a person sees exactly what is
// asked. A secret that an agent writes in two parts, more than 100 ms apart, is not recognized.
//
// # Shutdown
//
// A Handler starts no goroutine that outlives its requests and is not closed. End the context of Index.Run first, which
// disconnects all sockets with status 1001; then stop the http.Server with Shutdown, then close the publisher.
package crewhttp
