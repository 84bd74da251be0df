package fold

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// tester is the common interface of tests and rapid's checks.
type tester interface {
	require.TestingT
	Helper()
}

var quay, _ = topics.For("quay")

// play applies inputs to a session and collects the effects. It encodes and decodes the row between two inputs.
type play struct {
	tb     tester
	config Config
	now    time.Time
	row    []byte
	parts  map[uint32][]byte
	// whole means that the table does not support parts.
	whole bool
	past  []input
	// batches are the emitted batches, by id.
	batches map[string][]topics.BatchMessage
	// gates are the requested gates by id, and withdrawn the causes of the withdrawn ones.
	gates     map[string]topics.GateRequest
	withdrawn map[string]topics.GateCause
	// written counts the bytes of rows and parts that were written to the table.
	written int
}

func newPlay(t tester, change ...func(*Config)) *play {
	p := &play{
		tb: t, now: time.UnixMilli(1_790_000_000_000).UTC(),
		parts: map[uint32][]byte{}, batches: map[string][]topics.BatchMessage{},
		gates: map[string]topics.GateRequest{}, withdrawn: map[string]topics.GateCause{},
	}
	require.NoError(t, p.config.complete())
	for _, f := range change {
		f(&p.config)
	}
	return p
}

func defaults() *Config {
	var c Config
	_ = c.complete()
	return &c
}

// streamRecord returns a record of agent-events as the codec decodes it.
func streamRecord(t tester, e topics.AgentEvent) input {
	t.Helper()
	if e.SessionID == "" {
		e.SessionID = "s"
	}
	if e.Attempt == 0 {
		e.Attempt = 1
	}
	raw, err := quay.AgentEvents.Codec().Marshal(e)
	require.NoError(t, err)
	d := quay.AgentEvents.Codec().Unmarshal(raw)
	require.NoError(t, d.Err, "%s", raw)
	return eventReceived{record(""), d.Value}
}

func eventRecord(t tester, turn string, seq int64, event string) input {
	t.Helper()
	return streamRecord(t, topics.AgentEvent{TurnID: turn, Seq: seq, Event: topics.Raw(event)})
}

func terminalRecord(t tester, turn string, seq int64, r topics.AgentResult) input {
	t.Helper()
	return streamRecord(t, topics.AgentEvent{TurnID: turn, Seq: seq, Result: &r})
}

func okResult(stopReason string) topics.AgentResult {
	return topics.AgentResult{OK: true, StopReason: &stopReason}
}

func startEvent(id string) string { return `{"type":"message_start","data":{"id":"` + id + `"}}` }
func deltaEvent(id, text string) string {
	return `{"type":"message_delta","data":{"id":"` + id + `","delta":` + strconv.Quote(text) + `}}`
}

const plainDone = `{"type":"done","data":{"type":"done"}}`

func doneWith(reason string) string { return `{"type":"done","data":{"stopReason":"` + reason + `"}}` }

// handle applies an input and executes all its effects.
func (p *play) handle(in input) effects {
	p.tb.Helper()
	out := p.decide(in)
	p.past = append(p.past, in)
	p.perform(in, out)
	return out.Effects
}

func (p *play) decide(in input) machine.Outcome[*foldrow.Row] {
	p.tb.Helper()
	parts := parts(func(n uint32) ([]byte, error) { return bytes.Clone(p.parts[n]), nil })
	if p.whole {
		parts = nil
	}
	out, err := apply(p.state(), "s", in, parts, p.now, quay, p.config)
	require.NoError(p.tb, err)
	return out
}

// crash applies an input and executes only the first of its effects.
func (p *play) crash(in input, performed int) {
	p.tb.Helper()
	out := p.decide(in)
	for _, e := range out.Effects[:min(performed, len(out.Effects))] {
		if e.Part == 0 || e.Value != nil { // parts are deleted after the row is written
			p.do(e)
		}
	}
}

func (p *play) do(e machine.Effect) {
	p.tb.Helper()
	switch v := e.Value.(type) {
	case topics.BatchMessage:
		p.batches[e.ID] = append(p.batches[e.ID], v)
		require.LessOrEqual(p.tb, p.size(v), p.config.RecordLimit)
	case topics.GateRequest:
		p.gate(e.ID, v)
	case []byte:
		require.False(p.tb, p.whole)
		p.parts[e.Part] = bytes.Clone(v)
		p.written += len(v)
	case nil:
		if e.Part != 0 {
			require.Contains(p.tb, p.parts, e.Part)
			delete(p.parts, e.Part)
		}
	}
}

func (p *play) size(b topics.BatchMessage) int {
	raw, err := quay.BatchMessages.Codec().Marshal(b)
	require.NoError(p.tb, err)
	d := quay.BatchMessages.Codec().Unmarshal(raw)
	require.NoError(p.tb, d.Err, "%s", raw)
	return len(raw)
}

func (p *play) perform(in input, out machine.Outcome[*foldrow.Row]) {
	p.tb.Helper()
	for _, e := range out.Effects {
		if e.Part != 0 && e.Value != nil && slices.Contains(p.named(), e.Part) {
			require.Fail(p.tb, "a part that is named is written again")
		}
		p.do(e)
	}
	switch {
	case !out.Changed:
	case out.Row == nil:
		require.NotNil(p.tb, p.row, "a row that is not there need not go")
		p.row = nil
	default:
		raw, err := foldrow.Table.Marshal(out.Row)
		require.NoError(p.tb, err)
		require.LessOrEqual(p.tb, len(raw), p.config.RecordLimit)
		p.row = raw
		p.written += len(raw)
		at, ok := rows.Deadline(raw)
		require.True(p.tb, ok, "every row goes one day")
		if _, timer := in.(deadlineReached); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "what is due is done")
		}
	}
	// Parts that a crash left behind can exist, too. The row does not refer to them.
	for _, n := range p.named() {
		if _, there := p.parts[n]; !there {
			require.Fail(p.tb, "the row names a part that is not there")
		}
	}
}

// named returns the parts that the row refers to.
func (p *play) named() (numbers []uint32) {
	row := p.state()
	for _, n := range partsOf(row) {
		if n != 0 {
			numbers = append(numbers, n)
		}
	}
	inline := map[uint32]bool{}
	for _, i := range row.GetInline() {
		inline[i.Number] = true
	}
	return slices.DeleteFunc(numbers, func(n uint32) bool { return inline[n] })
}

func (p *play) state() *foldrow.Row {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	r, err := foldrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return r
}

// until fires deadlines up to a time from now.
func (p *play) until(d time.Duration) (all effects) {
	p.tb.Helper()
	end := p.now.Add(d)
	for {
		at, ok := rows.Deadline(p.row)
		if !ok || at > end.UnixMilli() {
			p.now = end
			return all
		}
		if due := time.UnixMilli(at).UTC(); due.After(p.now) {
			p.now = due
		}
		all = append(all, p.handle(deadlineReached{})...)
	}
}

// settle fires deadlines until the session's row is deleted.
func (p *play) settle() (all effects) {
	p.tb.Helper()
	for p.row != nil {
		all = append(all, p.until(time.Hour)...)
	}
	require.Empty(p.tb, p.parts)
	return all
}

// only returns the one batch of a turn.
func (p *play) only(turn string) topics.BatchMessage {
	p.tb.Helper()
	list := p.batches[recordID("s", turn, "batch")]
	require.Len(p.tb, list, 1, "%v", slices.Sorted(maps.Keys(p.batches)))
	return list[0]
}

type effects []machine.Effect

// record returns a record with an ID and a value.
func record(id string) *machine.Record { return &machine.Record{ID: id, Value: []byte("{}")} }

// batches returns the emitted batches.
func (es effects) batches() []topics.BatchMessage {
	return machinetest.Values[topics.BatchMessage](machinetest.Effects(es))
}

// letters returns the reasons of the dead letters.
func (es effects) letters() (reasons []string) {
	for _, e := range es {
		if e.Reason != "" {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// contents is what is in a batch, for comparison.
func contents(b topics.BatchMessage) string {
	return b.Messages.String() + " " + b.StopReason.String() + " " + b.PendingInteraction.String()
}

func outcomeOf(b topics.BatchMessage) string {
	if b.Reason == nil {
		return b.State
	}
	return b.State + " " + *b.Reason
}
