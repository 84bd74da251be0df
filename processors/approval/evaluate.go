package approval

import (
	"strings"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Call is what a policy is evaluated for.
type Call struct {
	// Tool is the stable name of the tool or action.
	Tool string
	// Args are the exact arguments as JSON, nil for none.
	Args topics.Raw
}

// Decision is what a policy says about one call.
type Decision struct {
	Effect Effect
	// Rule is the number of the rule that decided, from 1; 0 if none matched.
	Rule int
	// Failed reports that a condition of the rule could not be evaluated. Effect is then Deny.
	Failed bool
	// Dangerous, Edit, Schema and Message are those of the rule.
	Dangerous, Edit bool
	Schema          topics.Raw
	Message         string
	// TTL is how long a gate for the call waits; never 0.
	TTL time.Duration
	// Shadow is that of the policy.
	Shadow bool
}

// Evaluate returns what the policy says about a call. It is a pure function. It expects a valid policy; an effect that is
// not known counts as Deny.
func (p Policy) Evaluate(c Call) Decision {
	d := Decision{Effect: Stricter(p.defaultFor(c.Tool), Allow), TTL: p.TTL, Shadow: p.Shadow}
	var best specificity
	for i, r := range p.Rules {
		rank, ok := r.covers(c.Tool)
		if !ok {
			continue
		}
		holds, failed := r.holds(c.Args)
		if !holds && !failed {
			continue
		}
		effect := Stricter(r.Effect, Allow)
		if failed {
			effect = Deny
		}
		if order := rank.compare(best); d.Rule > 0 && (order < 0 || order == 0 && effect.rank() <= d.Effect.rank()) {
			continue
		}
		best = rank
		d = Decision{
			Effect: effect, Rule: i + 1, Failed: failed, Dangerous: r.Dangerous, Edit: r.Edit, Schema: r.Schema,
			Message: r.Message, TTL: p.TTL, Shadow: p.Shadow,
		}
		if r.TTL != 0 {
			d.TTL = r.TTL
		}
	}
	if d.TTL == 0 {
		d.TTL = DefaultTTL
	}
	return d
}

// Covers reports whether a rule of the policy or ReadOnly names the tool, exactly or by pattern.
func (p Policy) Covers(tool string) bool {
	for _, r := range p.Rules {
		if _, ok := r.covers(tool); ok {
			return true
		}
	}
	return p.reads(tool)
}

func (p Policy) defaultFor(tool string) Effect {
	switch {
	case p.reads(tool):
		return Allow
	case p.Default == "":
		return Ask
	default:
		return p.Default
	}
}

func (p Policy) reads(tool string) bool {
	for _, pattern := range p.ReadOnly {
		if like(pattern, tool) {
			return true
		}
	}
	return false
}

// specificity orders rules: exact names first, then patterns by literal characters, then by conditions.
type specificity struct {
	exact      bool
	literals   int
	conditions int
}

// compare returns a positive number if s is more specific than other.
func (s specificity) compare(other specificity) int {
	switch {
	case s.exact != other.exact && s.exact:
		return 1
	case s.exact != other.exact:
		return -1
	case s.literals != other.literals:
		return s.literals - other.literals
	default:
		return s.conditions - other.conditions
	}
}

// covers reports whether a rule names the tool, and how specifically.
func (r Rule) covers(tool string) (specificity, bool) {
	wild := strings.Count(r.Tool, "*")
	s := specificity{exact: wild == 0, literals: len(r.Tool) - wild, conditions: len(r.Args)}
	return s, like(r.Tool, tool)
}

// holds reports whether all conditions of a rule hold, or whether one could not be evaluated. A condition that does not hold
// takes precedence, so that the result does not depend on the order of the conditions.
func (r Rule) holds(args topics.Raw) (holds, failed bool) {
	for pointer, c := range r.Args {
		switch c.check(args, pointer) {
		case doesNotHold:
			return false, false
		case cannotTell:
			failed = true
		}
	}
	return !failed, failed
}

// like reports whether a text matches a pattern in which * stands for any characters. It takes linear time in the text for
// each star.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return len(text) >= len(last) && strings.HasSuffix(text, last)
}
