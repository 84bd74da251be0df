package tools_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

const waitLimit = time.Minute

var noon = time.UnixMilli(1_790_000_000_120)

// paper is a publisher that stores the records.
type paper struct {
	mu      sync.Mutex
	records []processors.Outbound
	refuse  func(processors.Outbound) error
}

func (p *paper) Publish(ctx context.Context, records ...processors.Outbound) error {
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
	return ctx.Err()
}

// lines returns the records as "topic key value id".
func (p *paper) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := []string{}
	for _, r := range p.records {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Topic, r.Key, r.Value,
			r.Headers["turntable.id"])))
	}
	return lines
}

// bench is a worker without a consumer.
type bench struct {
	t      *testing.T
	paper  *paper
	clock  *clock.Fake
	worker *tools.Worker
}

func newBench(t *testing.T, functions map[string]tools.Func, c tools.Config) *bench {
	t.Helper()
	b := &bench{t: t, paper: &paper{}, clock: clock.NewFake(noon)}
	var err error
	if c.Clock == nil {
		c.Clock = b.clock
	}
	b.worker, err = tools.NewWorker("pilot", b.paper, functions, c)
	require.NoError(t, err)
	return b
}

// call returns the record of a tool call, as the turn writes it.
func call(id, name, input string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-tool-use", Offset: 7, Timestamp: noon.Add(-time.Second), Key: []byte("s"),
		Value: []byte(`{"tool_use_id":"` + id + `","tool_id":"` + name + `","name":"` + name + `","input":` + input +
			`,"session_id":"s","total_tools":2,"timestamp":"2026-09-21T14:13:19Z"}`),
		Headers: []processors.Header{{Name: "turntable.id", Value: []byte("turn/1/tool-use/" + id)}},
	}
}

func (b *bench) handle(r processors.Inbound) {
	b.t.Helper()
	require.NoError(b.t, b.worker.Handle(b.t.Context(), r))
}

// result returns the record of a result, as it is on the topic.
func result(id, name, value, status string) string {
	return `pilot-tool-use-result s {"session_id":"s","tool_use_id":"` + id + `","tool_id":"` + name +
		`","name":"` + name + `","result":` + value + `,"latency_ms":0,"status":"` + status + `","total_tools":2,` +
		`"timestamp":"2026-09-21T14:13:20.120Z"} turn/1/tool-use/` + id + `/result`
}

// returning returns a tool that returns the given value and error.
func returning(value any, err error) tools.Func {
	return func(context.Context, tools.Call) (any, error) { return value, err }
}
