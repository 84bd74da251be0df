// Package host runs coding agents that speak ACP (https://agentclientprotocol.com), version 1, as processes of a machine, for the
// crews of package crew.
//
// A host reads {agent}-crew-actions and does what is meant for it: it starts and ends processes, sends prompts, answers
// permission requests, and runs git. What happens to an agent it writes to the input of the agent's row. It has no state of its
// own: the rows know everything, and a host that starts anew tells the rows that wait for it, which then decide what is done
// again. Processes do not survive their host.
//
// All records of a host have a number that rises with every record and with every start of the host. So what an earlier run of
// the host wrote late, or twice, has no effect. Two hosts with one name are a mistake: the one that started first ends with
// ErrReplaced.
//
// An agent may read and write files of its directory and run commands in it, as far as Policy permits. The host protects the
// files outside the directory from what it does for the agent, but it is no sandbox: the agent's own process has all rights of the
// user who runs the host.
package host
