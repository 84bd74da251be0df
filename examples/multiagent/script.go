package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// The two scripted models. They read the question and the tool results.

// firstQuestion makes the orchestrator call the worker three times.
const firstQuestion = "What is 17 * 23, what is 2 + 40, and what is 9 - 4?"

// The expected answers to firstQuestion: the exact text of the scripted models, and the values for any other model.
const (
	scriptedAnswer = `^17 \* 23 is 391; 2 \+ 40 is 42; 9 - 4 is 5\.$`
	anyAnswer      = `(?s)391.*42.*5`
)

var sum = regexp.MustCompile(`(\d{1,30}) ?([-+*/]) ?(\d{1,30})`)

// orchestrate is the scripted model of the orchestrator: it delegates every calculation and joins the answers.
func orchestrate(_ context.Context, s think.Step) (think.Reply, error) {
	input := s.Input()
	if input.Role != nil && *input.Role == "tool" {
		return counted(s, think.Say(strings.Join(answersOf(s), "; ")+".")), nil
	}
	var r think.Reply
	for i, task := range sum.FindAllString(topics.Text(input.Content), -1) {
		text, _ := jsontext.AppendQuote([]byte(`{"task":`), "Work out "+task+".")
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{
			ID: callID(s.Key, i), Name: delegateTask, Input: append(text, '}'),
		}})
	}
	if r.Blocks == nil {
		return counted(s, think.Say("I have sums worked out: ask for 17 * 23, say.")), nil
	}
	r.Blocks = append([]think.Block{{Text: "Let me have that worked out."}}, r.Blocks...)
	return counted(s, r), nil
}

var errDivision = errors.New("division by zero")

// work is the scripted model of the worker: it calculates.
func work(_ context.Context, s think.Step) (think.Reply, error) {
	task := sum.FindStringSubmatch(topics.Text(s.Input().Content))
	if task == nil {
		return counted(s, think.Say("I only know sums.")), nil
	}
	left, _ := new(big.Int).SetString(task[1], 10)
	right, _ := new(big.Int).SetString(task[3], 10)
	value := new(big.Rat)
	switch a, b := new(big.Rat).SetInt(left), new(big.Rat).SetInt(right); task[2] {
	case "+":
		value.Add(a, b)
	case "-":
		value.Sub(a, b)
	case "*":
		value.Mul(a, b)
	default:
		if b.Sign() == 0 {
			return think.Reply{}, errDivision // the turn ends in an error output, which the caller receives
		}
		value.Quo(a, b)
	}
	return counted(s, think.Say(fmt.Sprintf("%s %s %s is %s", task[1], task[2], task[3], value.RatString()))), nil
}

// callID derives the ID of a step's i-th call, so that a repeat of the step has the same IDs.
func callID(step string, i int) string {
	digest := sha256.Sum256([]byte(step))
	return fmt.Sprintf("call-%s-%d", hex.EncodeToString(digest[:4]), i+1)
}

// answersOf returns the answer of each tool.
func answersOf(s think.Step) []string {
	var results []struct {
		Name   string         `json:"name"`
		Result jsontext.Value `json:"result"`
		Status string         `json:"status"`
	}
	if json.Unmarshal(s.Input().Content, &results) != nil {
		return []string{"the tool results cannot be read"}
	}
	var parts []string
	for _, r := range results {
		if r.Status == "error" {
			parts = append(parts, r.Name+" failed ("+reasonOf(r.Result)+")")
			continue
		}
		answer, _ := topics.Lookup(topics.Raw(r.Result), "result")
		parts = append(parts, strings.TrimSuffix(topics.Text(answer), "."))
	}
	return parts
}

// reasonOf returns the reason of an error result. Its error is a string, or an object with a message if an agent answered.
func reasonOf(result jsontext.Value) string {
	failure, _ := topics.Lookup(topics.Raw(result), "error")
	if message, _ := topics.Lookup(failure, "message"); message != nil {
		failure = message
	}
	return topics.Text(failure)
}

// The cost of the scripted models: tokenPrice is in dollars per token.
const (
	bytesPerToken = 4
	tokenPrice    = 1e-6
)

// counted returns the reply with its tokens and cost.
func counted(s think.Step, r think.Reply) think.Reply {
	for _, m := range s.Messages {
		r.InputTokens += int64(len(m.Content) / bytesPerToken)
	}
	for _, b := range r.Blocks {
		r.OutputTokens += int64(len(b.Text) / bytesPerToken)
	}
	cost := tokenPrice * float64(r.InputTokens+r.OutputTokens)
	r.Cost = &cost
	return r
}
