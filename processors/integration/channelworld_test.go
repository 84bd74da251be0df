package integration

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/bridge"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// lane is the records of one key in a topic. The readers of different lanes do not wait for each other.
type lane struct{ topic, key string }

// entry is a record.
type entry struct {
	lane
	id    string
	value []byte
	at    time.Time
	cause string // identifies the record
}

// reader is a group, a model or a sink, with the transition of one record, or of a deadline (nil), on the row of a key.
type reader struct {
	name   string
	inputs []string
	apply  func(key string, row []byte, e *entry) (after []byte, out []entry)
}

// station is a reader at one key. After a crash it reads the records since the last cut again, and has its row of any time since.
type station struct {
	*reader
	key  string
	row  []byte
	next map[string]int
	// cut is the positions of the last cut, and rows are the rows since.
	cut  map[string]int
	rows [][]byte
}

// harbor is two agents with the transitions of their turns, delegations and deliveries, without a broker. A test picks which
// station reads next.
type harbor struct {
	t           *rapid.T
	front, back topics.Catalog
	now         time.Time
	settings    *settings.Settings
	bridge      *bridge.Bridge
	lanes       map[lane][]*entry
	order       []lane // of creation
	readers     []*reader
	stations    []*station
	failures    map[string]int // failed attempts by delivery
	asked       map[string]topics.Origin
	texts       []string
	posts       []wallPost
}

// wallPost is a message that the platform has accepted.
type wallPost struct {
	delivery, text string
	to             topics.Origin
}

var worldChannels = []string{"slack", "email", "telegram"}

func newHarbor(t *rapid.T) *harbor {
	h := &harbor{
		t: t, now: time.UnixMilli(1_790_000_000_000).UTC(), lanes: map[lane][]*entry{}, failures: map[string]int{},
		asked: map[string]topics.Origin{},
	}
	var err error
	h.front, err = topics.For("front", topics.WithChannels(), topics.WithDeliveries())
	require.NoError(t, err)
	h.back, err = topics.For("back", topics.WithChannels())
	require.NoError(t, err)
	h.settings, err = channelSettings("front", worldChannels...)
	require.NoError(t, err)
	h.restartBridge()
	h.readers = []*reader{
		h.turns(h.front), h.turns(h.back), h.delegations(h.front), h.delegations(h.back), h.deliveries(),
		h.model(h.front, frontSays), h.model(h.back, backSays), h.sink(),
	}
	return h
}

// restartBridge replaces the bridge by one that remembers nothing.
func (h *harbor) restartBridge() {
	var err error
	h.bridge, err = bridge.New(settings.Fixed(h.settings), h, []topics.Catalog{h.front}, bridge.WithClock(clock.NewFake(h.now)))
	require.NoError(h.t, err)
}

// Publish implements processors.Publisher for the bridge.
func (h *harbor) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		h.write(entry{lane: lane{r.Topic, r.Key}, id: string(r.Headers[topics.HeaderID]), value: r.Value})
	}
	return nil
}

// write appends a record.
func (h *harbor) write(e entry) {
	if _, ok := h.lanes[e.lane]; !ok {
		h.order = append(h.order, e.lane)
		for _, r := range h.readers {
			if slices.Contains(r.inputs, e.topic) && !slices.ContainsFunc(h.stations, func(s *station) bool { return s.reader == r && s.key == e.key }) {
				h.stations = append(h.stations, &station{
					reader: r, key: e.key, next: map[string]int{}, cut: map[string]int{}, rows: [][]byte{nil},
				})
			}
		}
	}
	e.at = h.now
	if e.cause = e.id; e.id == "" {
		e.cause = fmt.Sprint(e.topic, "/", e.key, "/", len(h.lanes[e.lane]))
	}
	h.lanes[e.lane] = append(h.lanes[e.lane], &e)
}

// pending returns the inputs of a station with records that it has not read.
func (h *harbor) pending(s *station) (inputs []string) {
	for _, topic := range s.inputs {
		if s.next[topic] < len(h.lanes[lane{topic, s.key}]) {
			inputs = append(inputs, topic)
		}
	}
	return inputs
}

// read applies the next record of an input.
func (h *harbor) read(s *station, topic string) {
	e := h.lanes[lane{topic, s.key}][s.next[topic]]
	s.next[topic]++
	h.step(s, e)
}

// step applies a record, or the deadline of the row.
func (h *harbor) step(s *station, e *entry) {
	after, out := s.apply(s.key, s.row, e)
	for _, o := range out {
		h.write(o)
	}
	s.row = after
	s.rows = append(s.rows, after)
}

// commit makes a cut: what was read is not read again.
func (s *station) commit() {
	s.cut = map[string]int{}
	for topic, n := range s.next {
		s.cut[topic] = n
	}
	s.rows = [][]byte{s.row}
}

// crash returns to the positions of the cut and to a row since then.
func (s *station) crash(which int) {
	s.next = map[string]int{}
	for topic, n := range s.cut {
		s.next[topic] = n
	}
	s.row = s.rows[which%len(s.rows)]
	s.rows = [][]byte{s.row}
}

// due returns the deadline of the row.
func (s *station) due() (at time.Time, ok bool) {
	if s.row == nil {
		return at, false
	}
	ms, ok := rowformat.Deadline(s.row)
	return time.UnixMilli(ms).UTC(), ok && ms > 0
}

// ready returns the stations that can do something.
func (h *harbor) ready() (list []*station) {
	for _, s := range h.stations {
		at, ok := s.due()
		if len(h.pending(s)) > 0 || ok && !at.After(h.now) {
			list = append(list, s)
		}
	}
	return list
}

// work lets a station read a record of one of its inputs, or handle its deadline.
func (h *harbor) work(s *station, pick int) {
	inputs := h.pending(s)
	if at, ok := s.due(); ok && !at.After(h.now) {
		inputs = append(inputs, "")
	}
	if topic := inputs[pick%len(inputs)]; topic == "" {
		h.step(s, nil)
	} else {
		h.read(s, topic)
	}
}

// finish reads everything, and lets time pass until the delegations and deliveries have ended.
func (h *harbor) finish() {
	for n := 0; ; n++ {
		require.Less(h.t, n, 100_000, "the records have no end")
		if list := h.ready(); len(list) > 0 {
			h.work(list[n%len(list)], n)
			continue
		}
		var next time.Time
		for _, s := range h.stations {
			if at, ok := s.due(); ok && at.Before(h.now.Add(20*time.Minute)) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		if next.IsZero() {
			return
		}
		h.now = next
	}
}

// encode returns the record of a value.
func encode[T any](h *harbor, t topics.Topic[T], key, id string, v T) entry {
	raw, err := t.Codec().Marshal(v)
	require.NoError(h.t, err)
	return entry{lane: lane{t.Name(), key}, id: id, value: raw}
}

// decode returns the value of a record.
func decode[T any](h *harbor, t topics.Topic[T], e *entry) T {
	in := t.Codec().Unmarshal(e.value)
	require.NoError(h.t, in.Err)
	return in.Value
}

// turns returns the group of an agent's turns.
func (h *harbor) turns(c topics.Catalog) *reader {
	rules := turn.DefaultRules()
	rules.Agent, rules.Channels, rules.QueueLimit = c.Agent, true, 1000
	inputs := []string{
		c.MessageInput.Name(), c.ThinkRequestResponse.Name(), c.ToolUseResult.Name(), c.ToolUseDLQ.Name(), c.SessionControl.Name(),
	}
	return &reader{"turns of " + c.Agent, inputs, func(key string, row []byte, e *entry) ([]byte, []entry) {
		var event turn.Event = turn.DeadlineCame{Session: key}
		if e != nil {
			r := &turn.Record{Session: key, Cause: e.cause, Own: e.id != "", At: e.at, Value: e.value, Topic: e.topic}
			if e.id != "" {
				r.Headers = []*turn.Header{{Name: []byte(topics.HeaderID), Value: []byte(e.id)}}
			}
			switch e.topic {
			case c.MessageInput.Name():
				event = turn.MessageArrived{Record: r, Message: decode(h, c.MessageInput, e)}
			case c.ThinkRequestResponse.Name():
				event = turn.ThinkResponded{Record: r, Response: decode(h, c.ThinkRequestResponse, e)}
			case c.ToolUseResult.Name():
				event = turn.ToolAnswered{Record: r, Result: decode(h, c.ToolUseResult, e)}
			case c.ToolUseDLQ.Name():
				event = turn.ToolFailed{Record: r, Item: decode(h, c.ToolUseDLQ, e)}
			default:
				event = turn.Controlled{Record: r, Control: decode(h, c.SessionControl, e)}
			}
		}
		var state *turn.State
		var err error
		if row != nil {
			state, err = turn.DecodeState(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o, err := turn.Apply(state, event, nil, h.now, rules)
		require.NoError(h.t, err)
		var out []entry
		for _, effect := range o.Effects {
			m, ok := effect.(turn.Emit)
			if !ok {
				continue // dead letters of repeats
			}
			switch v := m.Value.(type) {
			case turn.Enriched:
				out = append(out, encode(h, c.EnrichedMessageInput, key, m.ID, topics.EnrichedMessage(v)))
			case turn.Called:
				out = append(out, encode(h, c.ToolUse, key, m.ID, topics.ToolUseItem(v)))
			case turn.ToolMessage:
				out = append(out, encode(h, c.MessageInput, key, m.ID, topics.Message(v)))
			case turn.Answered:
				out = append(out, encode(h, c.MessageOutput, key, m.ID, topics.Output(v)))
			}
		}
		switch {
		case !o.Changed:
			return row, out
		case o.State == nil:
			return nil, out
		}
		row, err = turn.EncodeState(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}

// delegations returns the group of an agent's delegations.
func (h *harbor) delegations(c topics.Catalog) *reader {
	rules := channel.DefaultRules()
	rules.Agent, rules.Agents = c.Agent, []string{"front", "back"}
	catalogs := map[string]topics.Catalog{"front": h.front, "back": h.back}
	inputs := []string{c.ToolUse.Name(), c.DelegationReplies.Name(), c.MessageOutput.Name(), c.SessionControl.Name()}
	return &reader{"delegations of " + c.Agent, inputs, func(key string, row []byte, e *entry) ([]byte, []entry) {
		var event channel.Event = channel.DeadlineCame{Session: key}
		if e != nil {
			r := &channel.Record{Session: key, ID: e.cause, At: e.at, Value: e.value}
			switch e.topic {
			case c.ToolUse.Name():
				event = channel.Called{Record: r, Call: decode(h, c.ToolUse, e)}
			case c.DelegationReplies.Name():
				event = channel.Replied{Record: r, Reply: decode(h, c.DelegationReplies, e)}
			case c.MessageOutput.Name():
				event = channel.OutputArrived{Record: r, Output: decode(h, c.MessageOutput, e)}
			default:
				event = channel.Controlled{Record: r, Control: decode(h, c.SessionControl, e)}
			}
		}
		var state *channel.State
		var err error
		if row != nil {
			state, err = channel.DecodeState(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o := channel.Apply(state, event, func(topics.Origin) string { return "" }, h.now, rules)
		var out []entry
		for _, effect := range o.Effects {
			m, ok := effect.(channel.Emit)
			require.True(h.t, ok, "%s: %v", c.Agent, effect)
			switch v := m.Value.(type) {
			case channel.CallAnswered:
				out = append(out, encode(h, c.ToolUseResult, m.Key, m.ID, topics.ToolUseResult(v)))
			case channel.StatusWritten:
				out = append(out, encode(h, c.DelegationStatus, m.Key, m.ID, topics.Delegation(v)))
			case channel.CallbackSent:
				out = append(out, encode(h, c.MessageInput, m.Key, m.ID, topics.Message(v)))
			case channel.ReplySent:
				out = append(out, encode(h, catalogs[v.Agent].DelegationReplies, m.Key, m.ID, v.Reply))
			case channel.TaskSent:
				out = append(out, encode(h, catalogs[v.Agent].MessageInput, m.Key, m.ID, v.Message))
			case channel.TaskCancelled:
				out = append(out, encode(h, catalogs[v.Agent].SessionControl, m.Key, m.ID, v.Control))
			default:
				require.Failf(h.t, "no topic", "%T", v)
			}
		}
		switch {
		case !o.Changed:
			return row, out
		case o.State == nil:
			return nil, out
		}
		row, err = channel.EncodeState(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}

// deliveries returns the group of the front agent's deliveries.
func (h *harbor) deliveries() *reader {
	c, rules := h.front, delivery.DefaultRules()
	rules.ToChannels = true
	inputs := []string{c.MessageOutput.Name(), c.ChannelMessages.Name(), c.DeliveryReceipts.Name()}
	return &reader{"deliveries", inputs, func(key string, row []byte, e *entry) ([]byte, []entry) {
		var event delivery.Event = delivery.DeadlineCame{Session: key}
		if e != nil {
			r := &delivery.Record{Session: key, Cause: e.cause, Own: e.id != "", Value: e.value}
			switch e.topic {
			case c.MessageOutput.Name():
				event = delivery.OutputArrived{Record: r, Output: decode(h, c.MessageOutput, e)}
			case c.ChannelMessages.Name():
				event = delivery.MessageGiven{Record: r, Output: decode(h, c.ChannelMessages, e)}
			default:
				event = delivery.ReceiptArrived{Record: r, Receipt: decode(h, c.DeliveryReceipts, e)}
			}
		}
		var state *delivery.State
		var err error
		if row != nil {
			state, err = delivery.DecodeState(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o := delivery.Apply(state, event, func(string) delivery.Gate { return delivery.Gate{} }, h.now, rules)
		var out []entry
		for _, effect := range o.Effects {
			m, ok := effect.(delivery.Emit)
			require.True(h.t, ok, "%v", effect)
			switch v := m.Value.(type) {
			case delivery.AttemptRequested:
				out = append(out, encode(h, c.Deliveries, key, m.ID, topics.Delivery(v)))
			case delivery.FinalReceipt:
				require.Equal(h.t, topics.OutcomeDelivered, v.Outcome, "%+v", v)
				out = append(out, encode(h, c.DeliveryReceipts, key, m.ID, topics.Receipt(v)))
			default:
				require.Failf(h.t, "not expected", "%T %+v", v, v)
			}
		}
		switch {
		case !o.Changed:
			return row, out
		case o.State == nil:
			return nil, out
		}
		row, err = delivery.EncodeState(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}

// sink returns the sink. The platform refuses up to two attempts of each message, and accepts some of them all the same.
func (h *harbor) sink() *reader {
	c := h.front
	return &reader{"sink", []string{c.Deliveries.Name()}, func(key string, _ []byte, e *entry) ([]byte, []entry) {
		d := decode(h, c.Deliveries, e)
		origin, err := topics.DecodeOrigin(topics.OriginOf(d.Channel))
		require.NoError(h.t, err)
		content, _ := topics.Lookup(d.Body, "content")
		outcome := topics.OutcomeDelivered
		how := 0
		if h.failures[d.DeliveryID] < 2 {
			how = rapid.IntRange(0, 3).Draw(h.t, "platform")
		}
		if how > 0 { // 1: refused; 2: accepted, but the sink does not learn it
			h.failures[d.DeliveryID]++
			outcome = topics.OutcomeFailed
		}
		if how == 3 {
			how, outcome = 0, topics.OutcomeDelivered
		}
		if how != 1 {
			h.posts = append(h.posts, wallPost{d.DeliveryID, topics.Text(content), origin})
		}
		reason := "status 503"
		receipt := topics.Receipt{
			DeliveryID: d.DeliveryID, SessionID: d.SessionID, Attempt: d.Attempt, Route: d.Route, Outcome: outcome, AtMS: h.now.UnixMilli(),
		}
		if outcome == topics.OutcomeFailed {
			receipt.Reason = &reason
		}
		return nil, []entry{encode(h, c.DeliveryReceipts, key, fmt.Sprintf("%s/receipt/%d", d.DeliveryID, d.Attempt), receipt)}
	}}
}

// model returns a model that answers a step the same way each time.
func (h *harbor) model(c topics.Catalog, script func(think.Step) think.Reply) *reader {
	return &reader{"model of " + c.Agent, []string{c.EnrichedMessageInput.Name()}, func(key string, _ []byte, e *entry) ([]byte, []entry) {
		in := decode(h, c.EnrichedMessageInput, e)
		input, err := topics.DecodeMessage(in.LatestInput)
		require.NoError(h.t, err)
		reply := script(think.Step{Agent: c.Agent, SessionID: key, Messages: []topics.Message{input}})
		calls, at, cost := reply.Calls(), topics.Timestamp(e.at), 0.0
		history := in.History
		if history == nil {
			history = topics.Raw("[]")
		}
		response := topics.ThinkResponse{
			SessionID: &key, UserID: in.UserID, TotalSessionCost: &cost, PreviousMessages: history, LastInputMessage: in.LatestInput,
			EndTurn: len(calls) == 0, Timestamp: &at,
		}
		role, content := "assistant", any("")
		for _, b := range reply.Blocks {
			content = b.Text
		}
		var blocks []map[string]any
		for _, c := range calls {
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}})
			response.ToolUses = append(response.ToolUses, topics.ToolUseItem{
				ToolUseID: &c.ID, ToolID: &c.Name, Name: &c.Name, Input: c.Input, SessionID: &key, TotalTools: int64(len(calls)),
			})
		}
		if len(calls) > 0 {
			content = blocks
		}
		raw, err := json.Marshal(content)
		require.NoError(h.t, err)
		message := topics.EncodeMessage(topics.Message{SessionID: &key, Role: &role, Content: raw, Timestamp: &at})
		response.LastInputResponse = slices.Concat(topics.Raw("["), message, topics.Raw("]"))
		return nil, []entry{encode(h, c.ThinkRequestResponse, key, e.id+"/think", response)}
	}}
}

// frontSays hands off each task of a message, with calls that have the same IDs in every turn. "<a> <b!2>" are two tasks, of which
// the second one may take 2 s; "cancel x" cancels one.
func frontSays(s think.Step) think.Reply {
	in := s.Input()
	said := topics.Text(in.Content)
	switch {
	case in.Role != nil && *in.Role == "tool":
		return think.Say("working on it")
	case strings.HasPrefix(said, "[From: hand:"):
		return think.Say(said)
	}
	var r think.Reply
	if _, id, ok := strings.Cut(said, "cancel "); ok {
		input, _ := json.Marshal(map[string]string{"callback_id": id})
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: "cancel", Name: channel.CancelTool, Input: input}})
		return r
	}
	for i, part := range strings.Split(said, "<")[1:] {
		task, _, _ := strings.Cut(part, ">")
		input := map[string]any{"agent_id": "back", "message": "<" + task + ">"}
		if strings.HasSuffix(task, "!2") {
			input["timeout_seconds"] = 2
		}
		raw, _ := json.Marshal(input)
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: fmt.Sprint("call_", i), Name: channel.SendTool, Input: raw}})
	}
	if len(r.Blocks) == 0 {
		return think.Say("yes")
	}
	return r
}

func backSays(s think.Step) think.Reply {
	return think.Say("result of " + topics.Text(s.Input().Content))
}
