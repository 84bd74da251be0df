package whole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/group"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// paused is an agent behind /invoke whose turns pause: the fold group, the gates, doors, and a runner that continues the turns
// when all its requests have outcomes.
type paused struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	opts      []group.Option

	killGates, killFold func()

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

func newPaused(t *testing.T, guarantee processors.Guarantee, opts ...group.Option) *paused {
	t.Helper()
	p := &paused{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), runs: map[string]*run{}, batches: map[string][]topics.BatchMessage{},
	}
	agent := testbroker.Agent()
	var err error
	p.topics, err = topics.For(agent, topics.WithEvents(), topics.WithGates())
	require.NoError(t, err)
	p.to, err = processors.NewPublisher(p.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.to.Close()) })
	p.opts = append([]group.Option{group.WithGates()}, opts...)
	grants, err := gate.GrantsGraph(agent)
	require.NoError(t, err)
	p.startFold()
	p.start("grants", grants)
	p.startGates()
	p.follow(p.receive, p.topics.GateOutcomes.Name(), p.topics.MessageInput.Name(), p.topics.BatchMessages.Name())
	return p
}

func (p *paused) startGates() {
	p.t.Helper()
	g, err := gate.Graph(p.topics.Agent)
	require.NoError(p.t, err)
	p.killGates = p.start("gates", g)
}

func (p *paused) startFold() {
	p.t.Helper()
	g, err := group.Graph(p.topics.Agent, p.opts...)
	require.NoError(p.t, err)
	p.killFold = p.start("fold", g)
}

// start runs a group until the test ends or kill is called.
func (p *paused) start(name string, g *goka.GroupGraph) (kill func()) {
	p.t.Helper()
	processor, err := processors.New(p.brokers, g, processors.WithTopics(p.topics), processors.WithPartitions(2),
		processors.WithInstance(name), processors.WithGuarantee(p.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, processors.ErrKilled) {
			require.NoError(p.t, err)
		}
	})
	p.t.Cleanup(stop)
	require.Eventually(p.t, func() bool { return processor.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return func() {
		processor.Kill()
		stop()
	}
}

func (p *paused) follow(handle func(processors.Inbound), names ...string) {
	p.t.Helper()
	f, err := processors.NewFollower(p.brokers, names, handle)
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		require.NoError(p.t, <-ended)
	})
	<-f.Ready()
}

// invokeDoor is a process that serves /invoke.
type invokeDoor struct {
	p    *paused
	http *httptest.Server
	stop func()
}

func (p *paused) door() *invokeDoor {
	p.t.Helper()
	pipeline, err := invoke.NewPipeline(p.topics.Agent, p.brokers, p.to, invoke.WithGates())
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Run(ctx) }()
	<-pipeline.Ready()
	handler, err := invoke.New(pipeline)
	require.NoError(p.t, err)
	d := &invokeDoor{p: p, http: httptest.NewServer(handler)}
	d.stop = sync.OnceFunc(func() {
		d.http.Close()
		cancel()
		require.NoError(p.t, <-ended)
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
func (p *paused) receive(r processors.Inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Topic {
	case p.topics.MessageInput.Name():
		p.begin(p.topics.MessageInput.Codec().Unmarshal(r.Value).Value)
	case p.topics.GateOutcomes.Name():
		p.decided(p.topics.GateOutcomes.Codec().Unmarshal(r.Value).Value)
	default:
		b := p.topics.BatchMessages.Codec().Unmarshal(r.Value).Value
		p.batches[b.TurnID] = append(p.batches[b.TurnID], b)
	}
}

// begin asks for as many payments as the message says, and pauses.
func (p *paused) begin(m topics.Message) {
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
		r.gates[topics.GateID(r.session, turn, fold.GateCall(turn, 1, i))] = nil
	}
	p.event(turn, `{"type":"done","data":{"stopReason":"paused"}}`)
	stop := "paused"
	p.write(turn, topics.AgentEvent{Result: &topics.AgentResult{OK: true, StopReason: &stop}})
}

// decided continues a turn when all its gates have outcomes.
func (p *paused) decided(o topics.GateOutcome) {
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
		o := r.gates[topics.GateID(r.session, o.TurnID, fold.GateCall(o.TurnID, 1, i))]
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

func (p *paused) event(turn, raw string) { p.write(turn, topics.AgentEvent{Event: topics.Raw(raw)}) }

func (p *paused) write(turn string, e topics.AgentEvent) {
	r := p.runs[turn]
	r.seq++
	e.SessionID, e.TurnID, e.Attempt, e.Seq = r.session, turn, 1, r.seq
	out, err := processors.OutboundOf(p.topics.AgentEvents, r.session, e, "")
	if err == nil {
		err = p.to.Publish(context.Background(), out)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// batch waits for the one batch of a turn.
func (p *paused) batch(turn string) topics.BatchMessage {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.batches[turn]) > 0
	}, waitLimit, 5*time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guarantee == processors.ExactlyOnce {
		require.Len(p.t, p.batches[turn], 1)
	}
	return p.batches[turn][0]
}
