package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// What the scripted model understands:
//
//	Ask PEER: CONTENT             it delegates CONTENT to the peer and repeats the answer
//	How many invoices are open?   it calls the tool invoices
//	Pay AMOUNT to NAME.           it calls the tool pay, which needs an approval
//	Wait for the auditor.         it calls the tool auditor, which returns only when the turn is cancelled
var (
	delegation = regexp.MustCompile(`^Ask (\w+): (.+)$`)
	payment    = regexp.MustCompile(`^Pay (\d+\.\d\d) to (\w+)\.$`)
)

// script is the model of every instance.
func script(_ context.Context, step think.Step) (think.Reply, error) {
	in := step.Input()
	if in.Role != nil && *in.Role == "tool" {
		return repeat(in)
	}
	text := topics.Text(in.Content)
	if m := delegation.FindStringSubmatch(text); m != nil {
		return call(step, peer.ToolName, map[string]any{"peerId": m[1], "content": m[2]})
	}
	if text == "How many invoices are open?" {
		return call(step, "invoices", map[string]any{})
	}
	if text == "Wait for the auditor." {
		return call(step, "auditor", map[string]any{})
	}
	if m := payment.FindStringSubmatch(text); m != nil {
		return call(step, "pay", map[string]any{"amount": m[1], "to": m[2]})
	}
	return think.Say("Say: Ask acme: How many invoices are open?"), nil
}

func call(step think.Step, tool string, input map[string]any) (think.Reply, error) {
	encoded, err := json.Marshal(input, json.Deterministic(true))
	if err != nil {
		return think.Reply{}, err
	}
	id := tool + "-" + strconv.Itoa(len(step.Messages))
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: id, Name: tool, Input: encoded}}}}, nil
}

// repeat answers with the result of the tool.
func repeat(in topics.Message) (think.Reply, error) {
	var results []struct {
		Name   string         `json:"name"`
		Status string         `json:"status"`
		Result jsontext.Value `json:"result"`
	}
	if err := json.Unmarshal(in.Content, &results); err != nil || len(results) != 1 {
		return think.Reply{}, fmt.Errorf("not one result: %w", err)
	}
	r := results[0]
	member := func(name string) string {
		value, _ := topics.Lookup(topics.Raw(r.Result), name)
		return topics.Text(value)
	}
	switch {
	case r.Status != "success":
		text := member("error")
		return think.Say("That failed (" + member("reason") + "): " + quoted(text)), nil
	case r.Name == peer.ToolName:
		return think.Say("The peer says: " + quoted(member("result"))), nil
	default:
		return think.Say(member("result")), nil
	}
}

// marked finds the text of a peer in a tool result, which marks it as untrusted.
var marked = regexp.MustCompile(`(?s)\[begin (\w+)\]\n(.*)\n\[end (\w+)\]`)

// quoted returns the text of the peer in the result of a delegation, or the whole text if no peer has answered.
func quoted(text string) string {
	if m := marked.FindStringSubmatch(text); m != nil && m[1] == m[3] {
		return m[2]
	}
	return strings.TrimSpace(text)
}

// toolset are the tools of an instance besides delegate_to_peer, which package peer implements.
func toolset(openInvoices int) map[string]tools.Func {
	return map[string]tools.Func{
		"invoices": func(context.Context, tools.Call) (any, error) {
			return map[string]any{"result": fmt.Sprintf("%d invoices are open.", openInvoices)}, nil
		},
		"auditor": func(ctx context.Context, _ tools.Call) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
		"pay": func(context.Context, tools.Call) (any, error) {
			return map[string]any{"result": "Paid."}, nil
		},
	}
}

// policy lets the agent read and delegate, and asks a person before it pays.
func policy() approval.Policy {
	return approval.Policy{
		ReadOnly: []string{"invoices", "auditor"},
		Rules: []approval.Rule{
			{Tool: peer.ToolName, Effect: approval.Allow},
			{Tool: "pay", Effect: approval.Ask, Message: "May this be paid?"},
		},
	}
}
