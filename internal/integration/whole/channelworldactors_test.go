package whole

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// sink returns the sink. The platform refuses up to two attempts of each message, and accepts some of them all the same.
func (h *harbor) sink() *reader {
	c := h.front
	return &reader{"sink", []string{c.Deliveries.Name()}, func(key string, _ row, e *entry) (row, []entry) {
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
		return row{}, []entry{encode(h, c.DeliveryReceipts, key, fmt.Sprintf("%s/receipt/%d", d.DeliveryID, d.Attempt), receipt)}
	}}
}

// model returns a model that answers a step the same way each time.
func (h *harbor) model(c topics.Catalog, script func(think.Step) think.Reply) *reader {
	return &reader{"model of " + c.Agent, []string{c.EnrichedMessageInput.Name()}, func(key string, _ row, e *entry) (row, []entry) {
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
		return row{}, []entry{encode(h, c.ThinkRequestResponse, key, e.id+"/think", response)}
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
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: "cancel", Name: delegation.CancelTool, Input: input}})
		return r
	}
	for i, part := range strings.Split(said, "<")[1:] {
		task, _, _ := strings.Cut(part, ">")
		input := map[string]any{"agent_id": "back", "message": "<" + task + ">"}
		if strings.HasSuffix(task, "!2") {
			input["timeout_seconds"] = 2
		}
		raw, _ := json.Marshal(input)
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{ID: fmt.Sprint("call_", i), Name: delegation.SendTool, Input: raw}})
	}
	if len(r.Blocks) == 0 {
		return think.Say("yes")
	}
	return r
}

func backSays(s think.Step) think.Reply {
	return think.Say("result of " + topics.Text(s.Input().Content))
}
