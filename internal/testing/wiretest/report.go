package wiretest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rule names a check of the oracle: a promise of the pipeline, or a part of one.
type Rule string

// The rules that an oracle checks.
const (
	RuleNoOutput     Rule = "message without output"              // every message ends in an output
	RuleTwoOutputs   Rule = "message with two outputs"            // every message ends in exactly one output
	RuleAlienOutput  Rule = "output without message"              // every output belongs to a message
	RuleOutcome      Rule = "output of another kind"              // the output has a kind that its message allows
	RuleCode         Rule = "error code outside the list"         // error codes are a closed list
	RuleAnswer       Rule = "answer without its response"         // an answer is the text of an accepted response
	RuleRequest      Rule = "request id lost or invented"         // an output has the request id of its message
	RuleRoute        Rule = "wrong reply route"                   // an output carries the route that was written for it
	RuleOrder        Rule = "out of input order"                  // turns of a session open and end in the order of its messages
	RuleInterleaved  Rule = "two turns open at once"              // a session has one open turn
	RuleNoResult     Rule = "tool call without result"            // every tool call ends in a result
	RuleTwoResults   Rule = "tool call with two results"          // every tool call ends in exactly one result
	RuleAlienResult  Rule = "tool result without call"            // a result belongs to a call
	RuleResultValue  Rule = "result that no tool gave"            // the first result wins; without one, an error is synthesised
	RuleItems        Rule = "tool message differs from tool_uses" // it has one entry for each element of tool_uses, in its order
	RuleCalls        Rule = "tool calls differ from tool_uses"    // there is one record for each element of tool_uses
	RuleSet          Rule = "complete set and message differ"     // they have the same results
	RuleHistory      Rule = "wrong history"                       // a turn starts with the history that the last answered turn left
	RuleHistoryBytes Rule = "history not byte for byte"           // history is passed on unchanged
	RuleCost         Rule = "wrong cost"                          // a step carries the cost of the response before it
	RuleStep         Rule = "step without its message"            // an enriched record that continues no response
	RuleNoID         Rule = "record without id"                   // every output record has an id
	RuleRepeat       Rule = "repeat with other bytes"             // records with one id are equal but for times
	RuleAgain        Rule = "repeat under exactly once"           // exactly once writes no repeats
	RuleWire         Rule = "wire format"                         // fields, order, types and times of a written record
	RuleLost         Rule = "record lost"                         // every input is used, dead-lettered, or ignored as a rule allows
	RuleFate         Rule = "record had an effect"                // a dead-lettered input has no other effect
	RuleLetter       Rule = "dead letter without its original"    // a dead letter has the key and the value of its original
)

// Violation is a broken rule and the record that shows it. It contains no payload.
type Violation struct {
	Rule   Rule
	At     Coord
	Detail string
}

// String returns the violation on one line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.At, v.Rule, v.Detail) }

// Counts are the numbers of records that the oracle read, by kind. A record and its repeats count once.
type Counts struct {
	// Records counts all records read, without transaction markers.
	Records int
	// Messages are the accepted messages, Turns the turns with a step, Answers and Errors their outputs.
	Messages, Turns, Answers, Errors int
	// Codes counts the error outputs by code.
	Codes map[string]int
	// Calls are valid tool calls, ToolMessages the messages with all results of a step, Synthesised the errors that stand
	// in for a missing result, by reason.
	Calls, ToolMessages int
	Synthesised         map[string]int
	// Repeats are records whose id was read before and that are equal but for times.
	Repeats int
	// DeadLetters are distinct dead-lettered inputs; LetterRepeats are further dead letters of the same input.
	DeadLetters, LetterRepeats int
	// UsedAndDead are inputs that were both used and dead-lettered. Only a redelivery after a crash causes that.
	UsedAndDead int
	// Routed are the outputs that carry a reply route.
	Routed int
}

// Report is the oracle's judgement of all records that it has read.
type Report struct {
	Counts     Counts
	Violations []Violation
	// Hidden is the number of violations that were left out because the report has reached its limit of 200.
	Hidden int
}

// Kept reports whether no rule was broken.
func (r Report) Kept() bool { return len(r.Violations) == 0 }

// Has reports whether the rule was broken.
func (r Report) Has(rule Rule) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == rule })
}

// String returns the counts, and a line for each violation.
func (r Report) String() string {
	var b strings.Builder
	c := r.Counts
	fmt.Fprintf(&b, "records=%d messages=%d turns=%d answers=%d errors=%d codes=%v calls=%d toolMessages=%d "+
		"synthesised=%v repeats=%d deadLetters=%d letterRepeats=%d usedAndDead=%d routed=%d violations=%d",
		c.Records, c.Messages, c.Turns, c.Answers, c.Errors, c.Codes, c.Calls, c.ToolMessages, c.Synthesised,
		c.Repeats, c.DeadLetters, c.LetterRepeats, c.UsedAndDead, c.Routed, len(r.Violations)+r.Hidden)
	for _, v := range r.Violations {
		b.WriteString("\n  " + v.String())
	}
	if r.Hidden > 0 {
		fmt.Fprintf(&b, "\n  and %d more", r.Hidden)
	}
	return b.String()
}

// maxViolations bounds a report: a broken pipeline can break a rule with every record.
const maxViolations = 200

func (r *Report) add(rule Rule, at Coord, format string, args ...any) {
	if len(r.Violations) >= maxViolations {
		r.Hidden++
		return
	}
	r.Violations = append(r.Violations, Violation{Rule: rule, At: at, Detail: fmt.Sprintf(format, args...)})
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Violations, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.At.Topic, b.At.Topic),
			cmp.Compare(a.At.Partition, b.At.Partition), cmp.Compare(a.At.Offset, b.At.Offset))
	})
}
