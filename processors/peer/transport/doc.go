// Package transport sends the tasks that an agent delegates to other instances. It is a transport of the sink: the sink reads
// the attempts that package peer asks for, and writes a receipt for each, with what the peer answered.
//
//	{agent}-peer-attempts --> sink.Sink --> Transport --POST /api/peer/delegate--> peer
//	          |                  |              |         GET /.well-known/hybridclaw-peer.json
//	          |                  |              |         GET, DELETE /api/peer/tasks/{id}
//	          +-- Transport.Run --------------->+  (cancels)
//	                             |
//	                             +--> {agent}-peer-receipts  (what the peer answered)
//
// # An attempt
//
// One deadline covers the attempt from dialing to the last byte of the body. The request asks for an asynchronous answer: a peer
// that answers 202 is polled until its task has ended or the deadline has passed, and one that does not know the header answers
// when its run has ended. A peer is known by its agent card, which is read again after a minute. A peer that is idempotent is
// told the time that the task has left, so that a run can outlive an attempt and the next one gets its reply; another peer is
// told the time of the attempt.
//
//	peer                                       code              final  reached
//	not configured                             unknown_peer      yes    no
//	agent is not in its list                   agent_forbidden   yes    no
//	no connection, no name, no TLS             unreachable       no     no
//	connection lost                            unreachable       no     yes
//	deadline                                   timeout           no     if there was a connection
//	429, 503                                   peer_busy         no     no
//	other 4xx                                  peer_refused      yes    no
//	3xx, which is not followed                 peer_refused      yes    yes
//	other 5xx                                  peer_refused      no     yes
//	2xx that is no reply to this task          malformed_reply   yes    yes
//	202, then 404                              outcome_unknown   yes    yes
//	202, then another 4xx than 429             peer_refused      yes    yes
//	202, then removed from the configuration   unknown_peer      yes    yes
//	2xx with a reply, whatever its status      -                 -      yes
//
// Reached says that the peer may run the task. While a task is polled, 429, 5xx and lost connections are waited for.
//
// # What is not sent twice
//
// An attempt after one that may have reached the peer is sent only to a peer whose card says that it is idempotent. Otherwise it
// ends as outcome_unknown. If the card cannot be read, the attempt fails and can be retried. This also applies to an attempt
// whose record was handled before. A record that the group wrote twice, because it died before its own row was written, is
// recognized within a process: the second one gets the answer of the first. A peer that is not idempotent can get a task twice
// if the two records are handled by different processes, or by one that was restarted in between. The group does not write
// records twice with processors.ExactlyOnce.
//
// # Cancels
//
// A cancel ends the running attempt of its task, and then tells a peer whose card says that tasks can be cancelled. Run passes
// cancels to every process, because the attempt may run in another one than the cancel. Telling the peer is tried once: a peer
// that is away ends the run at its deadline. A process remembers a cancel for 15 minutes and does not make earlier
// attempts of the task that it reads later. A session that was purged and delegates a task with the same ID again within this time
// gets the task back as cancelled.
//
// # Secrets
//
// Requests go only to the base URLs of the configuration: redirects and proxies of the environment are not used, and a location
// that a peer returns must be under the peer's base URL. Errors and failed answers have neither tokens nor addresses. They do have
// the text of a peer's error, at most 4 KiB, in which the peer's token is replaced; a reply is passed on as it is. Bodies of
// responses are bounded: replies by 8 MiB (a result above 768 KiB is cut, with a note), cards by 256 KiB, errors by 64 KiB.
package transport
