package invoke

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// gates is a broker with a runner that pauses, and with gates that decide as the processors of gates do: the first decision
// counts.
type gates struct {
	*broker
	write func(b *broker, events ...topics.AgentEvent) // by guarantee

	mu        sync.Mutex
	turns     map[string]*pausedTurn // by turn
	decisions []topics.GateDecision
	decided   map[string]bool // by gate
	deaf      bool            // decisions have no outcome
}

// pausedTurn is a turn that asks, pauses, and goes on when all its gates are decided.
type pausedTurn struct {
	session   string
	asks      []topics.Raw // the interaction requests' data
	terminal  bool         // it writes a terminal record when it pauses
	seq       int64
	answers   map[int]topics.GateOutcome
	responded int        // how many of them its events have
	after     [][]string // what follows the decisions, for each pause; nil: a message with the first outcome
}

func newGates(t testing.TB, write func(b *broker, events ...topics.AgentEvent)) *gates {
	t.Helper()
	g := &gates{broker: newBroker(t, func(c *fold.Config) { c.Gates = true }), write: write, turns: map[string]*pausedTurn{}, decided: map[string]bool{}}
	catalog := g.catalog
	g.follow(func(r processors.Inbound) {
		d := catalog.GateDecisions.Codec().Unmarshal(r.Value)
		if d.Err != nil {
			t.Error(d.Err)
			return
		}
		g.decide(d.Value)
	}, catalog.GateDecisions.Name())
	return g
}

// gated starts a turn of session s-1 that asks and pauses.
func (g *gates) gated(turn string, terminal bool, asks ...string) {
	g.t.Helper()
	events := []string{`{"type":"message","data":{"text":"Paying."}}`}
	for _, a := range asks {
		events = append(events, `{"type":"interaction_request","data":`+a+`}`)
	}
	g.plays("s-1", turn, terminal, append(events, `{"type":"done","data":{"stopReason":"paused"}}`))
}

// plays starts a turn that pauses. after are the events that follow the results of the calls, for each pause.
func (g *gates) plays(session, turn string, terminal bool, before []string, after ...[]string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns[turn] = &pausedTurn{session: session, terminal: terminal, answers: map[int]topics.GateOutcome{}, after: after}
	g.emit(turn, before...)
}

// emit writes events, and the terminal record if the last one ends a run.
func (g *gates) emit(turn string, events ...string) {
	p := g.turns[turn]
	for _, e := range events {
		p.seq++
		g.write(g.broker, topics.AgentEvent{SessionID: p.session, TurnID: turn, Attempt: 1, Seq: p.seq, Event: topics.Raw(e)})
		switch kind, _ := text(member(topics.Raw(e), "type")); kind {
		case "interaction_request":
			p.asks = append(p.asks, member(topics.Raw(e), "data"))
		case "done":
			if stop := textOf(member(member(topics.Raw(e), "data"), "stopReason")); stop == stopPaused && p.terminal {
				g.end(turn, topics.AgentResult{OK: true, StopReason: &stop})
			}
		}
	}
}

func (g *gates) end(turn string, r topics.AgentResult) {
	p := g.turns[turn]
	p.seq++
	g.write(g.broker, topics.AgentEvent{SessionID: p.session, TurnID: turn, Attempt: 1, Seq: p.seq, Result: &r})
}

// decide is called for each decision.
func (g *gates) decide(d topics.GateDecision) {
	g.mu.Lock()
	g.decisions = append(g.decisions, d)
	deaf := g.deaf
	g.mu.Unlock()
	status := topics.GateApproved
	if d.Verdict == topics.VerdictDeny {
		status = topics.GateDenied
	}
	if !deaf {
		g.outcome(d.GateID, topics.GateOutcome{
			Status: status, Cause: topics.CauseHuman, DecisionID: d.DecisionID, By: d.By, Reason: d.Reason, Answer: d.Answer,
		})
	}
}

// answer returns the outcome of an interaction of a turn, and whether the turn went on after its last pause.
func (g *gates) answer(turn string, n int) (o topics.GateOutcome, continued bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.turns[turn]
	return p.answers[n], p.responded == len(p.asks)
}

func gateOf(turn string, n int) string {
	return topics.GateID("s-1", turn, folder.GateCall(turn, 1, n))
}

// outcome ends a gate, once. When it was the last one of its turn, the turn goes on.
func (g *gates) outcome(gate string, o topics.GateOutcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.decided[gate] {
		return
	}
	for turn, p := range g.turns {
		for n := range p.asks {
			call := folder.GateCall(turn, 1, n)
			if topics.GateID(p.session, turn, call) != gate {
				continue
			}
			g.decided[gate] = true
			o.GateID, o.SessionID, o.TurnID, o.CallID = gate, p.session, turn, call
			out, err := processors.OutboundOf(g.catalog.GateOutcomes, p.session, o, "")
			if err == nil {
				err = g.to.Publish(context.Background(), out)
			}
			if err != nil {
				g.t.Error(err)
			}
			p.answers[n] = o
			if len(p.answers) == len(p.asks) {
				g.proceed(turn)
			}
			return
		}
	}
	g.t.Errorf("a decision about gate %s, which no turn has", gate)
}

func (g *gates) proceed(turn string) {
	p := g.turns[turn]
	for ; p.responded < len(p.asks); p.responded++ {
		approved := p.answers[p.responded].Status == topics.GateApproved
		g.emit(turn, fmt.Sprintf(`{"type":"interaction_response","data":{"id":%s,"kind":"user_approval","payload":{"approved":%t}}}`,
			first(member(p.asks[p.responded], "id")), approved))
		if p.after != nil {
			g.emit(turn, fmt.Sprintf(`{"type":"tool_result","data":{"id":%s,"output":"It is %s.","isError":%t,"denied":%t}}`,
				member(member(p.asks[p.responded], "payload"), "toolCallId"), p.answers[p.responded].Status, !approved, !approved))
		}
	}
	if p.after == nil {
		g.emit(turn, `{"type":"message","data":{"text":"It is `+string(p.answers[0].Status)+`."}}`, `{"type":"done","data":{}}`)
		g.end(turn, topics.AgentResult{OK: true, StopReason: &endTurn})
		return
	}
	after := p.after[0]
	p.after = p.after[1:]
	if g.emit(turn, after...); len(p.asks) == p.responded {
		g.end(turn, topics.AgentResult{OK: true})
	}
}

// starts makes the runner answer the next messages with paused turns.
func (g *gates) starts(terminal bool, asks ...string) {
	g.t.Helper()
	g.follow(func(r processors.Inbound) {
		m := g.catalog.MessageInput.Codec().Unmarshal(r.Value).Value
		g.gated(requestOf(m), terminal, asks...)
	}, g.catalog.MessageInput.Name())
}

func (g *gates) written() []topics.GateDecision {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]topics.GateDecision(nil), g.decisions...)
}

// messagesWritten asks the broker: a follower may not have read yet what was acknowledged.
func (g *gates) messagesWritten() (n int64) {
	g.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(g.addrs...))
	require.NoError(g.t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(g.t.Context(), g.catalog.MessageInput.Name())
	require.NoError(g.t, err)
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

func askFor(id, call, args string) string {
	return fmt.Sprintf(`{"id":%q,"kind":"user_approval","payload":{"toolCallId":%q,"toolCall":{"name":"pay","rawInput":%s}}}`, id, call, args)
}

// answerBody returns a request that answers with a tool result, after a call with these arguments.
func answerBody(call, args, output string) string {
	return `{"session_id":"s-1","data":{"inputs":{"messages":[{"role":"user","content":"Pay."},` +
		`{"role":"assistant","content":[{"type":"tool_call","toolCallId":"` + call + `","toolName":"pay","input":` + args + `}]},` +
		`{"role":"tool","content":[{"type":"tool_result","toolCallId":"` + call + `","output":` + output + `}]}]}}}`
}

// lastID returns the ID of a stream's last event.
func lastID(t testing.TB, body string) string {
	t.Helper()
	var last string
	for line := range strings.Lines(body) {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			last = strings.TrimSpace(id)
		}
	}
	require.NotEmpty(t, last, body)
	return last
}

// paying are the events of a run that asks whether it may pay.
const paying = `{"type":"message","data":{"text":"Paying."}}
{"type":"tool_call","data":{"id":"t1","name":"pay","input":{"eur":1,"to":"x"}}}
{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCallId":"t1","toolCall":{"name":"pay","rawInput":{"eur":1,"to":"x"}}}}}
{"type":"done","data":{"stopReason":"paused"}}`

const paidEnd = `{"type":"message","data":{"text":"Bye."}}
{"type":"done","data":{}}`

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// body returns a request with messages.
func body(session, messages string) string {
	return `{"session_id":"` + session + `","data":{"inputs":{"messages":[` + messages + `]}}}`
}

// answerOf returns a message with the result of a tool call.
func answerOf(call, output string) string {
	id := ""
	if call != "" {
		id = `"toolCallId":"` + call + `",`
	}
	return `{"role":"tool","content":[{"type":"tool_result",` + id + `"output":` + output + `}]}`
}

func firstFrame(body string) string {
	_, rest, _ := strings.Cut(body, "id: ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

var asksOnce = []string{askFor("r1", "t1", `{"eur":1}`)}

// gatedSite is a door of a pipeline that decides gates.
func (g *gates) site(change ...func(*Config)) *site {
	g.t.Helper()
	return newSite(g.t, g.pipeline(withGates), append([]func(*Config){func(c *Config) { c.Random = &counting{} }}, change...)...)
}

// withGates makes a pipeline decide gates.
func withGates(c *PipelineConfig) { c.Gates = true }

// status returns the error code and the message of an error response.
func (g got) failure(t testing.TB) string {
	t.Helper()
	require.GreaterOrEqual(t, g.status, http.StatusBadRequest, g.body)
	return textAt(t, g.body, "status", "message")
}
