package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// The two scripted models. They are small, but they read their input: the question, the results of their tools, the history,
// and the memory. A real one is made by a package below processors/turn/think.

// firstQuestion needs two tools at once, and the other agent.
const firstQuestion = "What is 17.5 * 4, what time is it, and what is the area of a table of 12 by 7?"

var (
	areaPattern     = regexp.MustCompile(`(?i)\barea of [a-z ]*?(\d+(?:\.\d+)?) (?:by|x) (\d+(?:\.\d+)?)`)
	clockPattern    = regexp.MustCompile(`(?i)\b(?:time|clock)\b(?: is it)?(?: in ([A-Z][A-Za-z_]+/[A-Z][A-Za-z_]+))?`)
	sumPattern      = regexp.MustCompile(`(-?\d+(?:\.\d+)?) *([-+*/]) *(-?\d+(?:\.\d+)?)`)
	doublePattern   = regexp.MustCompile(`(?i)\b(?:double|twice) (?:it|that)\b`)
	againPattern    = regexp.MustCompile(`(?i)\b(?:again|repeat)\b`)
	notePattern     = regexp.MustCompile(`(?i)\bremember (?:that )?(my .*?)[.!]?$`)
	rememberPattern = regexp.MustCompile(`(?i)\bwhat do you (?:remember|know)\b`)
)

// orchestrate is the model of the orchestrator: it computes and reads the clock with tools, and delegates areas.
func orchestrate(_ context.Context, step think.Step) (think.Reply, error) {
	if results := resultsOf(step.Input()); results != nil {
		return say(sentence(results)), nil
	}
	question := topics.Text(step.Input().Content)
	switch calls := callsOf(question, lastValue(step.Messages)); {
	case len(calls) > 0:
		return reply("Let me ask my tools.", calls...), nil
	case notePattern.MatchString(question):
		return say("I will remember it."), nil
	case rememberPattern.MatchString(question):
		return say(recall(step.Memoir)), nil
	case againPattern.MatchString(question):
		return say(lastAnswer(step.Messages)), nil
	default:
		return say("I can compute (try 2 + 3, then: double that), tell the time (in Europe/Berlin, say), have the area of 3 by 4" +
			" worked out, and repeat my last answer. You have asked " + strconv.Itoa(questions(step.Messages)) + " so far."), nil
	}
}

// work is the model of the worker: it computes areas with its own calculator.
func work(_ context.Context, step think.Step) (think.Reply, error) {
	i := slices.IndexFunc(step.Messages, func(m topics.Message) bool { return is(m, "user") })
	area := areaPattern.FindStringSubmatch(topics.Text(step.Messages[i].Content))
	results := resultsOf(step.Input())
	switch {
	case area == nil:
		return say("I only know areas."), nil
	case results == nil:
		return reply("Width by length.", call(calculator.Name, sumOf(area[1], "*", area[2]))), nil
	case results[0].Result.Value == nil:
		return say(results[0].String()), nil
	}
	return say("the " + area[0] + " is " + number(*results[0].Result.Value)), nil
}

// callsOf returns the tool calls that a question needs. last is the value that "that" means.
func callsOf(question string, last *float64) (calls []think.Block) {
	for _, found := range sumPattern.FindAllStringSubmatch(question, -1) {
		calls = append(calls, call(calculator.Name, sumOf(found[1], found[2], found[3])))
	}
	if doublePattern.MatchString(question) && last != nil {
		calls = append(calls, call(calculator.Name, sum{2, "*", *last}))
	}
	for _, found := range clockPattern.FindAllStringSubmatch(question, -1) {
		calls = append(calls, call(clock.Name, place{found[1]}))
	}
	for _, area := range areaPattern.FindAllString(question, -1) {
		calls = append(calls, call(delegateTask, task{"Work out the " + area + "."}))
	}
	return calls
}

func sumOf(a, operator, b string) sum {
	x, _ := strconv.ParseFloat(a, 64) // the patterns match numbers only
	y, _ := strconv.ParseFloat(b, 64)
	return sum{x, operator, y}
}

// call returns a call of a tool. The worker of the model gives it an ID.
func call(name string, input any) think.Block {
	return think.Block{Call: &think.Call{Name: name, Input: encode(input)}}
}

// reply returns a reply of the model. One without calls ends the turn. Each costs a tenth of a cent.
func reply(text string, calls ...think.Block) think.Reply {
	return think.Reply{Blocks: append([]think.Block{{Text: text}}, calls...), Cost: new(0.001)}
}

func say(text string) think.Reply { return reply(text) }

// result is an element of a message of role tool: what a call resulted in.
type result struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Result struct {
		told
		Answer string `json:"result"` // of the other agent, in place of a text
		Error  string `json:"error"`
	} `json:"result"`
}

func (r result) String() string {
	if r.Status != "success" {
		return fmt.Sprintf("%s failed (%s)", r.Name, r.Result.Error)
	}
	return r.Result.Text + r.Result.Answer
}

// resultsOf returns the results in a message, nil if it is not of tools.
func resultsOf(m topics.Message) (results []result) {
	if !is(m, "tool") || json.Unmarshal(m.Content, &results) != nil {
		return nil
	}
	return results
}

func sentence(results []result) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, r.String())
	}
	s := strings.Join(parts, "; ")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// lastValue returns the last value of the calculator, nil if there is none.
func lastValue(history []topics.Message) *float64 {
	for _, m := range slices.Backward(history) {
		for _, r := range slices.Backward(resultsOf(m)) {
			if r.Result.Value != nil {
				return r.Result.Value
			}
		}
	}
	return nil
}

// lastAnswer returns the last text of the assistant: a turn ends in one.
func lastAnswer(history []topics.Message) string {
	for _, m := range slices.Backward(history) {
		if is(m, "assistant") {
			return topics.Text(m.Content)
		}
	}
	return "I have not answered anything yet."
}

// questions counts the messages of the user.
func questions(history []topics.Message) (n int) {
	for _, m := range history {
		if is(m, "user") {
			n++
		}
	}
	return n
}

// noted returns what a message asks to be remembered, from the user's point of view ("my boat is the Alba"), or "".
func noted(message string) string {
	if found := notePattern.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// recall returns what the model knows about its user, from the memory: a fact on each line.
func recall(memory string) string {
	if memory == "" {
		return "Nothing yet."
	}
	return strings.ReplaceAll(strings.ReplaceAll("You told me: "+memory+".", "my ", "your "), "\n", "; ")
}
