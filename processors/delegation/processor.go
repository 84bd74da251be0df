package delegation

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-delegations" for processors.New: the tasks that the agent delegates and does not wait for,
// in one row per session. It also returns the outputs of tasks that other agents have delegated to the agent. It returns an
// error if the name of an agent is invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	own, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("delegation: %w", err)
	}
	agents := map[string]topics.Catalog{}
	m := &machine.Machine[*delegationrow.State, event]{
		Table: delegationrow.Table, Broken: reasonBroken, Purges: purges, Due: func(_ time.Time) event { return deadlineCame{} },
		Apply: func(ctx *processors.Context, row *delegationrow.State, e event) (machine.Outcome[*delegationrow.State], error) {
			config := c
			config.RecordLimit = min(config.RecordLimit, max(ctx.MaxRecordBytes(), minRecord))
			return apply(row, ctx.Key(), e, ctx.Now(), own, agents, config), nil
		},
	}
	inputs := []processors.Source{
		machine.Input(m, own.ToolUse, func(r *machine.Record, v topics.ToolUseItem) event { return called{r, v} }),
		machine.Input(m, own.DelegationReplies, func(r *machine.Record, v topics.DelegationReply) event { return replied{r, v} },
			processors.Confidential[topics.DelegationReply]()), // it has results
		machine.Input(m, own.MessageOutput, func(r *machine.Record, v topics.Output) event { return outputArrived{r, v} },
			processors.Confidential[topics.Output]()), // it may contain a bearer token
		machine.Input(m, own.SessionControl, func(r *machine.Record, v topics.Control) event { return controlled{r, v} }),
	}
	outputs := []goka.Edge{
		machine.Output(own.ToolUseResult), machine.Output(own.MessageInput), machine.Output(own.DelegationReplies),
		machine.Output(own.DelegationStatus),
	}
	if c.Peers {
		inputs = append(inputs, machine.Input(m, own.PeerReplies,
			func(r *machine.Record, v topics.PeerReply) event { return peerReplied{r, v} }, processors.Confidential[topics.PeerReply]()))
		outputs = append(outputs, machine.Output(own.PeerCommands))
	}
	for _, name := range c.Agents {
		a, err := topics.For(name)
		if err != nil {
			return nil, fmt.Errorf("delegation: %w", err)
		}
		agents[name] = a
		outputs = append(outputs, machine.Output(a.SessionControl))
		if name != agent {
			outputs = append(outputs, machine.Output(a.MessageInput), machine.Output(a.DelegationReplies))
		}
	}
	return m.Graph(own.DelegationsGroup(), inputs, outputs...), nil
}

// purges reports whether an event deletes a row that cannot be decoded.
func purges(e event) bool {
	control, ok := e.(controlled)
	return ok && control.Control.Action == topics.ActionPurge && !control.Tombstone()
}
