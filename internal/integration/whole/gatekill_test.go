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
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

const gateInstances = 2

// Two processes with turns, gates and a door are killed at random moments while people decide, two of them in different ways
// about the same gate and each at another door. Each gate ends in exactly one outcome, which both are told. The tool runs for
// the approved calls, with the approved arguments, and for no other.
func TestGatesEndOnceWhileProcessesAreKilled(t *testing.T) {
	gates := kill.Size(t, "TURNTABLE_GATES", onBroker(24, 200))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		h := newGateWorld(t, guarantee)
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

// gateWorld is the processes and the people who decide.
type gateWorld struct {
	*world
	client *http.Client
	dirs   []string

	mu   sync.Mutex
	ran  map[string][]string // arguments with which the tool ran, by session
	told map[string]string   // outcome of which a person was told, by session
}

func newGateWorld(t *testing.T, guarantee processors.Guarantee) *gateWorld {
	h := &gateWorld{
		world:  newWorld(t, guarantee, topics.WithGates()),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 40 * time.Second},
		ran:    map[string][]string{}, told: map[string]string{},
	}
	h.dirs = h.world.dirs(gateInstances)
	return h
}

// start waits for the processes and starts the workers, which outlive them.
func (h *gateWorld) start() {
	for n := range gateInstances { // their topics exist once they serve
		h.eventually(func() bool {
			status, _, err := h.call(h.ctx, n, http.MethodGet, "/api/gates?status=pending", nil, "")
			return err == nil && status == http.StatusOK
		})
	}
	h.model(h.agent, h.think)
	worker := must(tools.NewWorker(h.agent, h.to, map[string]tools.Func{"pay": h.pay}, tools.Config{}))
	h.serve(func(ctx context.Context) error { return worker.Run(ctx, h.brokers) })
	h.followOutputs()
}

func (h *gateWorld) launch(n int) kill.Victim {
	return kill.Start(h.t, gatesProgram, h.child(h.dirs, n))
}

// think is the model: it pays, and then repeats what it was told.
func (h *gateWorld) think(_ context.Context, s think.Step) (think.Reply, error) {
	in := s.Input()
	if in.Role != nil && *in.Role == "tool" {
		return think.Say(string(in.Content)), nil
	}
	return think.Reply{Blocks: []think.Block{
		{Call: &think.Call{ID: "call-" + s.SessionID, Name: "pay", Input: topics.Raw(topics.Text(in.Content))}},
	}}, nil
}

// pay is the tool. After a crash of a turn it can be called again for the same call.
func (h *gateWorld) pay(_ context.Context, c tools.Call) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if args := string(c.Input); !slices.Contains(h.ran[c.SessionID], args) {
		h.ran[c.SessionID] = append(h.ran[c.SessionID], args)
	}
	return map[string]bool{"paid": true}, nil
}

// call sends a request to the door of a process.
func (h *gateWorld) call(ctx context.Context, n int, method, path string, body any, key string) (int, []byte, error) {
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
func (h *gateWorld) person(ctx context.Context, n int) error {
	session, to := fmt.Sprintf("s%03d", n), "mira"
	if n%4 == 3 {
		to = "nobody"
	}
	answered := h.expect(session)
	if err := h.write(ctx, session, "mira", fmt.Sprintf(`{"to":%q,"cents":%d}`, to, n), session); err != nil {
		return err
	}
	if n%4 != 3 {
		if err := h.decide(ctx, n, session); err != nil {
			return fmt.Errorf("%s: %w", session, err)
		}
	}
	_, err := next(ctx, answered, session)
	return err
}

func (h *gateWorld) decide(ctx context.Context, n int, session string) error {
	g, err := h.gate(ctx, n, session)
	if err != nil {
		return err
	}
	if n%10 == 8 {
		cancel := topics.Control{Action: topics.ActionCancel}
		if err := put(ctx, h.world, h.catalog.SessionControl, session, cancel, session+"/cancel"); err != nil {
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
func (h *gateWorld) gate(ctx context.Context, n int, session string) (seen, error) {
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
func (h *gateWorld) insist(ctx context.Context, n int, session, gate string, decision map[string]any) error {
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
