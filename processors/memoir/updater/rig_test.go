package updater_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC)

// end is the ID of a session's end, and snapshot what the group sends of it.
const (
	end      = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	snapshot = `{"session_id":"harbor-s19","user_id":"mira","memoir_context":"Skipper of the Alba","think_response":{` +
		`"session_id":"harbor-s19","total_session_cost":0.5,"previous_messages":[{"role":"user","content":"Hi"},null,{"role":{}},` +
		`{"role":"assistant","content":"Hello."}],"end_turn":true,"messages":[{"role":"assistant","content":"Hello."}]}}`
)

// paper is a publisher that stores the records. It refuses those over its limit.
type paper struct {
	mu      sync.Mutex
	limit   int
	records []processors.Outbound
}

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if p.limit > 0 && len(r.Value) > p.limit {
			return processors.ErrTooLarge
		}
	}
	p.records = append(p.records, records...)
	return nil
}

// bench is a worker without a consumer; tests pass the records.
type bench struct {
	t      *testing.T
	worker *updater.Worker
	paper  *paper
}

func newBench(t *testing.T, f updater.Func, c updater.Config) *bench {
	t.Helper()
	b := &bench{t: t, paper: new(paper)}
	var err error
	if c.Clock == nil {
		c.Clock = clock.NewFake(noon)
	}
	b.worker, err = updater.New("pilot", b.paper, f, c)
	require.NoError(t, err)
	return b
}

func (b *bench) handle(r processors.Inbound) {
	b.t.Helper()
	require.NoError(b.t, b.worker.Handle(b.t.Context(), r))
}

func record(value string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-memoir-context-session-end", Partition: 2, Offset: 7, Timestamp: noon.Add(-time.Second),
		Key: []byte("mira"), Value: []byte(value),
		Headers: []processors.Header{
			{Name: topics.HeaderID, Value: []byte(end + "/snapshot/2")},
			{Name: topics.HeaderMemoirVersion, Value: []byte("41")},
		},
	}
}

// memory returns the text of the only record, which must be a memory.
func (b *bench) memory() string {
	b.t.Helper()
	require.Len(b.t, b.paper.records, 1)
	r := b.paper.records[0]
	require.Equal(b.t, "pilot-memoir-context", r.Topic)
	require.Equal(b.t, "mira", r.Key)
	require.Equal(b.t, end+"/snapshot/2/memory", string(r.Headers[topics.HeaderID]))
	require.Equal(b.t, "41", string(r.Headers[topics.HeaderMemoirVersion]))
	require.NotNil(b.t, r.Value, "a tombstone would make the group forget the user")
	return string(r.Value)
}

// failure returns the only record, which must be a failure, and its reason.
func (b *bench) failure() (r processors.Outbound, reason string) {
	b.t.Helper()
	require.Len(b.t, b.paper.records, 1)
	r = b.paper.records[0]
	require.Equal(b.t, "pilot-memoir-dlq", r.Topic)
	require.Equal(b.t, "mira", r.Key)
	require.Equal(b.t, end+"/snapshot/2/failure", string(r.Headers[topics.HeaderID]))
	require.Equal(b.t, "41", string(r.Headers[topics.HeaderMemoirVersion]))
	require.Equal(b.t, "pilot-memoir-context-session-end", string(r.Headers[topics.HeaderErrorSourceTopic]))
	require.Equal(b.t, "7", string(r.Headers[topics.HeaderErrorSourceOffset]))
	return r, string(r.Headers[topics.HeaderErrorReason])
}

func saying(text string) updater.Func {
	return func(context.Context, updater.Ended) (updater.Memory, error) { return updater.Memory{Text: text}, nil }
}

func failing(err error) updater.Func {
	return func(context.Context, updater.Ended) (updater.Memory, error) { return updater.Memory{}, err }
}

var uncalled updater.Func = func(context.Context, updater.Ended) (updater.Memory, error) { panic("called") }
