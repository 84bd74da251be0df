package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The two scripted models. They are small, but they read their input: the question, the results of their tools, and the
// history.

// firstQuestion needs two tools at once, and the other agent.
const firstQuestion = "What is (17.5 + 4) * 2, what time is it, and what is the area of a table of 12 by 7?"

var (
	areaPattern   = regexp.MustCompile(`(?i)\barea of [a-z ]*?(\d+(?:\.\d+)?) (?:by|x) (\d+(?:\.\d+)?)`)
	clockPattern  = regexp.MustCompile(`(?i)\b(?:time|clock)\b(?: is it)?(?: in ([A-Z][A-Za-z_]+/[A-Z][A-Za-z_]+))?`)
	sumPattern    = regexp.MustCompile(`[-(]*\d[\d.]*[)\s]*[-+*/%^][-+*/%^()\d.\s]*[\d)]`)
	doublePattern = regexp.MustCompile(`(?i)\b(?:double|twice) (?:it|that)\b`)
	againPattern  = regexp.MustCompile(`(?i)\b(?:again|repeat)\b`)
)

// orchestrate is the model of the orchestrator: it computes and reads the clock with tools, and delegates areas.
func orchestrate(c conversation) reply {
	if c.latest().Role == "tool" {
		return reply{text: sentence(explain(c))}
	}
	question := c.question()
	calls := asked(question, c.lastValue())
	switch {
	case len(calls) > 0:
		return reply{text: fmt.Sprintf("Let me ask %s.", names(calls)), calls: calls}
	case notePattern.MatchString(question):
		return reply{text: "I will remember it."}
	case rememberPattern.MatchString(question):
		return reply{text: recall(c.memory)}
	case againPattern.MatchString(question) && c.answer() != "":
		return reply{text: c.answer()}
	default:
		return reply{text: "I can compute (try 2 + 3 * 4, then: double that), tell the time (in Europe/Berlin, say), have" +
			" the area of 3 by 4 worked out, and repeat my last answer. You have asked " +
			strconv.Itoa(c.questions()) + " so far."}
	}
}

// work is the model of the worker: it computes areas with its own calculator.
func work(c conversation) reply {
	if c.latest().Role == "tool" {
		return reply{text: strings.Join(explain(c), ", ")}
	}
	task := areaPattern.FindStringSubmatch(c.question())
	if task == nil {
		return reply{text: "I only know areas."}
	}
	product := expressionInput{Expression: task[1] + " * " + task[2]}
	return reply{text: "Width by length.", calls: []call{{name: calculator, input: encode(product)}}}
}

// asked returns the tool calls that a question needs, in its order. last is the value that "that" means.
func asked(question, last string) []call {
	type found struct {
		at int
		call
	}
	var all []found
	for _, at := range areaPattern.FindAllStringIndex(question, -1) {
		task := taskInput{Task: "Work out the " + question[at[0]:at[1]] + "."}
		all = append(all, found{at[0], call{delegateTask, encode(task)}})
		// The numbers of an area are the other agent's.
		question = question[:at[0]] + strings.Repeat(" ", at[1]-at[0]) + question[at[1]:]
	}
	for _, at := range clockPattern.FindAllStringSubmatchIndex(question, -1) {
		var in zoneInput
		if at[2] >= 0 {
			in.Zone = question[at[2]:at[3]]
		}
		all = append(all, found{at[0], call{clockTool, encode(in)}})
	}
	for _, at := range sumPattern.FindAllStringIndex(question, -1) {
		sum := expressionInput{Expression: question[at[0]:at[1]]}
		all = append(all, found{at[0], call{calculator, encode(sum)}})
	}
	if at := doublePattern.FindStringIndex(question); at != nil && last != "" {
		sum := expressionInput{Expression: "2 * " + last}
		all = append(all, found{at[0], call{calculator, encode(sum)}})
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	calls := make([]call, len(all))
	for i, f := range all {
		calls[i] = f.call
	}
	return calls
}

// explain describes each tool call and its result.
func explain(c conversation) []string {
	var parts []string
	for _, o := range outcomes(c.latest()) {
		switch {
		case o.Status != statusSuccess:
			parts = append(parts, fmt.Sprintf("%s failed (%s)", o.Name, field[failure](o.Result).Error))
		case o.Name == calculator:
			sum := field[expressionInput](c.asked(o.ToolUseID)).Expression
			parts = append(parts, sum+" is "+field[computed](o.Result).Value.String())
		case o.Name == clockTool:
			clock := field[clockReading](o.Result)
			parts = append(parts, fmt.Sprintf("it is %s (%s)", clock.Time, clock.Zone))
		case o.Name == delegateTask:
			task := strings.TrimSuffix(field[taskInput](c.asked(o.ToolUseID)).Task, ".")
			task = strings.TrimPrefix(task, "Work out ")
			parts = append(parts, fmt.Sprintf("%s: %s", task, field[delegated](o.Result).Answer))
		}
	}
	return parts
}

func sentence(parts []string) string {
	s := strings.Join(parts, "; ")
	if s == "" {
		return "Nobody told me anything."
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func names(calls []call) string {
	var unique []string
	for _, c := range calls {
		if !slices.Contains(unique, c.name) {
			unique = append(unique, c.name)
		}
	}
	return strings.Join(unique, ", ")
}
