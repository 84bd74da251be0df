package whole

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/processortest"
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
	apply  func(key string, before row, e *entry) (after row, out []entry)
}

// row is what a group has at a key: the row, nil if there is none, and its table with only that row and its parts.
type row struct {
	value []byte
	table *processortest.Snapshot
}

// station is a reader at one key. After a crash it reads the records since the last cut again, and has its row of any time since.
type station struct {
	*reader
	key  string
	row  row
	next map[string]int
	// cut is the positions of the last cut, and rows are the rows since.
	cut  map[string]int
	rows []row
}

// harbor is two agents with the transitions of their turns, delegations and deliveries, without a broker. A test picks which
// station reads next.
type harbor struct {
	t           *rapid.T
	front, back topics.Catalog
	now         time.Time
	settings    *channel.Settings
	bridge      *channel.Bridge
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
	h.bridge, err = channel.NewBridge(channel.Fixed(h.settings), h, []topics.Catalog{h.front}, channel.BridgeConfig{Clock: clock.NewFake(h.now)})
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
					reader: r, key: e.key, next: map[string]int{}, cut: map[string]int{}, rows: []row{{}},
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
	s.rows = []row{s.row}
}

// crash returns to the positions of the cut and to a row since then.
func (s *station) crash(which int) {
	s.next = map[string]int{}
	for topic, n := range s.cut {
		s.next[topic] = n
	}
	s.row = s.rows[which%len(s.rows)]
	s.rows = []row{s.row}
}

// timed is the codec of one of the tables. The rows of all of them have their deadlines in the same field.
var timed = func() processors.Timed {
	graph, err := delegation.Graph("quay", delegation.Config{})
	if err != nil {
		panic(err)
	}
	return graph.GroupTable().Codec().(processors.Timed)
}()

// due returns the deadline of the row.
func (s *station) due() (at time.Time, ok bool) {
	if s.row.value == nil {
		return at, false
	}
	ms, ok := timed.Deadline(s.row.value)
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
