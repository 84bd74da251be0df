package turn

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rowformat"
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
	rules  Rules
	key    string
	now    time.Time
	bind   *binding // one that goes on: it keeps states
	row    []byte
	parts  map[uint32][]byte
	// partsOf are the parts that were there with each row.
	partsOf map[string]map[uint32][]byte
	offset  int64
	// past holds what happened, for repeats.
	past []Event
	// wrote is how many bytes of rows and parts were written.
	wrote int
}

func newPlay(t tb, change ...func(*Rules)) *play {
	c, err := topics.For(agent)
	require.NoError(t, err)
	p := &play{tb: t, topics: c, rules: DefaultRules(), key: "s1", parts: map[uint32][]byte{}, partsOf: map[string]map[uint32][]byte{}, now: time.UnixMilli(1_790_000_000_000).UTC()}
	for _, f := range change {
		f(&p.rules)
	}
	require.NoError(t, p.rules.validate())
	p.restart()
	return p
}

// restart loses the cached states.
func (p *play) restart() { p.bind = p.newBinding() }

func (p *play) newBinding() *binding {
	return &binding{topics: p.topics, rules: p.rules, cache: newStateCache()}
}

// recordOption changes a record on its way in.
type recordOption func(*Record)

func header(name, value string) recordOption {
	return func(r *Record) {
		r.Headers = append(r.Headers, &Header{Name: []byte(name), Value: []byte(value)})
		if name == topics.HeaderID {
			r.Own, r.Cause = true, value
		}
	}
}

func stamped(at time.Time) recordOption { return func(r *Record) { r.At = at } }

// event makes an event of a record's bytes; ok is false for poison. A nil value is a tombstone.
func (p *play) event(topic string, value []byte, opts ...recordOption) (e Event, ok bool) {
	p.offset++
	r := &Record{
		Session: p.key, Cause: "offset-" + strconv.FormatInt(p.offset, 10), At: p.now, Value: value,
		Topic: agent + "-" + topic, Offset: p.offset,
	}
	for _, o := range opts {
		o(r)
	}
	return decode(p.topics, topic, r)
}

func decode(c topics.Catalog, topic string, r *Record) (Event, bool) {
	switch topic {
	case "message-input":
		d := c.MessageInput.Codec().Unmarshal(r.Value)
		return MessageArrived{r, d.Value}, d.Err == nil
	case "think-request-response":
		d := c.ThinkRequestResponse.Codec().Unmarshal(r.Value)
		return ThinkResponded{r, d.Value}, d.Err == nil
	case "think-dlq":
		d := c.ThinkDLQ.Codec().Unmarshal(r.Value)
		return ThinkFailed{r, d.Value}, d.Err == nil
	case "tool-use-result":
		d := c.ToolUseResult.Codec().Unmarshal(r.Value)
		return ToolAnswered{r, d.Value}, d.Err == nil
	case "tool-use-dlq":
		d := c.ToolUseDLQ.Codec().Unmarshal(r.Value)
		return ToolFailed{r, d.Value}, d.Err == nil
	case "reply-to":
		d := c.ReplyTo.Codec().Unmarshal(r.Value)
		return RouteGiven{r, d.Value}, d.Err == nil
	case "session-control":
		d := c.SessionControl.Codec().Unmarshal(r.Value)
		return Controlled{r, d.Value}, d.Err == nil
	case "compaction-result":
		d := c.CompactionResult.Codec().Unmarshal(r.Value)
		return Compacted{r, d.Value}, d.Err == nil
	default:
		panic(topic)
	}
}

// send delivers a record and returns what it brought about.
func (p *play) send(topic, value string, opts ...recordOption) effects {
	p.tb.Helper()
	e, ok := p.event(topic, []byte(value), opts...)
	require.True(p.tb, ok, "poison: %s", value)
	return p.apply(e)
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
	if ms, ok := rowformat.Deadline(p.row); !ok || ms > p.now.UnixMilli() {
		return nil
	}
	return p.apply(DeadlineCame{p.key})
}

// repeat delivers an event again, at the same offset.
func (p *play) repeat(e Event) effects { return p.apply(e) }

func (p *play) apply(e Event) effects {
	p.tb.Helper()
	fresh := p.decide(p.newBinding(), e)
	p.bind.rules = p.rules
	out := p.decide(p.bind, e)
	require.Equal(p.tb, fresh.Effects, out.Effects, "a state that was kept is as good as its row")
	require.Equal(p.tb, fresh.Changed, out.Changed)
	var want []byte
	if fresh.State != nil {
		var err error
		want, err = EncodeState(fresh.State)
		require.NoError(p.tb, err)
	}
	defer func() {
		if fresh.Changed {
			require.Equal(p.tb, want, p.row)
		}
	}()
	if _, deadline := e.(DeadlineCame); !deadline {
		p.past = append(p.past, e)
	}
	p.keep(out)
	return out.Effects
}

// decide applies an event as a binding does, but does not encode the outcome.
func (p *play) decide(b *binding, e Event) Outcome {
	p.tb.Helper()
	if e.writtenByTurn() {
		return Outcome{}
	}
	from, err := b.cache.read(p.table(), e.session())
	require.NoError(p.tb, err)
	out, err := apply(from, e, p.now, b.rules)
	require.NoError(p.tb, err)
	return out
}

// rewrite changes the state and writes its row.
func (p *play) rewrite(change func(*State)) {
	p.tb.Helper()
	s := &State{Version: rowVersion, TouchedMs: p.now.UnixMilli()}
	if p.row != nil {
		var err error
		s, err = DecodeState(p.row)
		require.NoError(p.tb, err)
	}
	l := loadAll(p.tb, s, p.table(), nil)
	change(s)
	out := Outcome{Changed: true, State: s}
	out.NewParts, out.UnusedParts, out.full = l.divide(s, p.now.UnixMilli())
	p.keep(out)
}

// loadAll loads all parts of a row.
func loadAll(t require.TestingT, s *State, from table, cached *fullValues) *rowLayout {
	l := openLayout(t, s, from, cached)
	for i, f := range s.largeFields() {
		if f.hasParts() {
			require.NoError(t, l.load(s, i))
		}
	}
	return l
}

// openLayout loads the parts of a row that every event needs.
func openLayout(t require.TestingT, s *State, from table, cached *fullValues) *rowLayout {
	if cached == nil {
		cached = &fullValues{}
	}
	l := &rowLayout{}
	require.NoError(t, l.open(s, from.loader(), cached, 0))
	return l
}

// keep takes over a row and checks what must be true of every row.
func (p *play) keep(out Outcome) {
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
	for i, f := range out.State.largeFields() {
		if f.absent() {
			continue
		}
		named += len(*f.parts)
		require.True(p.tb, i == results || i == hidden && len(*f.parts) <= maxHiddenParts || len(*f.parts) <= 24, "parts become one")
	}
	require.Len(p.tb, p.parts, named, "the row names every part")
	raw, err := EncodeState(out.State)
	require.NoError(p.tb, err)
	require.LessOrEqual(p.tb, len(raw)+out.State.partsSize(), limit)
	p.row, p.partsOf[string(raw)] = raw, maps.Clone(p.parts)
	p.wrote += len(raw)
	if t, full := out.State.Turn, out.full[prompt]; len(full) > 0 {
		d, ok := (&transition{row: &State{}}).digestOf(full)
		require.True(p.tb, ok)
		require.Equal(p.tb, d[:], t.Input, "the prompt has the digest that the row says")
	}
	out.row = raw
	p.bind.cache.keep(p.key, out)
	ms, ok := rowformat.Deadline(raw)
	require.Equal(p.tb, out.State.DeadlineMs, ms)
	require.Equal(p.tb, out.State.DeadlineMs != 0, ok)
	if t := out.State.Turn; t != nil {
		require.True(p.tb, ok, "an open turn has a deadline")
		require.LessOrEqual(p.tb, ms, t.DeadlineMs)
	} else {
		require.Empty(p.tb, out.State.Waiting, "nobody waits without an open turn")
	}
}

// table is the row as the table has it.
func (p *play) table() table { return table{p.row, p.parts} }

// table is a row and its parts; a table without the map takes no parts.
type table struct {
	row   []byte
	parts map[uint32][]byte
}

func (t table) Value() any {
	if t.row == nil {
		return nil
	}
	return storedRow(t.row)
}

func (t table) HasParts() bool { return t.parts != nil }

func (t table) Part(n uint32) ([]byte, error) { return t.parts[n], nil }

func (t table) loader() Parts {
	if t.parts == nil {
		return nil
	}
	return t
}

// state is the row with its parts.
func (p *play) state() *State {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	s, err := DecodeState(p.row)
	require.NoError(p.tb, err)
	loadAll(p.tb, s, p.table(), nil)
	return s
}

// effects are the effects of one event.
type effects []Effect

func (es effects) letters() (reasons []string) {
	for _, e := range es {
		if l, ok := e.(DeadLetter); ok {
			reasons = append(reasons, l.Reason)
		}
	}
	return reasons
}

func emitted[V Value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(Emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// the is the only record of its kind.
func the[V Value](t tb, es effects) V {
	t.Helper()
	list := emitted[V](es)
	require.Len(t, list, 1)
	return list[0]
}

func (es effects) ids() (ids []string) {
	for _, e := range es {
		if m, ok := e.(Emit); ok {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Records as their writers write them.

func message(text string, fields ...string) string {
	m := `{"session_id":"s1","user_id":"mira","role":"user","content":` + strconv.Quote(text) +
		`,"timestamp":"2026-06-20T08:15:03.120Z","metadata":`
	if len(fields) == 0 {
		return m + `null}`
	}
	return m + fields[0] + `}`
}

func requestMessage(text, request string) string {
	return message(text, `{"request_id":`+strconv.Quote(request)+`}`)
}

// response is a think-response that echoes what it was asked.
func response(asked Enriched, more string) string {
	history := asked.History
	if history == nil {
		history = topics.Raw("[]")
	}
	return fmt.Sprintf(`{"session_id":"s1","user_id":"mira","total_session_cost":0.5,"previous_messages":%s,`+
		`"last_input_message":%s,%s}`, history, asked.LatestInput, more)
}

func saying(text string) string {
	return `"last_input_response":[{"role":"assistant","content":` + strconv.Quote(text) + `}],` +
		`"think_input_tokens":7,"think_output_tokens":3,"end_turn":true`
}

func calling(ids ...string) string {
	items := ""
	for i, id := range ids {
		if i > 0 {
			items += ","
		}
		items += fmt.Sprintf(`{"tool_use_id":%q,"tool_id":"look","name":"look","input":{"at":1},"session_id":"s1"}`, id)
	}
	return `"last_input_response":[{"role":"assistant","content":[]}],"tool_uses":[` + items + `],"end_turn":false`
}

func toolResult(id, text string) string {
	return fmt.Sprintf(`{"session_id":"s1","tool_use_id":%q,"name":"look","result":{"said":%q},"latency_ms":5,`+
		`"status":"success","total_tools":1,"timestamp":"2026-06-20T08:15:05.900Z"}`, id, text)
}

// ask opens a turn; think and answer play the model.
func (p *play) ask(text string) Enriched {
	p.tb.Helper()
	return the[Enriched](p.tb, p.send("message-input", message(text)))
}

func (p *play) respond(asked Enriched, more string) effects {
	p.tb.Helper()
	return p.send("think-request-response", response(asked, more))
}

// resultOf is how the n-th call of the open step ended.
func (p *play) resultOf(n int) *Result {
	p.tb.Helper()
	t := p.state().Turn
	return t.result(t.Calls[n])
}

func (p *play) result(id, text string) effects {
	p.tb.Helper()
	return p.send("tool-use-result", toolResult(id, text))
}
