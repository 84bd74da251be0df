package main

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// topicView describes how the records of a topic are printed.
type topicView struct {
	topic   string
	indent  string // of the worker's topics
	stage   int    // see flow.stageOf
	summary func(value []byte) string
	again   func(value []byte) bool // reports whether the record belongs to a step that has tool results
}

// stages is greater than the number of stages of one agent.
const stages = 100

// view returns the view of a topic. Summaries contain no bearer tokens.
func view[T any](t topics.Topic[T], summarize func(T) string, input func(T) topics.Raw) topicView {
	read := func(value []byte) codec.Decoded[T] { return t.Codec().Unmarshal(value) }
	return topicView{
		topic: t.Name(),
		summary: func(value []byte) string {
			switch in := read(value); {
			case in.Tombstone():
				return "(removed)"
			case in.Err != nil:
				return fmt.Sprintf("unreadable, %d bytes", len(value))
			default:
				return summarize(in.Value)
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

// viewsOf returns the views of an agent's topics, in the order in which a turn writes them.
func viewsOf(c topics.Catalog) []topicView {
	requests := []topicView{
		view(c.ReplyTo, func(r topics.Route) string {
			return "the answer is for " + orNone(r.CallbackService)
		}, nil),
		view(c.MessageInput, func(m topics.Message) string {
			if orNone(m.Role) == "tool" {
				return "tool: results"
			}
			return orNone(m.Role) + ": " + topics.Text(m.Content)
		}, func(m topics.Message) topics.Raw { return topics.EncodeMessage(m) }),
		view(c.EnrichedMessageInput, func(m topics.EnrichedMessage) string {
			elements, _ := topics.Elements(m.History)
			return fmt.Sprintf("%s input, %d messages of history", roleOf(m.LatestInput), len(elements))
		}, func(m topics.EnrichedMessage) topics.Raw { return m.LatestInput }),
		view(c.ThinkRequestResponse, summarizeThink, func(t topics.ThinkResponse) topics.Raw { return t.LastInputMessage }),
		view(c.ThinkDLQ, func(f topics.ThinkFailure) string { return "the model failed" }, nil),
		view(c.ToolUse, func(t topics.ToolUseItem) string { return orNone(t.Name) + " " + string(t.Input) }, nil),
	}
	results := []topicView{
		view(c.ToolUseResult, func(r topics.ToolUseResult) string {
			return fmt.Sprintf("%s %s %s", orNone(r.Name), orNone(r.Status), r.Result)
		}, nil),
		view(c.ToolUseAllComplete, func(r topics.ToolResults) string {
			return fmt.Sprintf("all %d results are there", len(r.Results))
		}, nil),
	}
	outputs := []topicView{
		view(c.MessageOutput, func(o topics.Output) string {
			if o.Error != nil {
				return fmt.Sprintf("error %s: %s", o.Error.Code, o.Error.Message)
			}
			return o.Content
		}, nil),
		view(c.Deliveries, func(d topics.Delivery) string {
			return fmt.Sprintf("attempt %d, to %s", d.Attempt, d.Route.Key())
		}, nil),
		view(c.DeliveryReceipts, func(r topics.Receipt) string {
			if r.Final {
				return fmt.Sprintf("%s in the end", r.Outcome)
			}
			return fmt.Sprintf("attempt %d: %s", r.Attempt, r.Outcome)
		}, nil),
		view(c.DeliveryDLQ, func(d topics.DeadDelivery) string { return d.Reason }, nil),
	}
	var all []topicView
	for i, group := range [][]topicView{requests, results, outputs} {
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

// summarizeThink returns the tools that a model calls, or else its text.
func summarizeThink(t topics.ThinkResponse) string {
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
