package turn

import (
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// rules configure the transition: a complete Config, and what Graph knows besides.
type rules struct {
	Config
	// Agent is the agent's name, which the requests of gates state as their origin.
	Agent string
	// EventsExist says that the topic of the events exists, so that a turn can end a stream that a worker has begun.
	EventsExist bool
	// accepted are the limits of topics that accept less than RecordLimit.
	accepted topicLimits
}

// topicLimits are the sizes of the largest records that topics accept, in bytes; 0 means Config.RecordLimit.
type topicLimits struct {
	model, tool, completed, input, output, gate, event, compaction, memoir int
}

// limit returns the size of the largest record that may be sent to a topic. of is the topic's element of rules.accepted.
func (r *rules) limit(of int) int {
	if of == 0 {
		return r.RecordLimit
	}
	return min(of, r.RecordLimit)
}

// eventLimit is the size of the largest event that is written. The fold group keeps events of this size in parts of its row.
func (r *rules) eventLimit() int { return r.limit(r.accepted.event) * 7 / 8 }

// evaluate returns what the policy says about a call. Without a policy every call is allowed.
func (r *rules) evaluate(tool *string, args topics.Raw) approval.Decision {
	if r.Approval == nil {
		return approval.Decision{Effect: approval.Allow, Edit: true}
	}
	return r.Approval.Evaluate(approval.Call{Tool: *tool, Args: args})
}
