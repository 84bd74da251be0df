package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// deskAgent is the prefix of the topics' names of the agent that asks before it pays.
const deskAgent = "desk"

// newDesk returns the pipeline of the desk, and what runs beside it: the runner, the fold group and the gates.
func newDesk(brokers []string, to processors.Publisher) (*invoke.Pipeline, []func(context.Context) error, error) {
	catalog, err := topics.For(deskAgent, topics.WithEvents(), topics.WithGates())
	if err != nil {
		return nil, nil, err
	}
	batches, err := fold.Graph(deskAgent, fold.Config{Gates: true})
	if err != nil {
		return nil, nil, err
	}
	gates, err := gate.Graph(deskAgent, gate.Config{})
	if err != nil {
		return nil, nil, err
	}
	grants, err := gate.GrantsGraph(deskAgent, gate.Config{})
	if err != nil {
		return nil, nil, err
	}
	var components []func(context.Context) error
	for _, graph := range []*goka.GroupGraph{desk{catalog}.graph(), batches, gates, grants} {
		p, err := processors.New(brokers, graph, processors.WithTopics(catalog))
		if err != nil {
			return nil, nil, err
		}
		components = append(components, p.Run)
	}
	pipeline, err := invoke.NewPipeline(deskAgent, brokers, to, invoke.PipelineConfig{Gates: true})
	return pipeline, components, err
}

// desk is a runner: it writes the events of turns, in place of the turn group. Its table has the turns of each session that wait
// for decisions.
type desk struct{ topics topics.Catalog }

// paused is a turn that waits.
type paused struct {
	Seq      int64     `json:"seq"` // of its last event
	Payments []payment `json:"payments"`
}

type payment struct {
	Decided  bool   `json:"decided"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason"`
}

func (d desk) graph() *goka.GroupGraph {
	edges := processors.Edges(d.topics.Group(),
		processors.Input(d.topics.MessageInput, d.ask), processors.Input(d.topics.GateOutcomes, d.decided))
	return goka.DefineGroup(d.topics.Group(), append(edges, goka.Persist(codec.JSON[map[string]*paused]()),
		goka.Output(d.topics.AgentEvents.Stream(), d.topics.AgentEvents.Codec()))...)
}

// bill is what the desk pays.
const bill = `{"amount":30,"currency":"EUR","to":"harbour"}`

// ask asks for approval of a payment, or of two if the message contains the word twice, and pauses the turn.
func (d desk) ask(c *processors.Context, in codec.Decoded[topics.Message]) error {
	request, _ := topics.Lookup(in.Value.Metadata, "request_id")
	turn, waiting := plain(request), turnsOf(c)
	if turn == "" || waiting[turn] != nil {
		return nil
	}
	t := &paused{Payments: make([]payment, 1)}
	if strings.Contains(string(in.Value.Content), "twice") {
		t.Payments = make([]payment, 2)
	}
	var events []string
	for i := range t.Payments {
		id := callOf(turn, i)
		events = append(events,
			`{"type":"tool_call","id":"`+id+`","name":"pay","input":`+bill+`}`,
			`{"type":"interaction_request","id":"approval-`+id+`","kind":"user_approval",`+
				`"payload":{"toolCallId":"`+id+`","toolCall":{"name":"pay","rawInput":`+bill+`}}}`)
	}
	stop := "paused"
	waiting[turn] = t
	return d.write(c, turn, waiting, &stop, append(events, `{"type":"done","stopReason":"paused"}`))
}

// decided pays what was approved, once all payments of a turn are decided, and ends the turn.
func (d desk) decided(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	turn, _, i, _ := folder.ParseGateCall(in.Value.CallID)
	waiting := turnsOf(c)
	t := waiting[turn]
	if t == nil || i >= len(t.Payments) || t.Payments[i].Decided {
		return nil
	}
	t.Payments[i] = payment{Decided: true, Approved: in.Value.Status == topics.GateApproved, Reason: in.Value.Reason}
	paid := 0
	var events []string
	for i, p := range t.Payments {
		if !p.Decided {
			return c.SetValue(waiting)
		}
		id, result := callOf(turn, i), `"output":{"paid":`+bill+`}`
		if p.Approved {
			paid++
		} else {
			told, _ := jsontext.AppendQuote(nil, strings.TrimSuffix("The user denied the call: "+p.Reason, ": "))
			result = `"output":` + string(told) + `,"isError":true,"denied":true`
		}
		events = append(events, `{"type":"interaction_response","id":"approval-`+id+`","kind":"user_approval",`+
			`"payload":{"toolCallId":"`+id+`","approved":`+fmt.Sprint(p.Approved)+`}}`,
			`{"type":"tool_result","id":"`+id+`",`+result+`}`)
	}
	events = append(events, fmt.Sprintf(`{"type":"message","text":"%d of %d paid."}`, paid, len(t.Payments)), `{"type":"done"}`)
	return d.write(c, turn, waiting, nil, events)
}

// write writes events of a turn and its terminal record, and stores the turns that wait. A turn without a stop reason is over.
func (d desk) write(c *processors.Context, turn string, waiting map[string]*paused, stop *string, events []string) error {
	t := waiting[turn]
	for i := range len(events) + 1 {
		t.Seq++
		e := topics.AgentEvent{SessionID: c.Key(), TurnID: turn, Attempt: 1, Seq: t.Seq}
		if i < len(events) {
			e.Event = topics.Raw(events[i])
		} else {
			e.Result = &topics.AgentResult{OK: true, StopReason: stop}
		}
		if err := processors.EmitWithID(c, d.topics.AgentEvents, c.Key(), e, fmt.Sprintf("%s/1/%d", turn, t.Seq)); err != nil {
			return err
		}
	}
	if stop == nil {
		if delete(waiting, turn); len(waiting) == 0 {
			return c.Delete()
		}
	}
	return c.SetValue(waiting)
}

// callOf returns the ID of a payment's call. It is that of the turn, so that an answer to an older turn matches no payment of
// this one.
func callOf(turn string, i int) string { return fmt.Sprintf("call-%s-%d", turn, i+1) }

// turnsOf returns the turns of the session that wait, by ID.
func turnsOf(c *processors.Context) map[string]*paused {
	if row, ok := c.Value().(codec.Decoded[map[string]*paused]); ok {
		return row.Value
	}
	return map[string]*paused{}
}
