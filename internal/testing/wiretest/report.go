package wiretest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rule names a promise, or a part of one.
type Rule string

// The rules an oracle checks.
const (
	RuleNoOutput     Rule = "message without output"           // promise 1: none hangs
	RuleTwoOutputs   Rule = "message with two outputs"         // promise 1: exactly one
	RuleAlienOutput  Rule = "output without message"           // promise 1: exactly one
	RuleOutcome      Rule = "output of another kind"           // not the end the message must have
	RuleCode         Rule = "error code outside the list"      // R27
	RuleAnswer       Rule = "answer without its response"      // contract 2.5
	RuleRequest      Rule = "request id lost or invented"      // R27
	RuleRoute        Rule = "wrong reply route"                // R28
	RuleOrder        Rule = "out of hand-over order"           // R23
	RuleInterleaved  Rule = "two turns open at once"           // D-28
	RuleNoResult     Rule = "tool call without result"         // promise 2
	RuleTwoResults   Rule = "tool call with two results"       // promise 2
	RuleAlienResult  Rule = "tool result without call"         // promise 2
	RuleResultValue  Rule = "result that nobody gave"          // first result wins, else synthesised
	RuleItems        Rule = "tool message not as asked"        // R26
	RuleCalls        Rule = "tool calls not as asked"          // contract 2.2
	RuleSet          Rule = "complete set and message differ"  // contract 1.8, 2.4
	RuleHistory      Rule = "wrong history"                    // R22
	RuleHistoryBytes Rule = "history not byte for byte"        // R22
	RuleCost         Rule = "wrong cost"                       // contract 2.1
	RuleStep         Rule = "step without its message"         // enriched record that continues nothing
	RuleNoID         Rule = "record without id"                // R20
	RuleRepeat       Rule = "repeat with other bytes"          // R20
	RuleAgain        Rule = "repeat under exactly once"        // exactly once
	RuleWire         Rule = "wire format"                      // contract 1, 8
	RuleLost         Rule = "record lost"                      // neither used nor dead-lettered
	RuleFate         Rule = "record had an effect"             // dead-lettered is not used
	RuleLetter       Rule = "dead letter without its original" // R12
)

// Violation is a promise that was not kept, and where. It names no payload.
type Violation struct {
	Rule   Rule
	At     Coord
	Detail string
}

// String is the violation on one line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.At, v.Rule, v.Detail) }

// Counts are how much of everything the oracle saw. Distinct records count once, whatever their repeats.
type Counts struct {
	// Records is everything read, markers of transactions excepted.
	Records int
	// Messages were accepted; Turns had a step; Answers and Errors ended them.
	Messages, Turns, Answers, Errors int
	// Codes are the error outputs by code.
	Codes map[string]int
	// Calls are valid tool calls; ToolMessages their complete sets; Synthesised the entries no tool gave, by reason.
	Calls, ToolMessages int
	Synthesised         map[string]int
	// Repeats are further records with an id seen before, and equal but for times.
	Repeats int
	// DeadLetters are distinct sources; LetterRepeats are further letters of one.
	DeadLetters, LetterRepeats int
	// UsedAndDead are inputs that were used and dead-lettered too: a redelivery after a crash does that, else nothing.
	UsedAndDead int
	// Routed are the outputs that carried a route.
	Routed int
}

// Report is an oracle's judgement over what it has read.
type Report struct {
	Counts     Counts
	Violations []Violation
	// Hidden is how many violations beyond the limit were left out.
	Hidden int
}

// Kept tells whether every promise was kept.
func (r Report) Kept() bool { return len(r.Violations) == 0 }

// Has tells whether a rule was violated.
func (r Report) Has(rule Rule) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == rule })
}

// String is the counts, and a line for each violation.
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

// maxViolations bounds a report: a broken pipeline breaks a promise for every record.
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
