package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// shown is a topic that the screen shows.
type shown struct {
	topics.Spec
	colour string
	say    func(r processors.Inbound) string // describes a record
}

// flow returns the topics that the screen shows, in the order in which a turn passes them. The turn of the worker is inside
// that of the orchestrator, between a tool call and its result.
func flow(front, back topics.Catalog) []shown {
	all := slices.Concat(begin(front), begin(back), end(back), end(front))
	return slices.DeleteFunc(all, func(s shown) bool { return !s.Created }) // of capabilities that are off
}

// begin is a turn up to the calls of its tools.
func begin(c topics.Catalog) []shown {
	return []shown{
		show(c.SessionControl, blue, func(m topics.Control) string { return m.Action }),
		show(c.ReplyTo, blue, func(r topics.Route) string {
			return "the answer is for " + text(r.CallbackService)
		}),
		show(c.MessageInput, cyan, func(m topics.Message) string {
			if results := resultsOf(m); results != nil {
				return fmt.Sprintf("tool: %d results", len(results))
			}
			return text(m.Role) + ": " + topics.Text(m.Content)
		}),
		show(c.MemoirLookups, cyan, func(m topics.EnrichedMessage) string { return input(m) + ", to get the memory" }),
		show(c.EnrichedMessageInput, cyan, func(m topics.EnrichedMessage) string {
			return fmt.Sprintf("%s, %d messages of history", input(m), count(m.History))
		}),
		show(c.ThinkRequestResponse, purple, func(r topics.ThinkResponse) string {
			var calls []string
			for _, use := range r.ToolUses {
				calls = append(calls, text(use.Name))
			}
			if calls != nil {
				return "asks for " + strings.Join(calls, ", ")
			}
			said := "says:"
			for m := range topics.Messages(r.LastInputResponse) {
				said += " " + topics.Text(m.Content)
			}
			return said
		}),
		show(c.GateRequests, blue, func(r topics.GateRequest) string {
			if r.Withdrawn != "" {
				return "withdrawn: " + string(r.Withdrawn)
			}
			return fmt.Sprintf("may %s run? %s", r.Tool, r.Args)
		}),
		show(c.GateDecisions, blue, func(d topics.GateDecision) string { return fmt.Sprintf("%s says %s %s", d.By, d.Verdict, d.Reason) }),
		show(c.GateOutcomes, blue, func(o topics.GateOutcome) string {
			return fmt.Sprintf("%s %s: %s %s", o.Tool, o.Status, o.Cause, o.Reason)
		}),
		show(c.ToolUse, yellow, func(u topics.ToolUseItem) string { return fmt.Sprintf("%s %s", text(u.Name), u.Input) }),
		dead(c.ThinkDLQ.Spec()), dead(c.ToolUseDLQ.Spec()), dead(topics.Spec{Name: c.DeadLetters(), Created: true}),
	}
}

// end is a turn from the results of its tools, and what follows it.
func end(c topics.Catalog) []shown {
	return []shown{
		show(c.ToolUseResult, yellow, func(r topics.ToolUseResult) string {
			return fmt.Sprintf("%s %s %s", text(r.Name), text(r.Status), r.Result)
		}),
		show(c.ToolUseAllComplete, yellow, func(r topics.ToolResults) string {
			return fmt.Sprintf("all %d results are there", len(r.Results))
		}),
		show(c.MessageOutput, green, func(o topics.Output) string {
			if o.Error != nil {
				return fmt.Sprintf("error %s: %s", o.Error.Code, o.Error.Message)
			}
			return o.Content
		}),
		show(c.Deliveries, blue, func(d topics.Delivery) string {
			return fmt.Sprintf("attempt %d to call %s back", d.Attempt, d.Route.Service)
		}),
		show(c.DeliveryReceipts, blue, func(r topics.Receipt) string {
			return fmt.Sprintf("attempt %d: %s %s", r.Attempt, r.Outcome, text(r.Reason))
		}),
		show(c.SessionEnd, blue, func(topics.SessionEnd) string { return "the session has ended" }),
		show(c.MemoirSessions, blue, func(s topics.MemoirSnapshot) string {
			return fmt.Sprintf("%d messages to remember", messages(s))
		}),
		show(c.MemoirContextSessionEnd, blue, func(s topics.MemoirSnapshot) string {
			return fmt.Sprintf("%d messages, memory %q", messages(s), s.MemoirContext)
		}),
		show(c.MemoirContext, green, func(memory string) string { return memory }),
		dead(c.DeliveryDLQ.Spec()), dead(c.MemoirDLQ.Spec()),
	}
}

// show describes the records of a topic by their values.
func show[T any](t topics.Topic[T], colour string, say func(T) string) shown {
	return shown{t.Spec(), colour, func(r processors.Inbound) string {
		switch v := t.Codec().Unmarshal(r.Value); {
		case v.Tombstone():
			return "(removed)"
		case v.Err != nil:
			return fmt.Sprintf("unreadable, %d bytes", len(r.Value))
		default:
			return say(v.Value)
		}
	}}
}

// dead describes the records of a dead-letter topic by the reason in their headers.
func dead(s topics.Spec) shown {
	return shown{s, red, func(r processors.Inbound) string {
		if r.Header(topics.HeaderErrorRequeued) != nil {
			return "(requeued)"
		}
		return "dead-lettered: " + string(r.Header(topics.HeaderErrorReason))
	}}
}

func input(m topics.EnrichedMessage) string {
	latest, _ := topics.DecodeMessage(m.LatestInput)
	return text(latest.Role) + " input"
}

func messages(s topics.MemoirSnapshot) int {
	if s.ThinkResponse == nil {
		return 0
	}
	return count(s.ThinkResponse.PreviousMessages)
}

// count returns the number of messages in an array.
func count(array topics.Raw) (n int) {
	for range topics.Messages(array) {
		n++
	}
	return n
}
