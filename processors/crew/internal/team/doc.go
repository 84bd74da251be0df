// Package team keeps crews: which agents are in one, who leads whom, what leads have given their agents to do, what was
// decided, and what agents say to each other. It executes the commands that agents write into their text, except those about
// locks and commits, which package repository executes.
//
// Inputs come from doors and programs (crewbody.Configure, crewbody.SpawnAsked, crewbody.Say, ...), from the crew's agents
// (crewbody.Command, crewbody.AgentChanged, ...), from its repository (crewbody.LockChanged, crewbody.Committed), and from the row's own
// deadlines (crewbody.Due): see package mailbox.
//
// Every delegation ends once: completed, failed or cancelled. The lead gets one report when the agent finishes (COMPLETE_TASK,
// or the end of a turn with nothing left to do) or when its process ends. Terminating an agent fails its delegations in the same
// step, and an agent that ended without a word loses them 30 seconds later.
//
//	how an agent's work ends             delegations   report to its parent
//	COMPLETE_TASK                        completed     completed
//	idle, with a task                    completed     completed, unless COMPLETE_TASK was reported
//	exit code 0                          completed     completed successfully, unless one of the above was reported
//	another exit code, lost host         failed        failed (exit code N)
//	terminated                           failed        terminated
//	CANCEL_DELEGATION, RESET_DAG,        cancelled     none: the lead asked for it
//	SKIP_TASK, REASSIGN_TASK
//
// An agent is idle when it has had nothing to do for 500 ms and its commands are answered. A report of idleness that the agent wrote
// before it knew a note of the crew has no effect: the note begins another turn.
//
// A task that is skipped or reassigned is taken from its agent, which is told to stop and loses its locks.
//
// A process that ended because its host stopped, or that never came to a session and is started again, keeps its work.
//
// What a row keeps is bounded: texts are cut, and the oldest entries that are over make room for new ones. Agents and events
// get texts in full or at much higher limits.
package team
