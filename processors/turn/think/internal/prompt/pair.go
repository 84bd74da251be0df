package prompt

import "slices"

// missing is the text of the result that is added for a call without one.
const missing = "No result of this call was recorded."

// pair gives every call exactly one result, in the message after it, in the order of the calls and before other blocks.
// Providers reject a prompt in which a call has no result or a result has no call. A call without a result gets an error
// as its result. Of several results of a call the first one is used. A result without a call becomes a text.
func pair(messages []Message) []Message {
	var all []Message
	var calls []Block // of the message before
	for _, m := range messages {
		if m.Assistant {
			if len(calls) > 0 {
				all = append(all, Message{Blocks: resultsOf(calls, nil)})
			}
			m.Blocks, calls = splitCalls(m.Blocks)
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

// splitCalls returns the blocks of a message of the assistant and the calls among them. A call with the ID of another one
// is left out.
func splitCalls(blocks []Block) (kept, calls []Block) {
	for _, b := range blocks {
		if b.Kind == Call && has(calls, b.ID) {
			continue
		}
		kept = append(kept, b)
		if b.Kind == Call {
			calls = append(calls, b)
		}
	}
	return kept, calls
}

// resultsOf returns the result of each call.
func resultsOf(calls, blocks []Block) []Block {
	var results []Block
	for _, c := range calls {
		r := Block{Kind: Result, Text: missing, Failed: true}
		if i := slices.IndexFunc(blocks, func(b Block) bool { return b.Kind == Result && b.ID == c.ID }); i >= 0 {
			r = blocks[i]
		}
		r.ID, r.Name = c.ID, c.Name
		results = append(results, r)
	}
	return results
}

// others returns the blocks that are not results of the calls.
func others(calls, blocks []Block) []Block {
	var rest []Block
	for _, b := range blocks {
		switch {
		case b.Kind != Result:
			rest = append(rest, b)
		case !has(calls, b.ID):
			rest = append(rest, Block{Kind: Text, Text: "Result of an earlier call of a tool: " + b.Text})
		}
	}
	return rest
}

func has(calls []Block, id string) bool {
	return slices.ContainsFunc(calls, func(c Block) bool { return c.ID == id })
}
