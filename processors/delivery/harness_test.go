package delivery

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness applies events to the row of one session. The row is encoded and decoded between two events, as in a broker.
type harness struct {
	tb     tb
	topics topics.Catalog
	config Config
	key    string
	now    time.Time
	row    []byte
	gates  map[string]gate
	offset int
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &harness{
		tb: t, topics: c, key: "s1", now: time.UnixMilli(1_790_000_000_000).UTC(),
		gates: map[string]gate{},
	}
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	return p
}

func (p *harness) record(id string, value []byte) *record {
	p.offset++
	if id == "" {
		return &record{Session: p.key, Cause: "offset-" + strconv.Itoa(p.offset), Value: value, WrittenMS: p.now.UnixMilli()}
	}
	return &record{Session: p.key, Cause: id, Own: true, Value: value, WrittenMS: p.now.UnixMilli()}
}

// outputOf returns the output of a turn. An empty descriptor is an output without one.
func (p *harness) outputOf(turn, descriptor string) event {
	p.tb.Helper()
	o := topics.Output{SessionID: &p.key, Content: "answer of " + turn, SourceAgent: "agent-1"}
	if descriptor != "" {
		o.ReplyTo = topics.Raw(descriptor)
	}
	value, err := p.topics.MessageOutput.Codec().Marshal(o)
	require.NoError(p.tb, err)
	d := p.topics.MessageOutput.Codec().Unmarshal(value)
	require.NoError(p.tb, d.Err)
	return outputArrived{p.record(turn+"/0/output/0", value), d.Value}
}

// messageOf returns a record of channel-messages. An empty ID is a record without a turntable.id.
func (p *harness) messageOf(id, descriptor string) event {
	p.tb.Helper()
	o := topics.Output{SessionID: &p.key, Content: "message " + id}
	if descriptor != "" {
		o.ReplyTo = topics.Raw(descriptor)
	}
	value, err := p.topics.ChannelMessages.Codec().Marshal(o)
	require.NoError(p.tb, err)
	d := p.topics.ChannelMessages.Codec().Unmarshal(value)
	require.NoError(p.tb, d.Err)
	return messageGiven{p.record(id, value), d.Value}
}

// routeOf returns a reply route and its ID, by which outputs name it.
func (p *harness) routeOf(descriptor string) (event, string) {
	p.tb.Helper()
	d := p.topics.ReplyTo.Codec().Unmarshal([]byte(descriptor))
	require.NoError(p.tb, d.Err)
	r := p.record("", []byte(descriptor))
	return routeGiven{r, d.Value}, topics.RouteID(p.key, r.Cause)
}

// receiptOf returns a sink's receipt of an attempt.
func (p *harness) receiptOf(a topics.Delivery, outcome topics.Outcome, change ...func(*topics.Receipt)) event {
	p.tb.Helper()
	r := topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		AtMS: p.now.UnixMilli(),
	}
	if outcome == topics.OutcomeFailed || outcome == topics.OutcomeRefused {
		reason := "status 503"
		r.Reason, r.Status = &reason, 503
	}
	for _, f := range change {
		f(&r)
	}
	return receiptArrived{p.record("sink/"+a.DeliveryID, []byte("{}")), r}
}

func (p *harness) requeueOf(id string) event {
	return controlled{p.record("", []byte("{}")), topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: id}}
}

// handle applies an event, checks the row and returns the effects.
func (p *harness) handle(e event) effects {
	p.tb.Helper()
	var state *deliveryrow.State
	if p.row != nil {
		var err error
		state, err = deliveryrow.Table.Unmarshal(p.row)
		require.NoError(p.tb, err)
	}
	before, had := p.row, state != nil
	out := apply(state, e, func(key string) gate { return p.gates[key] }, p.now, p.config)
	switch {
	case !out.Changed:
		require.Equal(p.tb, before, p.row)
	case out.State == nil:
		require.True(p.tb, had, "only an existing row is deleted")
		p.row = nil
	default:
		raw, err := deliveryrow.Table.Marshal(out.State)
		require.NoError(p.tb, err)
		require.LessOrEqual(p.tb, len(raw), p.config.RowLimit)
		p.row = raw
		at, ok := rows.Deadline(raw)
		require.True(p.tb, ok, "every row has a deadline")
		if _, timer := e.(deadlineCame); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "the next deadline is in the future")
		}
	}
	return out.Effects
}

func (p *harness) state() *deliveryrow.State {
	if p.row == nil {
		return nil
	}
	s, err := deliveryrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return s
}

// fireNext moves the clock to the next deadline and applies it. It returns false if the row has no deadline.
func (p *harness) fireNext() (effects, bool) {
	p.tb.Helper()
	at, ok := rows.Deadline(p.row)
	if !ok {
		return nil, false
	}
	p.now = time.UnixMilli(at).UTC()
	return p.handle(deadlineCame{p.key}), true
}

// advance moves the clock by d and applies the deadlines in that time.
func (p *harness) advance(d time.Duration) (all effects) {
	p.tb.Helper()
	end := p.now.Add(d)
	for {
		at, ok := rows.Deadline(p.row)
		if !ok || at > end.UnixMilli() {
			p.now = end
			return all
		}
		es, _ := p.fireNext()
		all = append(all, es...)
	}
}

type effects []effect

// valuesOf returns the values of one topic.
func valuesOf[V value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// onlyValue returns the value of one topic and fails if there is not exactly one.
func onlyValue[V value](t tb, es effects) V {
	t.Helper()
	list := valuesOf[V](es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

func attempt(t tb, es effects) topics.Delivery {
	t.Helper()
	return topics.Delivery(onlyValue[attemptRequested](t, es))
}

const harbor = `{"callbackService":"harbor","bearerToken":"t0ken"}`

func named(routeID string) string {
	return fmt.Sprintf(`{"callbackService":"harbor","route_id":%q}`, routeID)
}
