// Package gate asks a person. Everything that waits for a person's decision is a gate: a tool call that needs approval, a
// permission outside a turn, a question, work for another agent. Every gate ends in exactly one outcome: approved, denied,
// timed out or cancelled, with the cause.
//
//	gate-requests ----+                         +--> gate-outcomes   how the gate ended
//	gate-decisions ---+   one session's row     |
//	session-control --+-> (state, event, now) --+--> gate-decisions  close: at a deadline, for a withdrawal, purge or grant, or without room
//	deadlines --------+    -> (state, effects)  +--> gate-grants     a standing approval for the agent
//	                             |              +--> channel-messages  questions for people on channels (Config.Channels)
//	                             | looks up
//	gate-grants ------> one agent's row: its standing approvals
//
// All topics are named "{agent}-..." and keyed by session, gate-grants by agent. There are two groups: Graph has the gates,
// GrantsGraph has the standing approvals. Graph looks up the table of GrantsGraph, which may be stale by some milliseconds:
// a person is then asked once more, or a revoked grant counts for one more request.
//
// A requester, such as package turn, writes a topics.GateRequest and continues when it reads the topics.GateOutcome with the
// same gate_id. A person decides through package gatehttp; a program calls Decide. Inspect and Gates list what is open.
//
// # How a gate ends
//
//	status      cause                        what happened
//	approved    human                        a person approved, or answered
//	            grant                        a person approved the tool before, for the session or the agent
//	            policy                       the policy allows it
//	denied      human                        a person denied
//	            policy                       the policy denies it, perhaps only since a person approved it
//	            no_room, invalid             too many requests wait; the request is too large, a member of its arguments is
//	                                         repeated, or no answer could match its schema
//	timed_out   deadline                     no one decided in time
//	cancelled   superseded, parent_ended,    the requester withdrew it
//	            parent_cannot_ask
//	            purged                       the session was purged
//
// Only the first three approve. Silence, an unknown option or a malformed answer never does: a decision that a gate does not
// accept (View.Check) is dead-lettered, and the gate stays open.
//
// # Guarantees
//
// The records of a session in gate-decisions decide, in their order: the first one that ends a gate counts. Decisions of people are
// such records. For everything else that ends a gate, the group writes a record with the verdict close: for the deadline when it is
// due, for withdrawals, purges and grants, and when a session has no room for the gate (no_room). The gate ends when that record is
// read. Decisions and grants' records that are written at the deadline or later never count. Nor do decisions about a gate without
// room.
//
// After a crash, the group reads the same records in the same order. So a gate cannot end in two ways, under either guarantee. There
// are exceptions at least once. If a process crashes between an outcome and its row, the repeated outcome can differ if
//
//   - the next process has another policy or other limits;
//   - the session had no room for the gate in one process but had in the other, and a decision or a grant's record about the
//     gate precedes its no_room record in gate-decisions;
//   - the session had no room even for a gate without its arguments and texts: more than 64 such gates wait, or they fill the
//     16 KiB that are kept for them. Such a gate is denied at once.
//
// The first record of a gate in gate-outcomes is the one that counts.
//
//	                            what can be repeated                    what cannot happen
//	outcome                     the record, with the same ID            no outcome, or another one
//	decision                    a decision that came too late: nothing  an approval that counts twice
//	decision before its request it is held (Config.Hold)                   a lost answer
//	group is down               deadlines are closed when it returns    a new deadline after a restart
//	standing approval           -                                       a revoked grant that returns
//
// The turntable.id of an outcome is "{gate_id}/outcome".
//
// A request that is closed with parent_cannot_ask may be followed by another one for the same call, which names it as its parent
// (package peer). A person's decision about the closed one is then a decision about its successor.
//
// # Policy
//
// The policy (Config.Policy, package approval) is evaluated when a request arrives, and again for the arguments that are about
// to be approved, edited or not. It asks, unless the requester's own policy decided: then the stricter of both counts. It
// approves only what a requester without a policy asks, never a dangerous request or a question. The requester keeps its
// arguments; the outcome has the digest of those that may run, and edited arguments byte by byte.
//
// A request in shadow mode has its outcome at once. Where a person would have been asked, it is cancelled with the cause
// policy.
//
// # Standing approvals
//
// A decision with the scope session or agent approves later requests of the agent for the same tool with any arguments, for
// a day or 30 days (Config.SessionGrant, AgentGrant). A grant's ID is the gate_id of its approval. RevokeForSession and RevokeForAgent end it. An
// approval with edits, or of a dangerous request, counts once.
//
// # Channels
//
// With Config.Channels a gate that waits for a person is asked about where its request came from (GateRequest.Channel): the group
// writes the question to channel-messages, and delivers nothing itself. A gate that a grant or the policy approves is not asked
// about. The question has the tool, the arguments, cut, and the commands that decide; the arguments are in a code fence that
// they cannot close. How the gate ended, in whichever way, is told in the same place.
//
//	message                                          its turntable.id
//	the question                                     gate-ask-{gate_id}
//	how the gate ended                               gate-end-{gate_id}
//	why a decision had no effect                     gate-answer-{decision_id}
//
// A decision of a channel (GateDecision.Channel) counts only in the place that the request came from, the same channel, account,
// recipient and thread, and only from the person whose message led to the request, or from an approver. A person without an ID
// must be an approver. If nothing proves the person (topics.ProofNone), a decision of a channel counts for nothing, and the question
// says so; if only the sender's domain is proven (topics.ProofCode), it needs the whole code of the question. All other decisions
// are answered and approve nothing. A pressed button names the whole gate_id. A command
// names a code, at least 4 characters of the beginning of the gate_id, or nothing if one gate waits in the place. The group
// resolves it to a gate when it reads it and writes the decision again, with the gate_id, to gate-decisions; that record counts.
// If the group was down when a person sent a command, and returns after the deadline, the gate times out.
//
// # Time
//
// A gate expires when its request says, else after the TTL of the policy (10 minutes by default), counted from the timestamp
// of the request's record, and after 30 days at the latest. No goroutine waits: deadlines are in the row.
//
// # Sizes
//
// Every field of a row is bounded by count and in bytes. A request may have
// 256 KiB of arguments, and 64 KiB each of message, options and schema. An outcome can be read for a day
// (Config.RememberFor) without its arguments. If there is no room, outcomes are given up first, then records that wait for their
// request; new requests are denied: they are kept without
// arguments and texts until they end. Schemas are JSON Schemas without references to other documents, and the work of
// validating with one is bounded.
//
// # Tests
//
// Package processortest/gates lists gates, decides them and lets them expire on a test's clock.
package gate
