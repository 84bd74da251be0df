package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// The words in which outputs and expectations are compared.

// say is an output without what depends on the time it was made.
func say(v value) string {
	switch v := v.(type) {
	case enriched:
		return asking(string(v.LatestInput), string(topics.Splice(v.History)), costText(v.Cost)+promptText(v.EphemeralPrompt))
	case called:
		return callsFor(v.ToolUseID, v.Name, string(v.Input), int(v.TotalTools)) + fromText(v.Origin, v.Depth)
	case gateRequested:
		if v.Withdrawn != "" {
			return "withdraws: " + string(v.Withdrawn)
		}
		return asksFor(v.ToolUseID, v.Tool) + fromText(v.Channel, 0)
	case refused:
		return fmt.Sprintf("refuses %s %s of %d", quotedText(v.ToolUseID), quotedText(v.Name), v.TotalTools)
	case completed:
		var calls []expectedCall
		for i, r := range v.Results {
			calls = append(calls, expectedCall{id: v.Expected[i].ToolUseID, name: v.Expected[i].Name, outcome: outcomeOf(r.Result)})
			if quotedText(r.ToolUseID) != quotedText(v.Expected[i].ToolUseID) {
				return "the results are not those of the calls"
			}
		}
		return fmt.Sprintf("completes %d: %s", v.ExpectedCount, callsText(calls))
	case toolMessage:
		return "tells " + toolText(v.Content)
	case answered:
		text := v.Content
		if v.Error != nil {
			text = "error:" + string(v.Error.Code)
		}
		request := ""
		if v.RequestID != nil {
			request = *v.RequestID
		}
		return answering(text, costText(v.Cost), request, string(v.ReplyTo))
	default:
		return fmt.Sprintf("%T", v)
	}
}

func asking(input, history, cost string) string {
	var m struct {
		Role    string
		Content json.RawMessage
	}
	if !strings.Contains(input, `"role":"tool"`) { // most are the user's, and large
		return fmt.Sprintf("asks %s cost %s after %s", input, cost, history)
	}
	if err := json.Unmarshal([]byte(input), &m); err == nil && m.Role == roleTool {
		input = toolText(topics.Raw(m.Content))
	}
	return fmt.Sprintf("asks %s cost %s after %s", input, cost, history)
}

func answering(text, cost, request, route string) string {
	return fmt.Sprintf("%s (cost %s, request %q, to %s)", text, cost, request, route)
}

func costText(cost *float64) string {
	if cost == nil {
		return "none"
	}
	return fmt.Sprint(*cost)
}

func quotedText(text *string) string {
	if text == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *text)
}

func callsText(calls []expectedCall) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "[%s %s %s]", quotedText(c.id), quotedText(c.name), c.outcome)
	}
	return b.String()
}

// outcomeOf is a result as the oracle names it: what the tool said, or why there is an error in its place.
func outcomeOf(result topics.Raw) string {
	var r struct {
		Said, Reason string
		Edited       json.RawMessage `json:"turntable_approval"`
	}
	_ = json.Unmarshal(result, &r)
	said, _, _ := strings.Cut(r.Said, " ")
	if r.Reason != "" {
		said = "error:" + r.Reason
	}
	if r.Edited != nil {
		said += " (edited)"
	}
	return said
}

// toolText is the content of a tool message.
func toolText(content topics.Raw) string {
	var entries []struct {
		ToolUseID *string `json:"tool_use_id"`
		Name      *string
		Result    json.RawMessage
	}
	if err := json.Unmarshal(content, &entries); err != nil {
		return err.Error()
	}
	var calls []expectedCall
	for _, e := range entries {
		calls = append(calls, expectedCall{id: e.ToolUseID, name: e.Name, outcome: outcomeOf(topics.Raw(e.Result))})
	}
	return callsText(calls)
}
