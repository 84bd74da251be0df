package main

import (
	"context"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// The agents: people talk to the concierge, which hands work off to the workspace.
const (
	concierge = "concierge"
	workspace = "workspace"
)

// What the scripted model of the concierge understands:
//
//	Pay AMOUNT to NAME.   it calls the tool pay, which needs an approval
//	anything else         it hands the text off to the workspace, and says so
var payment = regexp.MustCompile(`^Pay (\d+\.\d\d) to (\w+)\.$`)

// result finds the text of another agent in the message that returns it.
var result = regexp.MustCompile(`(?s)^\[From: hand:(\w+)\][^\n]*\n(.*)$`)

// converses is the model of the concierge.
func converses(_ context.Context, step think.Step) (think.Reply, error) {
	in := step.Input()
	if in.Role != nil && *in.Role == "tool" {
		return repeats(in), nil
	}
	text := withoutName(topics.Text(in.Content))
	if m := result.FindStringSubmatch(text); m != nil {
		return think.Say("The " + m[1] + " reports: " + strings.TrimSpace(m[2])), nil
	}
	if m := payment.FindStringSubmatch(text); m != nil {
		return calls("pay", map[string]any{"amount": m[1], "to": m[2]})
	}
	return calls("agent_send_async", map[string]any{"agent_id": workspace, "message": text})
}

// withoutName removes the name of the person that precedes what is written in rooms. The name of another agent stays.
func withoutName(text string) string {
	if rest, ok := strings.CutPrefix(text, "[From: "); ok && !strings.HasPrefix(rest, "hand:") {
		if _, said, ok := strings.Cut(rest, "] "); ok {
			return said
		}
	}
	return text
}

func calls(tool string, input map[string]any) (think.Reply, error) {
	encoded, err := json.Marshal(input, json.Deterministic(true))
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: tool, Name: tool, Input: encoded}}}}, err
}

// repeats says what came of the tool.
func repeats(in topics.Message) think.Reply {
	var results []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Result struct {
			Error  string `json:"error"`
			Result string `json:"result"`
		} `json:"result"`
	}
	if err := json.Unmarshal(in.Content, &results); err != nil || len(results) != 1 {
		return think.Say("That did not work.")
	}
	switch r := results[0]; {
	case r.Status != "success":
		return think.Say("That was not done: " + r.Result.Error)
	case r.Name != "agent_send_async":
		return think.Say(r.Result.Result)
	default:
		return think.Say("Right away. The " + workspace + " is working on it.")
	}
}

// works is the model of the workspace. It takes as long as the tool work does.
func works(_ context.Context, step think.Step) (think.Reply, error) {
	in := step.Input()
	if in.Role != nil && *in.Role == "tool" {
		return repeats(in), nil
	}
	return calls("work", map[string]any{"task": topics.Text(in.Content)})
}

// payTool is the tool of the concierge.
func payTool(context.Context, tools.Call) (any, error) {
	return map[string]any{"result": "Paid."}, nil
}
