package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// summarize describes a record of the pipeline in a line.
func summarize(agent string, r *kgo.Record) string {
	suffix := strings.TrimPrefix(r.Topic, agent+"-")
	summary, known := summaries[suffix]
	switch {
	case suffix == memoirContext && r.Value != nil: // text, no JSON
		return oneLine(string(r.Value))
	case r.Value == nil:
		return "(removed)"
	case reason(r) != "":
		return "dead-lettered: " + reason(r)
	case !known:
		return fmt.Sprintf("%d bytes", len(r.Value))
	}
	line, err := summary(r.Value)
	if err != nil {
		return fmt.Sprintf("unreadable, %d bytes", len(r.Value))
	}
	return oneLine(line)
}

var summaries = map[string]func(raw jsontext.Value) (string, error){
	messageInput: of(func(m message) string {
		if results := outcomes(m); results != nil {
			return fmt.Sprintf("%s: %d results", m.Role, len(results))
		}
		return m.Role + ": " + contentText(m.Content)
	}),
	enrichedInput: of(func(m enrichedMessage) string {
		return fmt.Sprintf("%s input, %d messages of history", field[message](m.LatestInput).Role, len(m.History))
	}),
	thinkResponses: of(func(t thinkResponse) string {
		if len(t.ToolUses) == 0 {
			var said []string
			for _, m := range t.LastInputResponse {
				said = append(said, contentText(m.Content))
			}
			return "says: " + strings.Join(said, " ")
		}
		var calls []string
		for _, use := range t.ToolUses {
			calls = append(calls, use.Name)
		}
		return "asks for " + strings.Join(calls, ", ")
	}),
	memoirLookups: of(func(m enrichedMessage) string {
		return field[message](m.LatestInput).Role + " input, to get the memory"
	}),
	sessionEnd: of(func(struct{}) string { return "the session has ended" }),
	memoirSessions: of(func(s snapshot) string {
		return fmt.Sprintf("%d messages to remember", len(s.ThinkResponse.PreviousMessages))
	}),
	memoirSnapshots: of(func(s snapshot) string {
		return fmt.Sprintf("%d messages, memory %q", len(s.ThinkResponse.PreviousMessages), s.MemoirContext)
	}),
	sessionControl: of(func(l leave) string { return l.Action }),
	toolUses:       of(func(t toolUse) string { return fmt.Sprintf("%s %s", t.Name, t.Input) }),
	toolUseResults: of(func(t toolResult) string {
		return fmt.Sprintf("%s %s %s", t.Name, t.Status, t.Result)
	}),
	toolUseComplete: of(func(t struct {
		Results []toolResult `json:"results"`
	},
	) string {
		return fmt.Sprintf("all %d results are there", len(t.Results))
	}),
	messageOutput: of(func(o output) string {
		if o.Error != nil {
			return fmt.Sprintf("error %s: %s", o.Error.Code, o.Error.Message)
		}
		return o.Content
	}),
	gateRequests: of(func(g gateRequest) string {
		if g.Withdrawn != "" {
			return "withdrawn: " + g.Withdrawn
		}
		return fmt.Sprintf("may %s run? %s", g.Tool, g.Args)
	}),
	gateDecisions: of(func(d gateDecision) string { return strings.TrimSpace(d.By + " says " + d.Verdict + " " + d.Reason) }),
	gateOutcomes: of(func(o gateOutcome) string {
		return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", o.Tool, o.Status, o.Cause, o.Reason))
	}),
	replyTo:    of(func(r route) string { return "answer to " + r.CallbackService + " as " + r.RequestID }),
	toolUseDLQ: of(func(t toolUse) string { return "invalid tool call " + t.ToolUseID }),
}

func of[T any](say func(T) string) func(jsontext.Value) (string, error) {
	return func(raw jsontext.Value) (string, error) {
		var v T
		err := json.Unmarshal(raw, &v)
		return say(v), err
	}
}

func reason(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "error.reason" {
			return string(h.Value)
		}
	}
	return ""
}

const lineLimit = 100

// oneLine replaces characters that would break the line or the terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > lineLimit {
		return string(runes[:lineLimit-1]) + "…"
	}
	return s
}
