// Package agent keeps the coding agents of crews: one row per agent, in the group "{agent}-crew-agents". An agent is a process
// on a host that speaks the Agent Client Protocol. The host owns the process and nothing else; the row decides everything.
//
// # A turn
//
// A message is a turn of its own if the agent is idle, and waits otherwise. At the end of the turn all that waits is one
// prompt: urgent messages, the system's notes, other messages, each in their order, and the newest CREW_UPDATE. A message that
// was accepted is sent once, or the crew is told that it was dropped. At most 200 other messages wait, of 192 KiB together. Urgent
// messages are not counted; they are dropped only if those that wait are larger than 384 KiB together, or the row than 832 KiB.
//
// A CREW_UPDATE is delivered if it differs from the last one that the agent has in its context. After a compaction, in a new session,
// and after a prompt that failed or may be lost, the agent has none.
//
// # An idle agent
//
// An agent is idle from the end of a turn, if nothing waits for it. Clients and the crew are told of the status after 500 ms without
// another turn. The crew is told that the agent has finished (crewbody.AgentIdle) after the same time, and not before its commands are
// answered: an agent often ends its turn with LOCK_FILE or COMMIT, and goes on when it has the answer. The answer is the note with the
// ID of the command. Other notes answer nothing: that a lock has expired, that a person has released one, or that a commit waits for
// the one before it. An answer is overdue, and not waited for any longer, after 30 seconds, or 3 minutes for a COMMIT.
//
// # The end of a process
//
// It is reported once, for one of these causes:
//
//	clean         the process ended with code 0. The agent is completed.
//	terminated    it was asked for. The agent is terminated, or starts again if a person wanted that.
//	crash         another code. The agent starts again after 2 seconds if its crew agrees, up to a limit.
//	start_failed  the agent came to no session. As a crash, unless the session could not be continued: then the agent failed.
//	host_stopped  the host stopped, or was killed. The agent starts again when the host does; no crash.
//
// An agent continues its session if it can. After a crash, the prompt that it interrupted is not repeated; what waits is sent. If the
// host ended, an agent that continues its session is told that its turn was interrupted, and another one is sent the prompt again. A
// message is reported as dropped if it was too long to be kept, or if four turns in succession were interrupted in this way.
//
// # A host that is silent
//
// A host that says nothing for 45 seconds, or does not answer a start for 60, is no failure of the agent. Clients are told once, the
// status is creating, and the agent waits, however long: for the host to go on with the process, or to say that it was started anew.
// A silent host is asked again to start the agent, less and less often. Only a process that is to end is given up.
package agent
