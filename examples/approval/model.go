package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// payment is the input of the tool pay.
type payment struct {
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// request is what the scripted model understands.
var request = regexp.MustCompile(`^Pay (\d+)\.(\d\d) to (\w+)\.$`)

// outcome is an element of a tool message.
type outcome struct {
	Name   string         `json:"name"`
	Status string         `json:"status"`
	Result jsontext.Value `json:"result"`
}

// script is the model: it reads the ledger, pays, and then says what it was told.
func script(s *screen) think.Func {
	return func(_ context.Context, step think.Step) (think.Reply, error) {
		in := step.Input()
		if in.Role == nil || *in.Role != "tool" {
			if !request.MatchString(topics.Text(in.Content)) {
				return think.Say(`Say: Pay 12.50 to mira.`), nil
			}
			return call("ledger", "ledger-"+strconv.Itoa(len(step.Messages)), `{}`), nil
		}
		var results []outcome
		if err := json.Unmarshal(in.Content, &results); err != nil || len(results) != 1 {
			return think.Reply{}, fmt.Errorf("not one result: %w", err)
		}
		r := results[0]
		if r.Name == "ledger" {
			return pay(step)
		}
		s.line("model", "was told: %s %s", r.Status, r.Result)
		if r.Status != "success" {
			return think.Say("I did not pay. I will not try again unless you ask me to."), nil
		}
		return think.Say("Paid."), nil
	}
}

// pay asks for the payment of the last user message.
func pay(step think.Step) (think.Reply, error) {
	for i := len(step.Messages) - 1; i >= 0; i-- {
		m := request.FindStringSubmatch(topics.Text(step.Messages[i].Content))
		if m == nil || *step.Messages[i].Role != "user" {
			continue
		}
		cents, err := strconv.ParseInt(m[1]+m[2], 10, 64)
		if err != nil {
			return think.Reply{}, err
		}
		args, err := json.Marshal(payment{To: m[3], Cents: cents})
		if err != nil {
			return think.Reply{}, err
		}
		return call("pay", "pay-"+strconv.Itoa(len(step.Messages)), string(args)), nil
	}
	return think.Reply{}, fmt.Errorf("no request in %d messages", len(step.Messages))
}

func call(name, id, args string) think.Reply {
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: id, Name: name, Input: topics.Raw(args)}}}}
}

// toolset are the agent's tools. Pass Call.Key to the bank as idempotency key: after a crash of the worker, a tool can be
// called again for the same call.
func toolset(s *screen) map[string]tools.Func {
	return map[string]tools.Func{
		"ledger": func(context.Context, tools.Call) (any, error) {
			s.line("ledger", "was read, without a gate")
			return map[string]any{"balance": 250_000}, nil
		},
		"pay": func(_ context.Context, c tools.Call) (any, error) {
			var p payment
			if err := c.Bind(&p); err != nil {
				return nil, err
			}
			s.line("pay", "ran: %d.%02d to %s", p.Cents/100, p.Cents%100, p.To)
			return map[string]any{"paid": p.Cents, "receipt": strings.ToUpper(p.To) + "-1"}, nil
		},
	}
}
