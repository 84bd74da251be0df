package tools_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

const secret = "a secret of at least thirty-two bytes"

// pilot is a complete agent: broker, turn, doors, a scripted model and a reader of its outputs.
type pilot struct {
	t       *testing.T
	brokers []string
	topics  topics.Catalog
	to      *processors.KafkaPublisher
	http    *httptest.Server
	outputs chan topics.Output
	results chan processors.Inbound

	guarantee processors.Guarantee
}

func newPilot(t *testing.T, guarantee processors.Guarantee) *pilot {
	t.Helper()
	t.Parallel() // each test has a broker of its own
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	p := &pilot{
		t: t, guarantee: guarantee, brokers: b.Addrs(), outputs: make(chan topics.Output, 100), results: make(chan processors.Inbound, 100),
	}
	p.topics, err = topics.For("pilot")
	require.NoError(t, err)
	p.to, err = processors.NewPublisher(p.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.to.Close()) })

	graph, err := turn.Graph("pilot", turn.Config{})
	require.NoError(t, err)
	processor, err := processors.New(p.brokers, graph, processors.WithTopics(p.topics), processors.WithInstance("one"),
		processors.WithGuarantee(guarantee), processors.WithTick(20*time.Millisecond))
	require.NoError(t, err)
	p.start(processor.Run)
	require.Eventually(t, func() bool { return processor.Health().State == processors.Running }, waitLimit,
		5*time.Millisecond)

	p.read("model", p.topics.EnrichedMessageInput.Name(), p.think)
	p.read("readers", p.topics.MessageOutput.Name(), func(_ context.Context, r processors.Inbound) error {
		p.outputs <- p.topics.MessageOutput.Codec().Unmarshal(r.Value).Value
		return nil
	})
	p.read("watchers", p.topics.ToolUseResult.Name(), func(_ context.Context, r processors.Inbound) error {
		p.results <- r
		return nil
	})
	doors, err := turnhttp.New("pilot", p.to, turnhttp.Config{CallbackSecrets: []string{secret}})
	require.NoError(t, err)
	p.http = httptest.NewServer(doors)
	t.Cleanup(p.http.Close)
	return p
}

// start runs a function until the test ends, or until it is stopped.
func (p *pilot) start(run func(context.Context) error) (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(p.t, <-ran)
	})
	p.t.Cleanup(stop)
	return stop
}

func (p *pilot) read(group, topic string, handle func(context.Context, processors.Inbound) error) {
	p.t.Helper()
	p.start(func(ctx context.Context) error {
		w, err := worker.New([]string{topic},
			func(ctx context.Context, r worker.Record) error { return handle(ctx, r.Inbound) }, worker.Config{Group: group, Drop: true})
		if err != nil {
			return err
		}
		return w.Run(ctx, p.brokers)
	})
}

func (p *pilot) work(functions map[string]tools.Func, c tools.Config) (stop func()) {
	p.t.Helper()
	c.TokenSecret, c.TokenTTL, c.Grace = secret, time.Hour, 100*time.Millisecond
	w, err := tools.NewWorker("pilot", p.to, functions, c)
	require.NoError(p.t, err)
	return p.start(func(ctx context.Context) error { return w.Run(ctx, p.brokers) })
}

// think is the model: it calls the tools that a message names, and answers with their results. "tool/id" chooses the id.
func (p *pilot) think(ctx context.Context, r processors.Inbound) error {
	in := p.topics.EnrichedMessageInput.Codec().Unmarshal(r.Value).Value
	m, err := topics.DecodeMessage(in.LatestInput)
	if err != nil {
		return err
	}
	response := topics.ThinkResponse{
		SessionID: in.SessionID, UserID: in.UserID, PreviousMessages: in.History, LastInputMessage: in.LatestInput,
	}
	if *m.Role == "user" {
		for i, name := range strings.Fields(topics.Text(m.Content)) {
			name, id, chosen := strings.Cut(name, "/")
			if !chosen {
				id = fmt.Sprintf("%s-%d", name, i)
			}
			response.ToolUses = append(response.ToolUses, topics.ToolUseItem{
				ToolUseID: &id, Name: &name, Input: topics.Raw(`{"n":1}`), SessionID: in.SessionID,
			})
		}
	} else {
		role := "assistant"
		said, err := json.Marshal(string(m.Content))
		if err != nil {
			return err
		}
		response.EndTurn = true
		response.LastInputResponse = topics.Splice(topics.EncodeMessage(topics.Message{
			SessionID: in.SessionID, Role: &role, Content: said,
		}))
	}
	out, err := processors.OutboundOf(p.topics.ThinkRequestResponse, string(r.Key), response, "")
	if err != nil {
		return err
	}
	return p.to.Publish(ctx, out)
}

func (p *pilot) post(path, body string, headers ...string) int {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.http.URL+path, strings.NewReader(body))
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.http.Client().Do(r)
	require.NoError(p.t, err)
	require.NoError(p.t, resp.Body.Close())
	return resp.StatusCode
}

func (p *pilot) chat(session, content string) {
	p.t.Helper()
	body := `{"session_id":"` + session + `","content":"` + content + `"}`
	require.Equal(p.t, 200, p.post(turnhttp.ChatPath, body, "Idempotency-Key", session+" "+content))
}

// callBack posts a result as the holder of a token.
func (p *pilot) callBack(minted, body string, headers ...string) {
	p.t.Helper()
	headers = append([]string{"Authorization", "Bearer " + minted}, headers...)
	require.Equal(p.t, 202, p.post(turnhttp.ToolResponsePath, body, headers...))
}

// cancel ends the open turn of a session.
func (p *pilot) cancel(session string) {
	p.t.Helper()
	out, err := processors.OutboundOf(p.topics.SessionControl, session, topics.Control{Action: topics.ActionCancel}, "")
	require.NoError(p.t, err)
	require.NoError(p.t, p.to.Publish(p.t.Context(), out))
}

func take[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitLimit):
		require.Fail(t, "nothing came")
		panic("unreachable")
	}
}

// both runs a test under both guarantees.
func both(t *testing.T, test func(t *testing.T, p *pilot)) {
	t.Helper()
	t.Parallel()
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, newPilot(t, g)) })
	}
}
