package wiretest

import (
	"slices"
)

// checkToolResults checks that every call has exactly one entry in exactly one tool message, either the result of a tool or
// a synthesised error, and that every tool message has its complete set.
func (j *judgement) checkToolResults(s *session) {
	for _, t := range s.turns {
		j.checkCalls(s, t)
		for _, m := range t.toolMessages {
			j.report.Counts.ToolMessages++
			for i, e := range m.entries {
				j.checkEntryValue(s, m, i, e)
			}
			if t.message != nil && !t.failed() && len(t.outputs) > 0 &&
				!slices.ContainsFunc(t.steps, func(v *step) bool { return v.content == m.content }) {
				j.report.add(RuleStep, m.at, "no step contains this tool message")
			}
		}
		j.checkSets(t)
	}
}

func (j *judgement) checkCalls(s *session, t *turn) {
	calls, messages := map[string]int{}, map[string]int{}
	for _, v := range t.calls {
		if !v.rejected && v.item.valid() {
			calls[*v.item.id]++
			j.report.Counts.Calls++
		}
	}
	for _, m := range t.toolMessages {
		seen := map[string]bool{}
		for _, e := range m.entries {
			if !e.item.valid() || seen[*e.item.id] {
				continue
			}
			seen[*e.item.id] = true
			messages[*e.item.id]++
			if calls[*e.item.id] == 0 {
				j.report.add(RuleAlienResult, m.at, "an entry does not belong to a call of its turn")
			}
		}
	}
	for _, v := range t.calls {
		if v.rejected || !v.item.valid() {
			continue
		}
		switch id := *v.item.id; {
		case messages[id] < calls[id] && !t.failed() && !s.purged:
			j.report.add(RuleNoResult, v.at, "no tool message has its result")
		case messages[id] > calls[id]:
			j.report.add(RuleTwoResults, v.at, "%d tool messages have its result", messages[id])
		}
	}
}

// checkEntryValue finds the first record of tool-use-result with the result of an entry. A synthesised error has no such
// record.
func (j *judgement) checkEntryValue(s *session, m *toolMessage, i int, e entry) {
	if e.reason != "" {
		j.report.Counts.Synthesised[e.reason]++
	}
	if !e.item.valid() {
		if e.reason != "invalid_tool_call" {
			j.report.add(RuleResultValue, m.at, "entry %d belongs to an invalid call and does not have the reason invalid_tool_call", i)
		}
		return
	}
	var deadOne *toolResult
	for _, r := range s.results {
		if r.id == nil || *r.id != *e.item.id || r.value != e.value || r.status != e.status || j.used[r.at] {
			continue
		}
		if !j.dead[r.at] {
			j.used[r.at] = true
			return
		}
		if deadOne == nil {
			deadOne = r
		}
	}
	repeated := slices.ContainsFunc(m.entries[:i], func(x entry) bool { return same(x.item.id, e.item.id) })
	switch {
	case e.reason != "" || repeated:
	case deadOne != nil:
		j.used[deadOne.at] = true
		j.report.Counts.UsedAndDead++
	default:
		j.report.add(RuleResultValue, m.at, "entry %d is neither the result of a tool nor a synthesised error", i)
	}
}

// checkSets checks that each tool message has one complete set with the same results, and each set a tool message.
func (j *judgement) checkSets(t *turn) {
	open := slices.Clone(t.sets)
	for _, m := range t.toolMessages {
		i := slices.IndexFunc(open, func(v *set) bool { return sameResults(v.results, m.entries) })
		if i < 0 {
			j.report.add(RuleSet, m.at, "no complete set has the same results")
			continue
		}
		if v := open[i]; v.count != len(v.expected) || len(v.expected) < len(v.results) {
			j.report.add(RuleSet, v.at, "expected_count, expected and results do not agree")
		}
		open = slices.Delete(open, i, i+1)
	}
	for _, v := range open {
		j.report.add(RuleSet, v.at, "no tool message has the same results")
	}
}

// sameResults compares the results regardless of their order: a set has them in the order of arrival, a tool message in
// the order of the items.
func sameResults(results []digest, entries []entry) bool {
	count := map[digest]int{}
	for _, d := range results {
		count[d]++
	}
	for _, e := range entries {
		count[e.digest()]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return len(results) == len(entries)
}

// checkNothingLost checks that a rule allows every input that was neither used nor dead-lettered. For example, a record with
// the turntable.id of a used record is a repeat of it.
func (j *judgement) checkNothingLost(s *session) {
	if s.purged {
		return
	}
	accepted := map[string]bool{}
	for _, t := range s.responses {
		accepted[t.cause] = accepted[t.cause] || t.cause != "" && j.used[t.at]
	}
	for _, t := range s.responses {
		// A response that neither ends the turn nor asks for tools leaves the turn open and has no visible effect.
		if t.tombstone || j.used[t.at] || j.dead[t.at] || accepted[t.cause] ||
			t.hasFields && !t.asksForTools() && !t.end {
			continue
		}
		j.report.add(RuleLost, t.at, "response was neither accepted nor dead-lettered")
	}
	ignorable := j.ignorableCalls(s)
	applied := map[string]bool{}
	for _, r := range s.results {
		applied[r.cause] = applied[r.cause] || r.cause != "" && j.used[r.at]
	}
	for _, r := range s.results {
		if j.used[r.at] || j.dead[r.at] || applied[r.cause] || r.id != nil && ignorable[*r.id] {
			continue
		}
		j.report.add(RuleLost, r.at, "result was neither used nor dead-lettered")
	}
}

// ignorableCalls returns the calls whose results may be ignored, because the turn ended before all results arrived or the
// result was too large.
func (j *judgement) ignorableCalls(s *session) map[string]bool {
	out := map[string]bool{}
	for _, t := range s.turns {
		entries := map[string]bool{}
		for _, m := range t.toolMessages {
			for _, e := range m.entries {
				if e.item.id == nil {
					continue
				}
				entries[*e.item.id] = true
				if e.reason == "too_large" {
					out[*e.item.id] = true
				}
			}
		}
		for _, v := range t.calls {
			if v.item.id != nil && t.failed() && !entries[*v.item.id] {
				out[*v.item.id] = true
			}
		}
	}
	return out
}

// redelivered reports whether records were redelivered to the pipeline. A response without an echo is dead-lettered while
// no step is open, and accepted if it is redelivered while one is open.
func (j *judgement) redelivered() bool {
	return !j.exactlyOnce && j.report.Counts.Repeats+j.report.Counts.LetterRepeats > 0
}

// checkFates checks the records with an expected fate, and that invalid messages are dead-lettered.
func (j *judgement) checkFates() {
	for at, sent := range j.expected {
		if j.inputs[at] == nil {
			continue // not read yet
		}
		switch {
		case sent.Fate == FateDeadLetter && !j.dead[at]:
			j.report.add(RuleLost, at, "%s is not dead-lettered", sent.Case)
		case sent.Fate == FateDeadLetter && j.used[at] && !j.redelivered():
			j.report.add(RuleFate, at, "%s was used", sent.Case)
		case sent.Fate == FateTurnOrDeadLetter && !j.dead[at] && !j.used[at]:
			j.report.add(RuleLost, at, "%s is neither answered nor dead-lettered", sent.Case)
		case sent.Fate == FateTurn && !j.used[at] && j.dead[at]:
			j.report.add(RuleNoOutput, at, "%s is dead-lettered", sent.Case)
		}
	}
	for _, m := range j.messages {
		if j.expected[m.at].Fate == FateOwn && !m.accepted && !j.dead[m.at] && !j.used[m.at] {
			j.report.add(RuleLost, m.at, "invalid message is not dead-lettered")
		}
	}
}
