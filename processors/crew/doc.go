// Package crew lets coding agents work together. The agents speak the Agent Client Protocol (ACP) and run as child processes of a
// host. What they are, say, may do, lock and commit is kept in three tables.
//
//	                              crew-inputs            crew-repository-inputs
//	door -----------------------------+                          |
//	  |                               v                          v
//	  |  crew-agent-inputs      one crew's row:           one repository's row:
//	  +---------+               members, messages,        locks, commits
//	            v               groups, delegations, --+         |
//	     one agent's row: <---- decisions, tasks       |         |
//	     process, queue,  <---------------- notes -----|---------+
//	     permissions, text ---- commands --------------+-------> |
//	        ^        |                                           |
//	        |        +---------------> crew-actions <------------+
//	        |                                |
//	        +----- updates, receipts ------ host ---> ACP children, git
//
//	all rows ---> crew-events ---> door ---> WebSocket, REST
//	agent's row ---> gate-requests, gate-outcomes ---> agent's row
//
// All topics are named "{agent}-...". Graphs returns the three groups. Package host runs the agents, package crewhttp serves people. Permissions are gates: run the groups of package gate too.
//
// # One input, one order
//
// Each group reads one topic, and the other groups, hosts and doors write to it. So the order of a key's records in one partition
// decides what happens. A step that a crash repeats does the same again, under the same IDs, and its reader drops it.
//
//	                        what can be repeated                    what cannot happen
//	command in text         its record, with the same ID            a command that runs twice, or depends on how the text was split
//	permission              the answer to the agent's process       two outcomes, or none; silence that allows
//	message, group message  its record, with the same ID            a message that is lost without a record of the reason
//	lock                    -                                       two agents that hold paths which overlap
//	commit                  the attempt: the host looks for its ID  a file that its agent did not hold
//	                        in the history first
//	event                   the record, with the same number        a gap in the numbers of a row
//	process of an agent     its start, after a crash of the host    a second process of a run that is still known
//
// Exceptions: at least once, a process that was cut off from its brokers can write an old row over a newer one (see package
// processors). A step that is repeated by a build with other options can differ from what the first one wrote.
//
// An agent with autopilot gets every permission at once, except for dangerous requests: they wait for a person like those of any
// other agent, and are denied if no one answers in time. No approval counts for later dangerous requests.
//
// What an agent's process does is outside: it has the rights of its host's user, and locks bind only commits that are made by the
// command COMMIT.
package crew
