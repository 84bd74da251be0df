// Package host runs coding agents that speak ACP (https://agentclientprotocol.com), version 1, as processes of a machine, for the
// crews of package crew.
//
// A host reads {agent}-crew-actions and does what is meant for it: it starts and ends processes, sends prompts, answers
// permission requests, and runs git. What happens to an agent it writes to the input of the agent's row. It has no state of its
// own: the rows know everything, and a host that starts anew tells the rows that wait for it, which then decide what is done
// again. Processes do not survive their host.
//
// On Unix, each agent and each terminal has a process group of its own. The host kills the group when its first command has
// ended. A watcher in the group, a process of /bin/sh, kills it if the host is killed. On Linux, processes that have left the group,
// as the shells of some agents do with setsid, end with it: they are found in /proc by the variable TURNTABLE_RUN in their environment,
// unless they have removed it. On other systems than Unix, only the agent and the command of the terminal are ended, and only by a
// host that is not killed.
//
// All records of a host have a number that rises with every record and with every start of the host. So what an earlier run of
// the host wrote late, or twice, has no effect. Two hosts with one name are a mistake: the one that started first ends with
// ErrReplaced. The numbers begin with the time of the start. If the clock of the first host's machine is ahead by more than the
// time between the two starts, the second host can end instead: rows ignore its lower numbers.
//
// An agent may read and write files of its directory and run commands in it, as far as Policy permits. The host protects the
// files outside the directory from what it does for the agent, but it is no sandbox: the agent's own process has all rights of the
// user who runs the host.
//
// The host reads and writes the messages of ACP itself instead of through github.com/coder/acp-go-sdk, with which the tests' agents
// are written. The SDK handles requests beside updates, closes the connection when 1,024 updates wait, and decodes updates into
// the types that it knows. The host needs an agent's updates and requests in their order, unknown kinds of updates as they were
// written, and an agent that waits while no broker takes its records, with bounds on lines, open requests and nesting.
package host
