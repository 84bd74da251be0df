package peerwire

import (
	"slices"
	"strconv"
)

// maxChain is the largest number of instances in a chain.
const maxChain = 64

// Path is the way that a task has come. The zero value is a task that comes from no peer.
type Path struct {
	// Hops is how often the task was sent from one instance to another.
	Hops int
	// Chain are the IDs of the instances that sent it, in their order. HybridClaw's instances are not among them: they do
	// not pass the path on.
	Chain []string
}

// Via returns the path of the task when an instance sends it on.
func (p Path) Via(instanceID string) Path {
	return Path{Hops: p.Hops + 1, Chain: append(slices.Clone(p.Chain), instanceID)}
}

// Check refuses a task that has passed the instance already, or more than max instances. It is nil for other tasks. Peers
// that drop the path are not noticed: limits of concurrency and time apply to them.
func (p Path) Check(instanceID string, max int) *Refusal {
	switch {
	case slices.Contains(p.Chain, instanceID):
		return &Refusal{
			Status: 409, Code: CodeLoop, Text: "The task has passed this instance already: " + strconv.Quote(instanceID) + ".",
		}
	case p.Hops > max:
		return &Refusal{
			Status: 403, Code: CodeHopLimit,
			Text: "The task was passed on " + strconv.Itoa(p.Hops) + " times; at most " + strconv.Itoa(max) + " are allowed.",
		}
	}
	return nil
}
