package whole

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

const (
	gatePartitions = 2
	gateInstances  = 2
)

// Two processes with turns, gates and a door are killed at random moments while people decide, two of them in different ways
// about the same gate and each at another door. Each gate ends in exactly one outcome, which both are told. The tool runs for
// the approved calls, with the approved arguments, and for no other.
func TestGatesEndOnceWhileProcessesAreKilled(t *testing.T) {
	gates := kill.Size(t, "TURNTABLE_GATES", onBroker(24, 200))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		h := newHall(t, guarantee)
		loop := &kill.Loop{
			Seed: 1, Kills: kills(t, 4, 12), Victims: gateInstances, Launch: h.launch, Judge: func() { h.judge(gates) },
			Brokers: h.brokers, Agents: []string{h.agent},
		}
		loop.Each(gates, 16, h.person)
		loop.Start()
		h.start()
		loop.Run(h.ctx, t)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// hall is the system under test and the people who decide.
type hall struct {
	t         *testing.T
	ctx       context.Context
	agent     string
	brokers   []string
	guarantee processors.Guarantee
	catalog   topics.Catalog
	to        *processors.KafkaPublisher
	client    *http.Client
	dirs      [gateInstances]string

	mu      sync.Mutex
	ran     map[string][]string // arguments with which the tool ran, by session
	told    map[string]string   // outcome of which a person was told, by session
	outputs map[string]chan struct{}
}

func newHall(t *testing.T, guarantee processors.Guarantee) *hall {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	h := &hall{
		t: t, ctx: ctx, agent: testbroker.Agent(), brokers: testbroker.Start(t), guarantee: guarantee,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 40 * time.Second},
		ran:    map[string][]string{}, told: map[string]string{}, outputs: map[string]chan struct{}{},
	}
	var err error
	h.catalog, err = topics.For(h.agent, topics.WithGates())
	require.NoError(t, err)
	h.to, err = processors.NewPublisher(h.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.to.Close()) })
	for n := range h.dirs {
		h.dirs[n] = t.TempDir()
	}
	return h
}

// start waits for the processes and starts the workers, which outlive them.
func (h *hall) start() {
	for n := range gateInstances { // their topics exist once they serve
		require.Eventually(h.t, func() bool {
			status, _, err := h.call(h.ctx, n, http.MethodGet, "/api/gates?status=pending", nil, "")
			return err == nil && status == http.StatusOK
		}, waitLimit, 20*time.Millisecond)
	}
	model, err := think.New(h.agent, h.to, think.Func(h.think))
	require.NoError(h.t, err)
	worker, err := tools.New(h.agent, h.to, map[string]tools.Func{"pay": h.pay})
	require.NoError(h.t, err)
	outputs, err := processors.NewFollower(h.brokers, []string{h.catalog.MessageOutput.Name()}, h.onOutput)
	require.NoError(h.t, err)
	ctx, cancel := context.WithCancel(h.ctx)
	var workers errgroup.Group
	workers.Go(func() error { return model.Run(ctx, h.brokers) })
	workers.Go(func() error { return worker.Run(ctx, h.brokers) })
	workers.Go(func() error { return outputs.Run(ctx) })
	h.t.Cleanup(func() {
		cancel()
		require.NoError(h.t, workers.Wait())
	})
	select {
	case <-outputs.Ready():
	case <-h.ctx.Done():
		require.Fail(h.t, "the follower is not ready")
	}
}

func (h *hall) launch(n int) kill.Victim {
	return kill.Start(h.t, gatesProgram, child{
		Agent: h.agent, Brokers: h.brokers, Dir: h.dirs[n], Instance: "i" + strconv.Itoa(n), Guarantee: h.guarantee,
	})
}

// think is the model: it pays, and then repeats what it was told.
func (h *hall) think(_ context.Context, s think.Step) (think.Reply, error) {
	in := s.Input()
	if in.Role != nil && *in.Role == "tool" {
		return think.Say(string(in.Content)), nil
	}
	return think.Reply{Blocks: []think.Block{
		{Call: &think.Call{ID: "call-" + s.SessionID, Name: "pay", Input: topics.Raw(topics.Text(in.Content))}},
	}}, nil
}

// pay is the tool. After a crash of a turn it can be called again for the same call.
func (h *hall) pay(_ context.Context, c tools.Call) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if args := string(c.Input); !slices.Contains(h.ran[c.SessionID], args) {
		h.ran[c.SessionID] = append(h.ran[c.SessionID], args)
	}
	return map[string]bool{"paid": true}, nil
}

func (h *hall) onOutput(r processors.Inbound) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.outputs[string(r.Key)]; ok {
		delete(h.outputs, string(r.Key))
		close(c)
	}
}

// call sends a request to the door of a process.
func (h *hall) call(ctx context.Context, n int, method, path string, body any, key string) (int, []byte, error) {
	address, err := os.ReadFile(filepath.Join(h.dirs[n], addressFile))
	if err != nil {
		return 0, nil, err
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+string(address)+path, bytes.NewReader(encoded))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response, err := h.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// seen is what a person sees of a gate.
type seen struct {
	ID         string `json:"gate_id"`
	ArgsSHA256 string `json:"args_sha256"`
	Outcome    *struct {
		Status     string `json:"status"`
		DecisionID string `json:"decision_id"`
	} `json:"outcome"`
}

// person sends a message, decides about its gate together with another person, and waits for the answer. Every fourth gate
// gets no decision, and every tenth turn is cancelled while people decide.
func (h *hall) person(ctx context.Context, n int) error {
	session, to := fmt.Sprintf("s%03d", n), "mira"
	if n%4 == 3 {
		to = "nobody"
	}
	answered := make(chan struct{})
	h.mu.Lock()
	h.outputs[session] = answered
	h.mu.Unlock()
	role, content := "user", topics.Raw(strconv.Quote(fmt.Sprintf(`{"to":%q,"cents":%d}`, to, n)))
	m, err := processors.OutboundOf(h.catalog.MessageInput, session, topics.Message{SessionID: &session, Role: &role, Content: content}, session)
	if err != nil {
		return err
	}
	if err := h.to.Publish(ctx, m); err != nil {
		return err
	}
	if n%4 != 3 {
		if err := h.decide(ctx, n, session); err != nil {
			return fmt.Errorf("%s: %w", session, err)
		}
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has no output: %w", session, context.Cause(ctx))
	}
}

func (h *hall) decide(ctx context.Context, n int, session string) error {
	g, err := h.gate(ctx, n, session)
	if err != nil {
		return err
	}
	if n%10 == 8 {
		c, err := processors.OutboundOf(h.catalog.SessionControl, session, topics.Control{Action: topics.ActionCancel}, session+"/cancel")
		if err != nil {
			return err
		}
		if err := h.to.Publish(ctx, c); err != nil {
			return err
		}
	}
	approve := map[string]any{"verdict": "approve", "args_sha256": g.ArgsSHA256}
	deny := map[string]any{"verdict": "deny", "reason": "no", "args_sha256": g.ArgsSHA256}
	if n%4 == 2 {
		approve["edited_args"] = map[string]any{"to": "ines", "cents": 1}
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return h.insist(ctx, n, session, g.ID, approve) })
	both.Go(func() error { return h.insist(ctx, n+1, session, g.ID, deny) })
	return both.Wait()
}

// gate waits for the open gate of a session.
func (h *hall) gate(ctx context.Context, n int, session string) (seen, error) {
	for ; ctx.Err() == nil; n++ {
		status, body, err := h.call(ctx, n%gateInstances, http.MethodGet,
			"/api/gates?status=pending&wait=2s&session_id="+url.QueryEscape(session), nil, "")
		if err != nil || status != http.StatusOK {
			rest(ctx)
			continue
		}
		var list struct {
			Gates []seen `json:"gates"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return seen{}, err
		}
		if len(list.Gates) > 0 {
			return list.Gates[0], nil
		}
	}
	return seen{}, context.Cause(ctx)
}

// insist repeats a decision, at one door after the other, until a door tells the outcome.
func (h *hall) insist(ctx context.Context, n int, session, gate string, decision map[string]any) error {
	for ; ctx.Err() == nil; n++ {
		status, body, err := h.call(ctx, n%gateInstances, http.MethodPost, "/api/gates/"+gate+"/decision", decision,
			session+fmt.Sprint(decision["verdict"]))
		if err != nil || status == http.StatusAccepted || status >= 500 {
			rest(ctx)
			continue
		}
		if status != http.StatusOK && status != http.StatusConflict {
			return fmt.Errorf("status %d: %s", status, body)
		}
		var said struct {
			Gate seen `json:"gate"`
		}
		if err := json.Unmarshal(body, &said); err != nil {
			return err
		}
		if said.Gate.Outcome == nil {
			return fmt.Errorf("status %d without an outcome: %s", status, body)
		}
		outcome := said.Gate.Outcome.Status + " " + said.Gate.Outcome.DecisionID
		h.mu.Lock()
		before, known := h.told[session]
		h.told[session] = outcome
		h.mu.Unlock()
		if known && before != outcome {
			return fmt.Errorf("two outcomes: %s and %s", before, outcome)
		}
		return nil
	}
	return context.Cause(ctx)
}

// rest waits a moment before a request is repeated.
func rest(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}
