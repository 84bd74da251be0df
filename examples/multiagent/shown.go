package main

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// shown is a topic of the flow.
type shown struct {
	topic   string
	indent  string // the worker's are set in
	stage   int    // see flow.stage
	summary func(value []byte) string
	again   func(value []byte) bool // the record is of a step that has its tools' results
}

// stages is more than the flow of an agent has.
const stages = 100

// show makes a topic of the flow. No summary has a token.
func show[T any](t topics.Topic[T], say func(T) string, input func(T) topics.Raw) shown {
	read := func(value []byte) codec.Decoded[T] { return t.Codec().Unmarshal(value) }
	return shown{
		topic: t.Name(),
		summary: func(value []byte) string {
			switch in := read(value); {
			case in.Tombstone():
				return "(removed)"
			case in.Err != nil:
				return fmt.Sprintf("unreadable, %d bytes", len(value))
			default:
				return say(in.Value)
			}
		},
		again: func(value []byte) bool {
			if input == nil {
				return false
			}
			in := read(value)
			return in.Err == nil && roleOf(input(in.Value)) == "tool"
		},
	}
}

func roleOf(message topics.Raw) string {
	m, err := topics.DecodeMessage(message)
	if err != nil || m.Role == nil {
		return ""
	}
	return *m.Role
}

func orNone(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// shownOf are the topics of an agent in the order in which a turn passes them.
func shownOf(c topics.Catalog) []shown {
	asked := []shown{
		show(c.ReplyTo, func(r topics.Route) string {
			return "the answer is for " + orNone(r.CallbackService)
		}, nil),
		show(c.MessageInput, func(m topics.Message) string {
			if orNone(m.Role) == "tool" {
				return "tool: results"
			}
			return orNone(m.Role) + ": " + topics.Text(m.Content)
		}, func(m topics.Message) topics.Raw { return topics.EncodeMessage(m) }),
		show(c.EnrichedMessageInput, func(m topics.EnrichedMessage) string {
			elements, _ := topics.Elements(m.History)
			return fmt.Sprintf("%s input, %d messages of history", roleOf(m.LatestInput), len(elements))
		}, func(m topics.EnrichedMessage) topics.Raw { return m.LatestInput }),
		show(c.ThinkRequestResponse, said, func(t topics.ThinkResponse) topics.Raw { return t.LastInputMessage }),
		show(c.ThinkDLQ, func(f topics.ThinkFailure) string { return "the model failed" }, nil),
		show(c.ToolUse, func(t topics.ToolUseItem) string { return orNone(t.Name) + " " + string(t.Input) }, nil),
	}
	answered := []shown{
		show(c.ToolUseResult, func(r topics.ToolUseResult) string {
			return fmt.Sprintf("%s %s %s", orNone(r.Name), orNone(r.Status), r.Result)
		}, nil),
		show(c.ToolUseAllComplete, func(r topics.ToolResults) string {
			return fmt.Sprintf("all %d results are there", len(r.Results))
		}, nil),
	}
	last := []shown{
		show(c.MessageOutput, func(o topics.Output) string {
			if o.Error != nil {
				return fmt.Sprintf("error %s: %s", o.Error.Code, o.Error.Message)
			}
			return o.Content
		}, nil),
		show(c.Deliveries, func(d topics.Delivery) string {
			return fmt.Sprintf("attempt %d, to %s", d.Attempt, d.Route.Key())
		}, nil),
		show(c.DeliveryReceipts, func(r topics.Receipt) string {
			if r.Final {
				return fmt.Sprintf("%s in the end", r.Outcome)
			}
			return fmt.Sprintf("attempt %d: %s", r.Attempt, r.Outcome)
		}, nil),
		show(c.DeliveryDLQ, func(d topics.DeadDelivery) string { return d.Reason }, nil),
	}
	var all []shown
	for i, group := range [][]shown{asked, answered, last} {
		for j, s := range group {
			s.stage = i*2*stages + j
			if c.Agent == worker {
				s.indent, s.stage = "  ", stages+10*i+j
			}
			all = append(all, s)
		}
	}
	return all
}

// said is what a model said.
func said(t topics.ThinkResponse) string {
	var calls, texts []string
	for _, use := range t.ToolUses {
		calls = append(calls, orNone(use.Name))
	}
	if len(calls) > 0 {
		return "asks for " + strings.Join(calls, ", ")
	}
	for m, err := range topics.Messages(t.LastInputResponse) {
		if err == nil {
			texts = append(texts, topics.Text(m.Content))
		}
	}
	return "says: " + strings.Join(texts, " ")
}
