// Package peer delegates tasks between instances: an agent of one instance sends a task to another instance over HTTP and gets
// a reply, or the reason why there is none. Both instances keep an audit of it. Every task ends in exactly one outcome, also if
// processes of both instances are killed meanwhile.
//
//	dispatcher                                                      receiver
//
//	turn    -- tool-use ------+                                    door (package peerhttp)
//	door    -- peer-commands -+                                      |  peer-commands        ^ peer-replies
//	                          v                                      v                       |
//	                    Graph: one row per session           Graph: one row per session -----+
//	                      |  peer-attempts     ^ peer-receipts       |                ^
//	                      v                    |                     v                |
//	                    sink (package transport) -- HTTP --> door   message-input --> turn -- message-output
//	                      |
//	        tool-use-result --> turn
//
//	both: Graph -- peer-events --> ChainGraph -- peer-audit
//
// Graph also reads session-control (an operator cancels or purges). With Config.Gates it asks for approvals on gate-requests, closes
// their gates on gate-decisions, and reads gate-requests and gate-outcomes. It cancels turns on session-control, and passes the
// outcome of a run that names a callback to the deliveries, on peer-callbacks.
//
// An instance that delegates, and accepts tasks too, runs the same graphs once. Topics are named "{agent}-..." and keyed by
// session; peer-events is keyed by instance and peer-audit by task.
//
// # The life of a task
//
// The model of the dispatcher calls the tool delegate_to_peer (Tool returns its definition), or a program posts to the door's
// proxy. Graph checks the configuration (Settings), writes the audit record sent, and asks the sink for an attempt. An
// attempt is one HTTP request with one deadline. If the peer is offline or busy, the next attempt waits for a deadline of the
// row: no goroutine sleeps, and other tasks are not delayed. The task ends with the peer's reply, or with send_failed at its
// own deadline (Config.TaskTime). The turn gets the tool's result, in which the peer's text is bounded and marked as untrusted.
//
// The receiver's door accepts a task by writing it to peer-commands. It holds no state: Graph stores the task in the row of a
// session that is derived from the token's label and the task ID, and starts an ordinary turn in that session. Output, error,
// cancellation, deadline, or a gate that waits for a person end the task, and its reply is written to peer-replies, where every
// door sees it. The reply is kept for Config.RememberFor, so a repeated request gets it again from any process.
//
// The session of a peer's task is an ordinary session of the turn, which keeps its history: use turn.Config.IdlePurge, or the history
// stays, and a task ID that is used again after Config.RememberFor continues in it. A call of the tool that is read after its turn has
// ended, because the group is far behind, is still sent.
//
// # Guarantees
//
//	                        what can be repeated                             what cannot happen
//	delegated task          -                                                no outcome, or two different ones
//	tool result             the record, with the same ID                     a result of another task, or none
//	attempt                 the HTTP request, with the same task ID, to a    a second request to a peer whose card does not
//	                        peer whose card says idempotent                  say idempotent, after one that may have reached it
//	task of a peer          the record on message-input, with the same ID    a second turn, or another reply to a repeat
//	audit                   its record, with the same hash                   a task with one half of its records
//
// A peer that is not idempotent is not asked again if an attempt may have reached it: the task ends with outcome_unknown.
//
// Outcomes are decided by the order of one topic, peer-commands. What ends a task writes a record there, and the first one that
// is read counts. A crash can repeat it, but not replace it by another.
//
// # Approvals
//
// An approval is never given remotely. A run whose call needs one is rejected: its gate is closed, its turn ends with the code
// parent_cannot_ask, and nothing of the task runs any more. Config.Gates is required. The receiver then lists a request for the same
// call, in the same session, which a person can approve for Config.RememberFor:
//
//	peer                         receiver
//	delegate t-1    ------->     the call waits; the gate is closed
//	rejected        <-------     a request for the call is listed
//	                             a person approves the request: nothing runs
//	delegate t-2    ------->     the call waits, and uses the approval
//	success         <-------     it has run once
//
// The approval is for one call of the same agent and tool, with the same arguments, by a task of the same token label, within
// Config.RememberFor (24 hours). The calls of one step are approved together or not at all. A task that is repeated under its old ID gets
// its old reply. To cancel the rejected task (DELETE) withdraws the request, and the approval if it was not used.
//
// With Config.WaitForApproval, a task that was sent with Prefer: respond-async stays open until the gate has ended instead.
//
// # Beside other tools
//
// The group answers the calls of delegate_to_peer. A worker for other tools must leave them (tools.Config.IgnoreUnknown), or it answers
// that there is no such tool. With turn.Config.Approval, the policy must allow delegate_to_peer, or a person is asked first.
//
// # Who may delegate
//
// Sub-agents (sessions with "--" in their IDs) may delegate only with Config.SubAgents, through the tool and through the proxy. The turns of peers' tasks have it only if
// the token's entry in the configuration names it in allowedTools. A task carries the instances that it has passed: one that
// comes back is refused, and so is one that has passed too many. Peers that drop this path are bounded by deadlines and by the
// number of tasks that a token may have at a time.
//
// # Checks
//
// A receiver refuses a request at the first check that fails:
//
//	before the body   the configuration is enabled            503
//	                  there is a bearer token                 401
//	                  the token is accepted                   401
//	                  there is room for another task          429
//	the body          the body is at most 1,000,000 bytes     413
//	                  it is JSON                              400
//	                  it has the members of a request         400
//	after it          the token may use the agent             403
//	                  the agent exists                        404
//	                  the task has not passed this instance   409
//	                  nor too many others                     403
//
// # Identity of a task
//
// A dispatcher chooses the task ID. To the receiver a task is the pair of the label of the token and the task ID, from which
// Keys and sessions of tasks are derived; the hash of a request tells a repeated request from another one with the same ID.
// Who the dispatcher says it is (parentInstanceId) is only displayed.
//
// # Audit
//
// Each instance writes its own records (topics.PeerAudit) to its own topic {agent}-peer-audit, keyed by task ID:
//
//	dispatcher                          receiver
//	peer.delegate.sent       --------->  peer.delegate.received, or peer.delegate.refused
//	peer.delegate.acknowledged <-------  peer.delegate.completed or peer.delegate.failed
//	or peer.delegate.send_failed
//
// Sent, Acknowledged, SendFailed, Received, Completed and Refused make the records, which have lengths of contents, never the
// contents. ChainGraph makes them a hash chain, one for the instance: Head.Append makes
// the next record of a chain, and Verify finds records that were removed, altered, repeated or moved. There is no chain
// across instances. Stitch pairs the records of two instances by task ID instead, and reports what one of them lacks or
// states differently. An instance that rewrites its own chain therefore still contradicts its peers.
package peer
