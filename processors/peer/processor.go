package peer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-peer-tasks" for processors.New: the tasks that the agent delegates to peers, and those that
// peers delegate to it, in one row per session. It returns an error if the name of an agent is
// invalid, or one that wraps ErrConfig.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	audit, err := topics.For(cmp.Or(c.AuditAgent, agent))
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	to := catalogs{agents: map[string]topics.Catalog{}, events: audit.PeerEvents}
	m := &tasksMachine{
		Table: peerrow.Table, Broken: reasonBroken, Purges: purges, Due: func(_ time.Time) event { return deadlineCame{} },
		Apply: func(ctx *processors.Context, row *peerrow.State, e event) (machine.Outcome[*peerrow.State], error) {
			config := c
			config.RecordLimit = min(config.RecordLimit, max(ctx.MaxRecordBytes(), minRecord))
			return apply(row, ctx.Key(), e, ctx.Now(), to, config), nil
		},
	}
	var all []topics.Catalog
	for _, name := range append([]string{agent}, c.Agents...) {
		a, err := topics.For(name)
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		if _, twice := to.agents[name]; twice {
			return nil, fmt.Errorf("%w: Agents has %q twice, or it is the agent of the group", ErrConfig, name)
		}
		to.agents[name] = a
		all = append(all, a)
	}
	own := all[0]
	to.own = own
	inputs := []processors.Source{
		machine.Input(m, own.PeerCommands, func(r *machine.Record, v topics.PeerCommand) event { return commanded{record{r, agent}, v} },
			processors.Confidential[topics.PeerCommand]()), // it may contain a token
		machine.Input(m, own.PeerReceipts, func(r *machine.Record, v topics.Receipt) event { return receipted{record{r, agent}, v} },
			processors.Confidential[topics.Receipt]()),
	}
	outputs := []goka.Edge{
		machine.Output(own.PeerAttempts), machine.Output(own.PeerCommands), machine.Output(own.PeerReplies),
		machine.Output(own.PeerCallbacks), machine.Output(to.events),
	}
	for _, a := range all {
		inputs = append(inputs, inputsOf(m, a, c.Gates)...)
		outputs = append(outputs, machine.Output(a.ToolUseResult), machine.Output(a.MessageInput), machine.Output(a.SessionControl))
		if c.Gates {
			outputs = append(outputs, machine.Output(a.GateRequests), machine.Output(a.GateDecisions))
		}
	}
	return m.Graph(own.PeerTasksGroup(), inputs, outputs...), nil
}

type tasksMachine = machine.Machine[*peerrow.State, event]

// inputsOf are the topics of an agent's turn, and of its gates.
func inputsOf(m *tasksMachine, a topics.Catalog, gates bool) []processors.Source {
	of := func(r *machine.Record) record { return record{r, a.Agent} }
	in := []processors.Source{
		machine.Input(m, a.ToolUse, func(r *machine.Record, v topics.ToolUseItem) event { return called{of(r), v} }),
		machine.Input(m, a.MessageOutput, func(r *machine.Record, v topics.Output) event { return outputArrived{of(r), v} },
			processors.Confidential[topics.Output]()), // it may contain a bearer token
		machine.Input(m, a.SessionControl, func(r *machine.Record, v topics.Control) event { return controlled{of(r), v} }),
	}
	if gates {
		in = append(in,
			machine.Input(m, a.GateRequests, func(r *machine.Record, v topics.GateRequest) event { return gateAsked{of(r), v} }),
			machine.Input(m, a.GateOutcomes, func(r *machine.Record, v topics.GateOutcome) event { return gateEnded{of(r), v} }))
	}
	return in
}

// purges reports whether an event deletes a row that cannot be decoded.
func purges(e event) bool {
	control, ok := e.(controlled)
	return ok && control.Control.Action == topics.ActionPurge && !control.Tombstone()
}
