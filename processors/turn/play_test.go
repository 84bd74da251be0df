package turn

import (
	"maps"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

const agent = "quay"

// tb is what tests, benchmarks, fuzz targets and rapid's checks have in common.
type tb interface {
	require.TestingT
	Helper()
}

// play is a session under test: bytes in as a broker would hand them over, effects out, the row encoded and decoded
// between any two events.
type play struct {
	tb     tb
	topics topics.Catalog
	rules  rules
	key    string
	now    time.Time
	bind   *binding // one that goes on: it keeps states
	row    []byte
	parts  map[uint32][]byte
	// partsOf are the parts that were there with each row.
	partsOf map[string]map[uint32][]byte
	offset  int64
	// past holds what happened, for repeats.
	past      []event
	spendings spendings
	// wrote is how many bytes of rows and parts were written.
	wrote int
}

// defaults are the rules of an empty Config.
func defaults() (r rules) {
	if err := r.complete(); err != nil {
		panic(err)
	}
	r.Agent = agent
	return r
}

// applied is Apply with rules.
func applied(state *turnrow.State, event event, parts parts, now time.Time, r rules) (outcome, error) {
	return apply(snapshot{state: state, parts: parts}, event, now, r)
}

func newPlay(t tb, change ...func(*rules)) *play {
	c, err := topics.For(agent)
	require.NoError(t, err)
	p := &play{tb: t, topics: c, rules: defaults(), key: "s1", parts: map[uint32][]byte{}, partsOf: map[string]map[uint32][]byte{}, now: time.UnixMilli(1_790_000_000_000).UTC()}
	for _, f := range change {
		f(&p.rules)
	}
	p.restart()
	return p
}

// restart loses the cached states.
func (p *play) restart() { p.bind = p.newBinding() }

func (p *play) newBinding() *binding {
	return &binding{topics: p.topics, rules: p.rules, cache: newStateCache()}
}

// send delivers a record and returns what it brought about.
func (p *play) send(topic, value string, opts ...recordOption) effects {
	p.tb.Helper()
	e, ok := p.event(topic, []byte(value), opts...)
	require.True(p.tb, ok, "poison: %s", value)
	return p.apply(e)
}

// sendUnchecked is send without the comparison with an uncached state, which takes long if a row has hundreds of records.
func (p *play) sendUnchecked(topic, value string, opts ...recordOption) effects {
	p.tb.Helper()
	e, ok := p.event(topic, []byte(value), opts...)
	require.True(p.tb, ok, "poison: %s", value)
	p.past = append(p.past, e)
	out := p.decide(p.bind, e)
	p.keep(out)
	return out.Effects
}

// tombstone delivers a Kafka null.
func (p *play) tombstone(topic string, opts ...recordOption) effects {
	p.tb.Helper()
	e, ok := p.event(topic, nil, opts...)
	require.True(p.tb, ok)
	return p.apply(e)
}

// wait moves the clock and fires the deadline where one came.
func (p *play) wait(d time.Duration) effects {
	p.tb.Helper()
	p.now = p.now.Add(d)
	if ms, ok := rows.Deadline(p.row); !ok || ms > p.now.UnixMilli() {
		return nil
	}
	return p.apply(deadlineCame{Session: p.key})
}

// repeat delivers an event again, at the same offset.
func (p *play) repeat(e event) effects { return p.apply(e) }

func (p *play) apply(e event) effects {
	p.tb.Helper()
	fresh := p.decide(p.newBinding(), e)
	if d, ok := e.(deadlineCame); ok {
		p.checkUnread(d, fresh)
	}
	p.bind.rules = p.rules
	out := p.decide(p.bind, e)
	require.Equal(p.tb, fresh.Effects, out.Effects, "a state that was kept is as good as its row")
	require.Equal(p.tb, fresh.Changed, out.Changed)
	var want []byte
	if fresh.State != nil {
		var err error
		want, err = turnrow.Table.Marshal(fresh.State)
		require.NoError(p.tb, err)
	}
	defer func() {
		if fresh.Changed {
			require.Equal(p.tb, want, p.row)
		}
	}()
	if _, deadline := e.(deadlineCame); !deadline {
		p.past = append(p.past, e)
	}
	p.keep(out)
	return out.Effects
}

// decide applies an event as a binding does, but does not encode the outcome.
func (p *play) decide(b *binding, e event) outcome {
	p.tb.Helper()
	if e.writtenByTurn() {
		return outcome{}
	}
	from, err := b.cache.read(p.table(), e.session())
	require.NoError(p.tb, err)
	from.spendings = p.spendings
	out, err := apply(from, e, p.now, b.rules)
	require.NoError(p.tb, err)
	return out
}

// rewrite changes the state and writes its row.
func (p *play) rewrite(change func(*turnrow.State)) {
	p.tb.Helper()
	s := &turnrow.State{Version: rowVersion, TouchedMs: p.now.UnixMilli()}
	if p.row != nil {
		var err error
		s, err = turnrow.Table.Unmarshal(p.row)
		require.NoError(p.tb, err)
	}
	l := loadAll(p.tb, s, p.table(), nil)
	change(s)
	out := outcome{Changed: true, State: s}
	out.NewParts, out.UnusedParts, out.full = l.divide(s, p.now.UnixMilli())
	p.keep(out)
}

// keep takes over a row and checks what must be true of every row.
func (p *play) keep(out outcome) {
	p.tb.Helper()
	if !out.Changed {
		require.Nil(p.tb, out.State)
		return
	}
	limit := p.rules.RowLimit
	if p.row != nil { // it may be over a limit that was lowered, but for names of parts it does not grow
		limit = max(limit, p.size()+(&rowLayout{parts: table{}}).reserve()+partName*len(p.parts))
	}
	p.row = nil
	for _, n := range out.NewParts {
		require.NotContains(p.tb, p.parts, n.Number, "a part is written once")
		p.parts[n.Number] = n.Value
		p.wrote += len(n.Value)
	}
	for _, n := range out.UnusedParts {
		require.Contains(p.tb, p.parts, n)
		delete(p.parts, n)
	}
	if out.State == nil {
		require.Empty(p.tb, p.parts)
		return
	}
	named := 0
	for i, f := range stateLargeFields(out.State) {
		if f.absent() {
			continue
		}
		named += len(*f.parts)
		require.True(p.tb, i == results || i == hidden && len(*f.parts) <= maxHiddenParts || len(*f.parts) <= 24, "parts become one")
	}
	require.Len(p.tb, p.parts, named, "the row names every part")
	raw, err := turnrow.Table.Marshal(out.State)
	require.NoError(p.tb, err)
	require.LessOrEqual(p.tb, len(raw)+partsSize(out.State), limit)
	p.row, p.partsOf[string(raw)] = raw, maps.Clone(p.parts)
	p.wrote += len(raw)
	if t, full := out.State.Turn, out.full[prompt]; len(full) > 0 {
		d, ok := (&transition{session: session{row: &turnrow.State{}}}).digestOf(full)
		require.True(p.tb, ok)
		require.Equal(p.tb, d[:], t.Input, "the prompt has the digest that the row says")
	}
	out.row = raw
	p.bind.cache.keep(p.key, out)
	ms, ok := rows.Deadline(raw)
	require.Equal(p.tb, out.State.DeadlineMs, ms)
	require.Equal(p.tb, out.State.DeadlineMs != 0, ok)
	if t := out.State.Turn; t != nil {
		require.True(p.tb, ok, "an open turn has a deadline")
		require.True(p.tb, ms <= t.DeadlineMs || hasGates(out.State), "only gates stop the clocks of a turn")
	} else {
		require.Empty(p.tb, out.State.Waiting, "nobody waits without an open turn")
	}
}
