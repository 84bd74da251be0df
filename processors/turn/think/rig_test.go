package think_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC)

// paper is a publisher that stores the records.
type paper struct {
	mu      sync.Mutex
	records []processors.Outbound
	refuse  func(r processors.Outbound) error
}

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if p.refuse != nil {
			if err := p.refuse(r); err != nil {
				return err
			}
		}
		p.records = append(p.records, r)
	}
	return nil
}

func (p *paper) all() []processors.Outbound {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]processors.Outbound(nil), p.records...)
}

// bench is a worker without a consumer; tests pass the records.
type bench struct {
	t      *testing.T
	worker *think.Worker
	paper  *paper
	clock  *clock.Fake
}

func newBench(t *testing.T, model think.Func, c think.Config) *bench {
	t.Helper()
	b := &bench{t: t, paper: new(paper), clock: clock.NewFake(noon)}
	var err error
	if c.Clock == nil {
		c.Clock = b.clock
	}
	b.worker, err = think.New("pilot", b.paper, model, c)
	require.NoError(t, err)
	return b
}

func (b *bench) handle(r processors.Inbound) {
	b.t.Helper()
	require.NoError(b.t, b.worker.Handle(b.t.Context(), r))
}

// response returns the only record, which must be a response.
func (b *bench) response() topics.ThinkResponse {
	b.t.Helper()
	records := b.paper.all()
	require.Len(b.t, records, 1)
	require.Equal(b.t, "pilot-think-request-response", records[0].Topic)
	catalog, err := topics.For("pilot")
	require.NoError(b.t, err)
	in := catalog.ThinkRequestResponse.Codec().Unmarshal(records[0].Value)
	require.NoError(b.t, in.Err)
	return in.Value
}

// failure returns the only record, which must be a failure, and its reason.
func (b *bench) failure() (processors.Outbound, string) {
	b.t.Helper()
	records := b.paper.all()
	require.Len(b.t, records, 1)
	require.Equal(b.t, "pilot-think-dlq", records[0].Topic)
	return records[0], string(records[0].Headers[topics.HeaderErrorReason])
}

func record(value string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-enriched-message-input", Partition: 2, Offset: 7, Timestamp: noon.Add(-time.Second),
		Key: []byte("s"), Value: []byte(value),
		Headers: []processors.Header{{Name: "turntable.id", Value: []byte("turn/1/enriched/0")}},
	}
}

// question is a step of a session with a history.
const question = `{"session_id":"s","user_id":"mira","cost":1.5,"history":[` +
	`{"role":"user","content":"Hi","n":1.10},null,{"role":"assistant","content":"Hello."}],` +
	`"latest_input":{"session_id":"s","role":"user","content":"Which berth?","timestamp":"t","extra":true},` +
	`"memoir_context":"likes N4","timestamp":"t"}`

func saying(text string) think.Func {
	return func(context.Context, think.Step) (think.Reply, error) { return think.Say(text), nil }
}
