package whole

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ownModels is an agent behind /invoke as a new user builds it: turns, a model, a tool, the fold and the door.
type ownModels struct {
	*world
	url     string
	reached chan struct{} // gets an element when a model waits

	mu      sync.Mutex
	batches []topics.BatchMessage
}

func newOwnModels(t *testing.T, guarantee processors.Guarantee, config turn.Config) *ownModels {
	t.Helper()
	m := &ownModels{world: newWorld(t, guarantee, topics.WithEvents(), topics.WithGates()), reached: make(chan struct{}, 16)}
	m.world.run("turn", must(turn.Graph(m.agent, config)))
	m.world.run("fold", must(fold.Graph(m.agent, fold.Config{})))
	m.follow(func(r processors.Inbound) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.batches = append(m.batches, m.catalog.BatchMessages.Codec().Unmarshal(r.Value).Value)
	}, m.catalog.BatchMessages.Name())
	hands := must(tools.NewWorker(m.agent, m.to, map[string]tools.Func{
		"lookup": func(context.Context, tools.Call) (any, error) { return map[string]any{"berth": "N4"}, nil },
	}, tools.Config{}))
	m.serve(func(ctx context.Context) error { return hands.Run(ctx, m.brokers) })
	pipeline := must(invoke.NewPipeline(m.agent, m.brokers, m.to, invoke.PipelineConfig{}))
	m.serve(pipeline.Run)
	<-pipeline.Ready()
	server := httptest.NewServer(must(invoke.New(pipeline, invoke.Config{})))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// think runs a worker with a model.
func (m *ownModels) think(model think.Model, opts think.Config) (stop func()) {
	m.t.Helper()
	w, err := think.New(m.agent, m.to, model, opts)
	require.NoError(m.t, err)
	return m.serve(func(ctx context.Context) error { return w.Run(ctx, m.brokers) })
}

// streamed returns a model that yields its reply in pieces.
func (m *ownModels) streamed(pieces func(think.Step) []think.Delta, after ...func(context.Context, think.Step) error) think.Model {
	m.t.Helper()
	model, err := think.Stream(m.agent, m.to, think.StreamFunc(func(ctx context.Context, s think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			for _, d := range pieces(s) {
				if !yield(d, nil) {
					return
				}
			}
			for _, f := range after {
				if err := f(ctx, s); err != nil {
					yield(think.Delta{}, err)
					return
				}
			}
		}
	}))
	require.NoError(m.t, err)
	return model
}

// answersTool calls the tool for a user's message, and says what it returned.
func answersTool(s think.Step) []think.Delta {
	if *s.Input().Role != "tool" {
		return []think.Delta{
			{Thought: "hm"},
			{Text: "Let me "},
			{Text: "look."},
			{Call: &think.Call{ID: "c-" + s.Key, Name: "lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
			{Usage: &think.Usage{InputTokens: 10, OutputTokens: 2}},
		}
	}
	return []think.Delta{{Text: "Berth N4 "}, {Text: "is free."}, {Usage: &think.Usage{InputTokens: 20, OutputTokens: 3}}}
}

func (m *ownModels) request(session, accept string, headers ...string) *http.Request {
	m.t.Helper()
	body := fmt.Sprintf(`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"user","content":"Which berth is free?"}]}}}`, session)
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.url+"/invoke", strings.NewReader(body))
	require.NoError(m.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

type invoked struct {
	status int
	body   string
	turn   string
	err    error
}

// invoke sends a message and reads the whole response.
func (m *ownModels) invoke(session, accept string, headers ...string) invoked {
	m.t.Helper()
	return <-m.begin(session, accept, nil, headers...)
}

// begin sends a message and reads the response in the background. line is called for each line.
func (m *ownModels) begin(session, accept string, line func(string), headers ...string) <-chan invoked {
	m.t.Helper()
	r := m.request(session, accept, headers...)
	done := make(chan invoked, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			done <- invoked{err: err}
			return
		}
		defer resp.Body.Close()
		var body strings.Builder
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			body.WriteString(lines.Text() + "\n")
			if line != nil {
				line(lines.Text())
			}
		}
		done <- invoked{resp.StatusCode, body.String(), resp.Header.Get(invoke.HeaderTurn), lines.Err()}
	}()
	return done
}

// batch waits for the batch of a session's only turn.
func (m *ownModels) batch(session string) topics.BatchMessage {
	m.t.Helper()
	of := func() (list []topics.BatchMessage) {
		m.mu.Lock()
		defer m.mu.Unlock()
		seen := map[string]bool{}
		for _, b := range m.batches {
			raw, _ := json.Marshal(b)
			if b.SessionID == session && !seen[string(raw)] { // at least once, a batch may be repeated
				seen[string(raw)], list = true, append(list, b)
			}
		}
		return list
	}
	m.eventually(func() bool { return len(of()) > 0 })
	require.Len(m.t, of(), 1, "one batch a turn")
	return of()[0]
}

// withoutKey removes the id of the call, which the step's key makes unique.
func withoutKey(t *testing.T, messages string) string {
	t.Helper()
	from := strings.Index(messages, `"c-`)
	require.GreaterOrEqual(t, from, 0, messages)
	id, _, _ := strings.Cut(messages[from+1:], `"`)
	return strings.ReplaceAll(messages, id, "c")
}

func TestInvokeAnswersWithTheModelsOfTheLibrary(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		m := newOwnModels(t, guarantee, turn.Config{})
		stop := m.think(m.streamed(answersTool), think.Config{})
		got := m.invoke("json", "application/json")
		require.NoError(t, got.err)
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Contains(t, got.body, "Berth N4 is free.")
		b := m.batch("json")
		require.Equal(t, 1, strings.Count(string(b.Messages), "Let me look."))
		require.Contains(t, string(b.Messages), `\"berth\":\"N4\"`)
		require.Equal(t, topics.BatchComplete, b.State)
		require.Equal(t, `"end_turn"`, string(b.StopReason))
		require.JSONEq(t, `{"input":30,"output":5,"total":35}`, string(b.Usage))

		got = m.invoke("sse", "text/event-stream")
		require.NoError(t, got.err)
		require.Equal(t, http.StatusOK, got.status, got.body)
		for _, want := range []string{"step_start", "thought_delta", "message_delta", "tool_call", "step_end", "tool_result", "stream_end"} {
			require.Contains(t, got.body, want)
		}
		require.Equal(t, 2, strings.Count(got.body, `"type": "step_start", "data"`), got.body)
		require.Equal(t, 1, strings.Count(got.body, "stream_end"))
		require.Contains(t, got.body, `"state": "complete"`)
		require.Equal(t, withoutKey(t, string(b.Messages)), withoutKey(t, string(m.batch("sse").Messages)))

		// A model that does not stream: the turn writes what it says.
		stop()
		m.think(think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
			var r think.Reply
			for _, d := range answersTool(s) {
				switch {
				case d.Call != nil:
					r.Blocks = append(r.Blocks, think.Block{Call: d.Call})
				case d.Text != "" && len(r.Blocks) > 0:
					r.Blocks[0].Text += d.Text
				case d.Text != "":
					r.Blocks = append(r.Blocks, think.Block{Text: d.Text})
				}
			}
			return r, nil
		}), think.Config{})
		got = m.invoke("whole", "application/json")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Equal(t, withoutKey(t, string(b.Messages)), withoutKey(t, string(m.batch("whole").Messages)))
	})
}

func TestPartialTextOfAnInterruptedModelIsNotInTheTurn(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		m := newOwnModels(t, guarantee, turn.Config{})
		kill := m.think(m.streamed(func(think.Step) []think.Delta { return []think.Delta{{Text: "Berth S1 is"}} },
			func(ctx context.Context, _ think.Step) error {
				<-ctx.Done()
				return ctx.Err()
			}), think.Config{Config: worker.Config{Grace: time.Millisecond}})
		shown := make(chan struct{})
		show := sync.OnceFunc(func() { close(shown) })
		stream := m.begin("dead", "text/event-stream", func(line string) {
			if strings.Contains(line, "Berth S1 is") {
				show()
			}
		}, "Idempotency-Key", "k")
		<-shown
		batch := m.begin("dead", "application/json", nil, "Idempotency-Key", "k") // the same turn
		kill()
		m.think(m.streamed(answersTool), think.Config{})

		got := <-stream
		require.NoError(t, got.err)
		require.Contains(t, got.body, `"reason": "superseded"`)
		again := m.invoke("dead", "text/event-stream", "Last-Event-ID", got.turn+".2.0")
		require.NotContains(t, again.body, "S1")
		require.Contains(t, again.body, `"state": "complete"`)
		whole := <-batch
		require.Equal(t, http.StatusOK, whole.status, whole.body)
		require.NotContains(t, whole.body, "S1")
		b := m.batch("dead")
		require.Equal(t, topics.BatchComplete, b.State)
		require.NotContains(t, string(b.Messages), "S1")
		require.Contains(t, string(b.Messages), "Berth N4 is free.")
	})
}

func TestEveryEndOfATurnEndsItsStreamOnce(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		m := newOwnModels(t, guarantee, turn.Config{ThinkTimeout: 2 * time.Second})
		waits := func(ctx context.Context, s think.Step) error {
			m.reached <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		fails := func(_ context.Context, s think.Step) error {
			if strings.HasPrefix(s.SessionID, "fails") {
				return errors.New("no quota")
			}
			return nil
		}
		m.think(m.streamed(func(think.Step) []think.Delta { return []think.Delta{{Text: "Berth"}} }, fails, waits), think.Config{})

		got := m.invoke("fails", "application/json")
		require.Equal(t, http.StatusBadGateway, got.status, got.body)
		require.Contains(t, got.body, "no quota")
		b := m.batch("fails")
		require.Equal(t, []string{topics.BatchFailed, "think_failed"}, []string{b.State, *b.Reason})
		require.Contains(t, *b.Error, "no quota")

		got = m.invoke("late", "text/event-stream")
		require.Contains(t, got.body, `"state": "expired"`)
		require.Equal(t, 1, strings.Count(got.body, "stream_end"))
		b = m.batch("late")
		require.Equal(t, []string{topics.BatchExpired, "think_timeout"}, []string{b.State, *b.Reason})
		<-m.reached

		shown := make(chan struct{})
		show := sync.OnceFunc(func() { close(shown) })
		cancelled := m.begin("cancelled", "text/event-stream", func(line string) {
			if strings.Contains(line, "Berth") { // without an event, the turn would have neither a stream nor a batch
				show()
			}
		})
		<-m.reached
		<-shown
		out, err := processors.OutboundOf(m.catalog.SessionControl, "cancelled", topics.Control{Action: topics.ActionCancel}, "")
		require.NoError(t, err)
		require.NoError(t, m.to.Publish(t.Context(), out))
		got = <-cancelled
		require.Contains(t, got.body, `"state": "cancelled"`)
		require.Equal(t, 1, strings.Count(got.body, "stream_end"))
		require.Equal(t, topics.BatchCancelled, m.batch("cancelled").State)
	})
}

func TestStreamGoesOnAfterAnApproval(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		policy := approval.Policy{Rules: []approval.Rule{{Tool: "lookup", Effect: approval.Ask}}}
		m := newOwnModels(t, guarantee, turn.Config{Approval: &policy})
		m.world.run("grants", must(gate.GrantsGraph(m.agent, gate.Config{})))
		m.world.run("gates", must(gate.Graph(m.agent, gate.Config{Policy: policy})))
		m.follow(func(r processors.Inbound) {
			g := m.catalog.GateRequests.Codec().Unmarshal(r.Value).Value
			if g.Withdrawn != "" {
				return
			}
			d := topics.GateDecision{
				GateID: g.GateID, SessionID: g.SessionID, DecisionID: "d-" + g.GateID, Verdict: topics.VerdictApprove,
				ArgsSHA256: g.ArgsSHA256,
			}
			out, err := processors.OutboundOf(m.catalog.GateDecisions, g.SessionID, d, "")
			if err == nil {
				err = m.to.Publish(context.Background(), out)
			}
			if err != nil {
				t.Error(err)
			}
		}, m.catalog.GateRequests.Name())
		m.think(m.streamed(answersTool), think.Config{})
		got := m.invoke("asked", "text/event-stream")
		require.NoError(t, got.err)
		request, response := strings.Index(got.body, "interaction_request"), strings.Index(got.body, "interaction_response")
		result := strings.Index(got.body, `"tool_result"`)
		require.True(t, 0 < request && request < response && response < result, got.body)
		require.Contains(t, got.body, `"state": "complete"`)
		b := m.batch("asked")
		require.Contains(t, string(b.Messages), `\"berth\":\"N4\"`)
		require.Empty(t, b.PendingInteraction)
	})
}

// claude is a server with the API of Anthropic that calls the tool once.
func claude(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data) }
		send("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude",`+
			`"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`)
		block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"Berth N4 is free."}`, "end_turn"
		if len(body.Messages) == 1 {
			block, stop = `{"type":"tool_use","id":"toolu_1","name":"lookup","input":{}}`, "tool_use"
			delta = `{"type":"input_json_delta","partial_json":"{\"at\":\"18:00\"}"}`
		}
		send("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
		send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
		send("content_block_stop", `{"type":"content_block_stop","index":0}`)
		send("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`"},"usage":{"output_tokens":5}}`)
		send("message_stop", `{"type":"message_stop"}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestInvokeAnswersWithTheAnthropicAdapter(t *testing.T) {
	t.Parallel()
	m := newOwnModels(t, processors.AtLeastOnce, turn.Config{})
	model, err := anthropic.New(think.Settings{
		Key: "key", BaseURL: claude(t).URL, Model: "claude",
		Tools: []think.Tool{{Name: "lookup", InputSchema: topics.Raw(`{"type":"object"}`)}},
	})
	require.NoError(t, err)
	streamed, err := think.Stream(m.agent, m.to, model)
	require.NoError(t, err)
	m.think(streamed, think.Config{})
	got := m.invoke("claude", "application/json")
	require.Equal(t, http.StatusOK, got.status, got.body)
	for _, want := range []string{"toolu_1", `\"berth\":\"N4\"`, "Berth N4 is free."} {
		require.Contains(t, got.body, want)
	}
	require.Contains(t, string(m.batch("claude").Messages), "toolu_1")
}
