package provider

import "slices"

// missing is the text of the result that is added for a call without one.
const missing = "No result of this call was recorded."

// pair gives every call exactly one result, in the message after it, in the order of the calls and before other blocks.
// Providers reject a prompt in which a call has no result or a result has no call. A call without a result gets an error
// as its result. Of several results of a call the first one is used; calls with one ID take its results in their order. A
// result without a call becomes a text. Call and result get the name and the ID that are sent.
func pair(messages []Message, s *sent) []Message {
	var all []Message
	var calls []answered // of the message before
	for _, m := range messages {
		if m.Assistant {
			if len(calls) > 0 {
				all = append(all, Message{Blocks: resultsOf(calls, nil)})
			}
			calls = nil
			for i, b := range m.Blocks {
				if b.Kind == Call {
					m.Blocks[i] = s.call(b)
					calls = append(calls, answered{id: b.ID, sent: m.Blocks[i]})
				}
			}
			all = append(all, m)
			continue
		}
		m.Blocks = append(resultsOf(calls, m.Blocks), others(calls, m.Blocks)...)
		all, calls = append(all, m), nil
	}
	if len(calls) > 0 {
		all = append(all, Message{Blocks: resultsOf(calls, nil)})
	}
	return all
}

// answered is a call with the ID that it has in the conversation.
type answered struct {
	id   string
	sent Block
}

// resultsOf returns the result of each call.
func resultsOf(calls []answered, blocks []Block) []Block {
	var results []Block
	used := map[int]bool{}
	for _, c := range calls {
		r := Block{Kind: Result, Text: missing, Failed: true}
		for i, b := range blocks {
			if b.Kind == Result && b.ID == c.id && !used[i] {
				r, used[i] = b, true
				break
			}
		}
		if r.Raw != nil && r.ID != c.sent.ID {
			r.Raw = with(r.Raw, member{"tool_use_id", c.sent.ID})
		}
		r.ID, r.Name = c.sent.ID, c.sent.Name
		results = append(results, r)
	}
	return results
}

// others returns the blocks that are not results of the calls.
func others(calls []answered, blocks []Block) []Block {
	var rest []Block
	for _, b := range blocks {
		switch {
		case b.Kind != Result:
			rest = append(rest, b)
		case !slices.ContainsFunc(calls, func(c answered) bool { return c.id == b.ID }):
			rest = append(rest, Block{Kind: Text, Text: "Result of an earlier call of a tool: " + b.Text})
		}
	}
	return rest
}
