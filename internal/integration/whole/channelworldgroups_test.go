package whole

import (
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

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
	return h.group(turn.Graph(c.Agent, turn.Config{Channels: true, QueueLimit: 1000}))
}

// delegations returns the group of an agent's delegations.
func (h *harbor) delegations(c topics.Catalog) *reader {
	return h.group(delegation.Graph(c.Agent, delegation.Config{Agents: []string{"front", "back"}}))
}

// deliveries returns the group of the front agent's deliveries.
func (h *harbor) deliveries() *reader {
	r := h.group(delivery.Graph(h.front.Agent, delivery.Config{Channels: true}))
	apply := r.apply
	r.apply = func(key string, before row, e *entry) (row, []entry) {
		after, out := apply(key, before, e)
		for _, o := range out {
			if o.topic == h.front.DeliveryReceipts.Name() {
				require.Equal(h.t, topics.OutcomeDelivered, decode(h, h.front.DeliveryReceipts, &o).Outcome)
			}
		}
		return after, out
	}
	return r
}

// group returns the reader that is a group. Its table has only the row of the key that is read.
func (h *harbor) group(graph *goka.GroupGraph, err error) *reader {
	require.NoError(h.t, err)
	d := processortest.New(h.t, h.now, graph)
	d.HoldOutputs()
	table, empty := processortest.Table(d, graph.Group(), codec.Bytes()), d.Snapshot()
	offsets := map[*entry]int64{} // of the records that were read
	return &reader{string(graph.Group()), graph.InputStreams().Topics(), func(key string, before row, e *entry) (after row, out []entry) {
		d.Restore(empty)
		d.Advance(h.now.Sub(d.Now()))
		if before.table != nil {
			d.Restore(before.table)
		}
		if e == nil {
			d.Advance(0)
		} else if offset, ok := offsets[e]; ok {
			processortest.InRaw(d, e.topic).PipeAt(offset)
		} else {
			options := []processortest.RecordOption{processortest.WithTimestamp(e.at)}
			if e.id != "" {
				options = append(options, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte(e.id)}))
			}
			offsets[e] = processortest.InRaw(d, e.topic).PipeRaw(key, e.value, options...)
		}
		for _, topic := range graph.OutputStreams().Topics() {
			for _, r := range processortest.OutRaw(d, topic).Drain() {
				out = append(out, entry{lane: lane{topic, r.Key}, id: r.ID(), value: r.Raw})
			}
		}
		return row{table.Raw(key), d.Snapshot()}, out
	}}
}
