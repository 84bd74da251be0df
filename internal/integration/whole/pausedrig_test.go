package whole

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// pausedWorld is an agent behind /invoke whose turns pause: the fold group, the gates, doors, and a runner that continues the turns
// when all its requests have outcomes.
type pausedWorld struct {
	*world
	config       fold.Config
	gates, folds *running

	mu      sync.Mutex
	runs    map[string]*run // by turn
	batches map[string][]topics.BatchMessage
}

// run is a turn of the runner.
type run struct {
	session string
	seq     int64
	gates   map[string]*topics.GateOutcome // nil: open
}

func newPausedWorld(t *testing.T, guarantee processors.Guarantee, config fold.Config) *pausedWorld {
	t.Helper()
	config.Gates = true
	p := &pausedWorld{
		world: newWorld(t, guarantee, topics.WithEvents(), topics.WithGates()), config: config,
		runs: map[string]*run{}, batches: map[string][]topics.BatchMessage{},
	}
	p.startFold()
	p.run("grants", must(gate.GrantsGraph(p.agent, gate.Config{})))
	p.startGates()
	p.follow(p.receive, p.catalog.GateOutcomes.Name(), p.catalog.MessageInput.Name(), p.catalog.BatchMessages.Name())
	return p
}

func (p *pausedWorld) startGates() {
	p.gates = p.run("gates", must(gate.Graph(p.agent, gate.Config{})))
}

func (p *pausedWorld) startFold() { p.folds = p.run("fold", must(fold.Graph(p.agent, p.config))) }

// invokeDoor is a process that serves /invoke.
type invokeDoor struct {
	p    *pausedWorld
	http *httptest.Server
	stop func()
}

func (p *pausedWorld) door() *invokeDoor {
	p.t.Helper()
	pipeline := must(invoke.NewPipeline(p.agent, p.brokers, p.to, invoke.PipelineConfig{Gates: true}))
	end := p.serve(pipeline.Run)
	<-pipeline.Ready()
	d := &invokeDoor{p: p, http: httptest.NewServer(must(invoke.New(pipeline, invoke.Config{})))}
	d.stop = sync.OnceFunc(func() {
		d.http.Close()
		end()
	})
	p.t.Cleanup(d.stop)
	return d
}

type response struct {
	status     int
	turn, body string
}

func (d *invokeDoor) post(body string, headers ...string) response {
	d.p.t.Helper()
	r, err := http.NewRequestWithContext(d.p.t.Context(), http.MethodPost, d.http.URL, strings.NewReader(body))
	require.NoError(d.p.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := d.http.Client().Do(r)
	require.NoError(d.p.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(d.p.t, err)
	return response{resp.StatusCode, resp.Header.Get(invoke.HeaderTurn), string(raw)}
}

// ask sends a user's message that asks for n payments.
func (d *invokeDoor) ask(session string, n int) response {
	return d.post(fmt.Sprintf(`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"user","content":"%d"}]}}}`, session, n))
}

// answer sends an answer to the call with a number.
func (d *invokeDoor) answer(session, call, args, output string, headers ...string) response {
	return d.post(fmt.Sprintf(`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"assistant","content":[{"type":"tool_call",`+
		`"toolCallId":%q,"toolName":"pay","input":%s}]},{"role":"tool","content":[{"type":"tool_result","toolCallId":%q,"output":%s}]}]}}}`,
		session, call, args, call, output), headers...)
}

// receive is the runner, and collects the batches.
func (p *pausedWorld) receive(r processors.Inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Topic {
	case p.catalog.MessageInput.Name():
		p.begin(p.catalog.MessageInput.Codec().Unmarshal(r.Value).Value)
	case p.catalog.GateOutcomes.Name():
		p.decided(p.catalog.GateOutcomes.Codec().Unmarshal(r.Value).Value)
	default:
		b := p.catalog.BatchMessages.Codec().Unmarshal(r.Value).Value
		p.batches[b.TurnID] = append(p.batches[b.TurnID], b)
	}
}

// begin asks for as many payments as the message says, and pauses.
func (p *pausedWorld) begin(m topics.Message) {
	var metadata struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(m.Metadata, &metadata); err != nil {
		p.t.Error(err)
		return
	}
	turn := metadata.RequestID
	r := &run{session: *m.SessionID, gates: map[string]*topics.GateOutcome{}}
	p.runs[turn] = r
	p.event(turn, `{"type":"message","data":{"text":"Paying."}}`)
	for i := range int(m.Content[1] - '0') {
		p.event(turn, fmt.Sprintf(`{"type":"interaction_request","data":{"id":"r%d","kind":"user_approval","payload":{"toolCallId":"t%d",`+
			`"toolCall":{"name":"pay","rawInput":{"eur":%d}},"availableReplies":["once","reject"]}}}`, i, i, i))
		r.gates[topics.GateID(r.session, turn, folder.GateCall(turn, 1, i))] = nil
	}
	p.event(turn, `{"type":"done","data":{"stopReason":"paused"}}`)
	stop := "paused"
	p.write(turn, topics.AgentEvent{Result: &topics.AgentResult{OK: true, StopReason: &stop}})
}

// decided continues a turn when all its gates have outcomes.
func (p *pausedWorld) decided(o topics.GateOutcome) {
	r := p.runs[o.TurnID]
	if r == nil {
		p.t.Errorf("an outcome of turn %q", o.TurnID)
		return
	}
	if before, ok := r.gates[o.GateID]; !ok || before != nil {
		return
	}
	r.gates[o.GateID] = &o
	text := ""
	for i := range len(r.gates) {
		o := r.gates[topics.GateID(r.session, o.TurnID, folder.GateCall(o.TurnID, 1, i))]
		if o == nil {
			return
		}
		text += " " + string(o.Status)
	}
	for i := range len(r.gates) {
		p.event(o.TurnID, fmt.Sprintf(`{"type":"interaction_response","data":{"id":"r%d"}}`, i))
	}
	p.event(o.TurnID, `{"type":"message","data":{"text":"Outcomes:`+text+`."}}`)
	p.event(o.TurnID, `{"type":"done","data":{}}`)
	stop := "end_turn"
	p.write(o.TurnID, topics.AgentEvent{Result: &topics.AgentResult{OK: true, StopReason: &stop}})
}

func (p *pausedWorld) event(turn, raw string) {
	p.write(turn, topics.AgentEvent{Event: topics.Raw(raw)})
}

func (p *pausedWorld) write(turn string, e topics.AgentEvent) {
	r := p.runs[turn]
	r.seq++
	e.SessionID, e.TurnID, e.Attempt, e.Seq = r.session, turn, 1, r.seq
	if err := put(context.WithoutCancel(p.ctx), p.world, p.catalog.AgentEvents, r.session, e, ""); err != nil {
		p.t.Error(err)
	}
}

// batch waits for the one batch of a turn.
func (p *pausedWorld) batch(turn string) topics.BatchMessage {
	p.t.Helper()
	p.eventually(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.batches[turn]) > 0
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guarantee == processors.ExactlyOnce {
		require.Len(p.t, p.batches[turn], 1)
	}
	return p.batches[turn][0]
}
