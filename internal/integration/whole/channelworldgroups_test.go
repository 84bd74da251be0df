package whole

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
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
	config := turn.Config{Channels: true, QueueLimit: 1000}
	require.NoError(h.t, config.Complete())
	inputs := []string{
		c.MessageInput.Name(), c.ThinkRequestResponse.Name(), c.ToolUseResult.Name(), c.ToolUseDLQ.Name(), c.SessionControl.Name(),
	}
	return &reader{"turns of " + c.Agent, inputs, func(key string, row []byte, e *entry) ([]byte, []entry) {
		var event turn.Event = turn.DeadlineCame{Session: key}
		if e != nil {
			r := &turn.Record{Session: key, Cause: e.cause, Own: e.id != "", At: e.at, Value: e.value, Topic: e.topic}
			if e.id != "" {
				r.Headers = []*turnrow.Header{{Name: []byte(topics.HeaderID), Value: []byte(e.id)}}
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
		var state *turnrow.State
		var err error
		if row != nil {
			state, err = turnrow.Table.Unmarshal(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o, err := turn.Apply(state, event, nil, c.Agent, h.now, config)
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
		row, err = turnrow.Table.Marshal(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}

// delegations returns the group of an agent's delegations.
func (h *harbor) delegations(c topics.Catalog) *reader {
	config := delegation.Config{Agents: []string{"front", "back"}}
	require.NoError(h.t, config.Complete())
	catalogs := map[string]topics.Catalog{"front": h.front, "back": h.back}
	inputs := []string{c.ToolUse.Name(), c.DelegationReplies.Name(), c.MessageOutput.Name(), c.SessionControl.Name()}
	return &reader{"delegations of " + c.Agent, inputs, func(key string, row []byte, e *entry) ([]byte, []entry) {
		var event delegation.Event = delegation.DeadlineCame{Session: key}
		if e != nil {
			r := &delegation.Record{Session: key, ID: e.cause, At: e.at, Value: e.value}
			switch e.topic {
			case c.ToolUse.Name():
				event = delegation.Called{Record: r, Call: decode(h, c.ToolUse, e)}
			case c.DelegationReplies.Name():
				event = delegation.Replied{Record: r, Reply: decode(h, c.DelegationReplies, e)}
			case c.MessageOutput.Name():
				event = delegation.OutputArrived{Record: r, Output: decode(h, c.MessageOutput, e)}
			default:
				event = delegation.Controlled{Record: r, Control: decode(h, c.SessionControl, e)}
			}
		}
		var state *delegationrow.State
		var err error
		if row != nil {
			state, err = delegationrow.Table.Unmarshal(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o := delegation.Apply(state, event, c.Agent, h.now, config)
		var out []entry
		for _, effect := range o.Effects {
			m, ok := effect.(delegation.Emit)
			require.True(h.t, ok, "%s: %v", c.Agent, effect)
			switch v := m.Value.(type) {
			case delegation.CallAnswered:
				out = append(out, encode(h, c.ToolUseResult, m.Key, m.ID, topics.ToolUseResult(v)))
			case delegation.StatusWritten:
				out = append(out, encode(h, c.DelegationStatus, m.Key, m.ID, topics.Delegation(v)))
			case delegation.CallbackSent:
				out = append(out, encode(h, c.MessageInput, m.Key, m.ID, topics.Message(v)))
			case delegation.ReplySent:
				out = append(out, encode(h, catalogs[v.Agent].DelegationReplies, m.Key, m.ID, v.Reply))
			case delegation.TaskSent:
				out = append(out, encode(h, catalogs[v.Agent].MessageInput, m.Key, m.ID, v.Message))
			case delegation.TaskCancelled:
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
		row, err = delegationrow.Table.Marshal(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}

// deliveries returns the group of the front agent's deliveries.
func (h *harbor) deliveries() *reader {
	c, config := h.front, delivery.Config{Channels: true}
	require.NoError(h.t, config.Complete())
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
		var state *deliveryrow.State
		var err error
		if row != nil {
			state, err = deliveryrow.Table.Unmarshal(bytes.Clone(row))
			require.NoError(h.t, err)
		}
		o := delivery.Apply(state, event, func(string) delivery.Gate { return delivery.Gate{} }, h.now, config)
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
		row, err = deliveryrow.Table.Marshal(o.State)
		require.NoError(h.t, err)
		return row, out
	}}
}
