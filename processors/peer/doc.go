// Package peer has the rules of delegation between instances: one instance sends a task to another one over HTTP, and both
// keep an audit of it. It does no I/O. Package settings has the configuration, and package wire the bodies.
//
// # Checks
//
// A receiver refuses a request at the first check that fails:
//
//	Admit             the configuration is enabled            503
//	                  there is a bearer token                 401
//	                  the token is accepted                   401
//	                  there is room for another task          429
//	wire.ReadRequest  the body is at most 1,000,000 bytes     413
//	                  it is JSON                              400
//	                  it has the members of a request         400
//	Check             the token may use the agent             403
//	                  the agent exists                        404
//	                  the task has not passed this instance   409
//	                  nor too many others                     403
//
// # Identity of a task
//
// A dispatcher chooses the task ID. To the receiver a task is the pair of the label of the token and the task ID, from which
// wire.TaskKey and wire.SessionID are derived; wire.Request.Hash tells a repeated request from another one with the same ID.
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
// contents. The records of an instance form a hash chain: Head.Append makes
// the next record of a chain, and Verify finds records that were removed, altered, repeated or moved. There is no chain
// across instances. Stitch pairs the records of two instances by task ID instead, and reports what one of them lacks or
// states differently. An instance that rewrites its own chain therefore still contradicts its peers.
package peer
