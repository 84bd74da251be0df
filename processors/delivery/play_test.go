package delivery

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/row"
	"github.com/turntable-streams/turntable/topics"
)

// tb is what tests, fuzz targets and rapid's checks have in common.
type tb interface {
	require.TestingT
	Helper()
}

// play is a session under test: bytes in as a broker would hand them over, effects out, the row encoded and decoded
// between any two events.
type play struct {
	tb     tb
	topics topics.Catalog
	rules  Rules
	key    string
	now    time.Time
	row    []byte
	gates  map[string]Gate
	offset int
	past   []Event
}

func newPlay(t tb, change ...func(*Rules)) *play {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &play{
		tb: t, topics: c, rules: DefaultRules(), key: "s1", now: time.UnixMilli(1_790_000_000_000).UTC(),
		gates: map[string]Gate{},
	}
	for _, f := range change {
		f(&p.rules)
	}
	require.NoError(t, p.rules.validate())
	return p
}

func (p *play) record(id string, value []byte) *Record {
	p.offset++
	if id == "" {
		return &Record{Session: p.key, Cause: "offset-" + strconv.Itoa(p.offset), Value: value}
	}
	return &Record{Session: p.key, Cause: id, Own: true, Value: value}
}

// outputOf is the output of a turn, with a reply descriptor or without.
func (p *play) outputOf(turn, descriptor string) Event {
	p.tb.Helper()
	o := topics.Output{SessionID: &p.key, Content: "answer of " + turn, SourceAgent: "agent-1"}
	if descriptor != "" {
		o.ReplyTo = topics.Raw(descriptor)
	}
	value, err := p.topics.MessageOutput.Codec().Marshal(o)
	require.NoError(p.tb, err)
	d := p.topics.MessageOutput.Codec().Unmarshal(value)
	require.NoError(p.tb, d.Err)
	return OutputArrived{p.record(turn+"/0/output/0", value), d.Value}
}

// routeOf is a reply route, and the id that stands in for its token.
func (p *play) routeOf(descriptor string) (Event, string) {
	p.tb.Helper()
	d := p.topics.ReplyTo.Codec().Unmarshal([]byte(descriptor))
	require.NoError(p.tb, d.Err)
	r := p.record("", []byte(descriptor))
	return RouteGiven{r, d.Value}, topics.RouteID(p.key, r.Cause)
}

// receiptOf is what a sink says about an attempt.
func (p *play) receiptOf(a topics.Delivery, outcome topics.Outcome, change ...func(*topics.Receipt)) Event {
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
	return Reported{p.record("sink/"+a.DeliveryID, []byte("{}")), r}
}

func (p *play) requeueOf(id string) Event {
	return Controlled{p.record("", []byte("{}")), topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: id}}
}

// handle applies an event and returns what it brought about.
func (p *play) handle(e Event) effects {
	p.tb.Helper()
	var state *State
	if p.row != nil {
		var err error
		state, err = DecodeState(p.row)
		require.NoError(p.tb, err)
	}
	before, had := p.row, state != nil
	out := Apply(state, e, func(key string) Gate { return p.gates[key] }, p.now, p.rules)
	p.past = append(p.past, e)
	switch {
	case !out.Changed:
		require.Equal(p.tb, before, p.row)
	case out.State == nil:
		require.True(p.tb, had, "a row that is not there need not go")
		p.row = nil
	default:
		raw, err := EncodeState(out.State)
		require.NoError(p.tb, err)
		require.LessOrEqual(p.tb, len(raw), p.rules.RowLimit)
		p.row = raw
		at, ok := row.Deadline(raw)
		require.True(p.tb, ok, "every row goes one day")
		if _, timer := e.(DeadlineCame); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "what is due is done")
		}
	}
	return out.Effects
}

func (p *play) state() *State {
	if p.row == nil {
		return nil
	}
	s, err := DecodeState(p.row)
	require.NoError(p.tb, err)
	return s
}

// next moves the clock to the next deadline and fires it; false where there is none.
func (p *play) next() (effects, bool) {
	p.tb.Helper()
	at, ok := row.Deadline(p.row)
	if !ok {
		return nil, false
	}
	p.now = time.UnixMilli(at).UTC()
	return p.handle(DeadlineCame{p.key}), true
}

// until fires deadlines up to a time from now.
func (p *play) until(d time.Duration) (all effects) {
	p.tb.Helper()
	end := p.now.Add(d)
	for {
		at, ok := row.Deadline(p.row)
		if !ok || at > end.UnixMilli() {
			p.now = end
			return all
		}
		es, _ := p.next()
		all = append(all, es...)
	}
}

type effects []Effect

// of are the values of one topic.
func of[V Value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(Emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// the is the only value of one topic.
func the[V Value](t tb, es effects) V {
	t.Helper()
	list := of[V](es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

func attempt(t tb, es effects) topics.Delivery {
	t.Helper()
	return topics.Delivery(the[Attempted](t, es))
}

const harbor = `{"callbackService":"harbor","bearerToken":"t0ken"}`

func named(routeID string) string {
	return fmt.Sprintf(`{"callbackService":"harbor","route_id":%q}`, routeID)
}
