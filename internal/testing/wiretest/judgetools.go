package wiretest

import (
	"slices"
)

// toolResults checks that every call has exactly one entry in exactly one tool message, either the result of a tool or
// a synthesised error, and that every tool message has its complete set.
func (j *judgement) toolResults(s *session) {
	for _, t := range s.turns {
		j.countCalls(s, t)
		for _, m := range t.tools {
			j.report.Counts.ToolMessages++
			for i, e := range m.entries {
				j.entryValue(s, m, i, e)
			}
			if t.message != nil && !t.failed() && len(t.endings) > 0 &&
				!slices.ContainsFunc(t.steps, func(v *step) bool { return v.said == m.said }) {
				j.report.add(RuleStep, m.at, "no step carries this tool message")
			}
		}
		j.setsMatch(t)
	}
}

func (j *judgement) countCalls(s *session, t *turn) {
	calls, messages := map[string]int{}, map[string]int{}
	for _, v := range t.calls {
		if !v.rejected && v.asked.valid() {
			calls[*v.asked.id]++
			j.report.Counts.Calls++
		}
	}
	for _, m := range t.tools {
		seen := map[string]bool{}
		for _, e := range m.entries {
			if !e.asked.valid() || seen[*e.asked.id] {
				continue
			}
			seen[*e.asked.id] = true
			messages[*e.asked.id]++
			if calls[*e.asked.id] == 0 {
				j.report.add(RuleAlienResult, m.at, "an entry names no call of its turn")
			}
		}
	}
	for _, v := range t.calls {
		if v.rejected || !v.asked.valid() {
			continue
		}
		switch id := *v.asked.id; {
		case messages[id] < calls[id] && !t.failed() && !s.purged:
			j.report.add(RuleNoResult, v.at, "no tool message has its result")
		case messages[id] > calls[id]:
			j.report.add(RuleTwoResults, v.at, "%d tool messages have its result", messages[id])
		}
	}
}

// entryValue finds the first record of tool-use-result that gave the result of an entry. A synthesised error has none.
func (j *judgement) entryValue(s *session, m *toolMessage, i int, e entry) {
	if e.reason != "" {
		j.report.Counts.Synthesised[e.reason]++
	}
	if !e.asked.valid() {
		if e.reason != "invalid_tool_call" {
			j.report.add(RuleResultValue, m.at, "entry %d is invalid and not answered as such", i)
		}
		return
	}
	var spare *returned
	for _, r := range s.returned {
		if r.id == nil || *r.id != *e.asked.id || r.value != e.value || r.status != e.status || j.used[r.at] {
			continue
		}
		if !j.dead[r.at] {
			j.used[r.at] = true
			return
		}
		if spare == nil {
			spare = r
		}
	}
	repeated := slices.ContainsFunc(m.entries[:i], func(x entry) bool { return same(x.asked.id, e.asked.id) })
	switch {
	case e.reason != "" || repeated:
	case spare != nil:
		j.used[spare.at] = true
		j.report.Counts.UsedAndDead++
	default:
		j.report.add(RuleResultValue, m.at, "entry %d is what no tool returned, and no synthesised error", i)
	}
}

// setsMatch checks that each tool message has one set with the same results, and each set a message.
func (j *judgement) setsMatch(t *turn) {
	open := slices.Clone(t.sets)
	for _, m := range t.tools {
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

// sameResults: a set has them in the order of arrival, a message in that of the items.
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

// conserve checks that every input that was neither used nor dead-lettered is explained by a rule. One of these rules:
// a record with the turntable.id of a used record is a repeat of it.
func (j *judgement) conserve(s *session) {
	if s.purged {
		return
	}
	accepted := map[string]bool{}
	for _, t := range s.thoughts {
		accepted[t.cause] = accepted[t.cause] || t.cause != "" && j.used[t.at]
	}
	for _, t := range s.thoughts {
		// A response that neither ends the turn nor asks for tools leaves the turn open and needs no other trace.
		if t.tombstone || j.used[t.at] || j.dead[t.at] || accepted[t.cause] ||
			t.known && !t.asking() && !t.end {
			continue
		}
		j.report.add(RuleLost, t.at, "response was neither accepted nor dead-lettered")
	}
	given := j.givenUp(s)
	applied := map[string]bool{}
	for _, r := range s.returned {
		applied[r.cause] = applied[r.cause] || r.cause != "" && j.used[r.at]
	}
	for _, r := range s.returned {
		if j.used[r.at] || j.dead[r.at] || applied[r.cause] || r.id != nil && given[*r.id] {
			continue
		}
		j.report.add(RuleLost, r.at, "result was neither used nor dead-lettered")
	}
}

// givenUp are the calls whose results may be ignored: their turn ended before all results arrived, or the result was
// too large.
func (j *judgement) givenUp(s *session) map[string]bool {
	out := map[string]bool{}
	for _, t := range s.turns {
		entries := map[string]bool{}
		for _, m := range t.tools {
			for _, e := range m.entries {
				if e.asked.id == nil {
					continue
				}
				entries[*e.asked.id] = true
				if e.reason == "too_large" {
					out[*e.asked.id] = true
				}
			}
		}
		for _, v := range t.calls {
			if v.asked.id != nil && t.failed() && !entries[*v.asked.id] {
				out[*v.asked.id] = true
			}
		}
	}
	return out
}

// redelivered reports whether the pipeline has read records again. A response that names no step is dead-lettered while
// no step is open, and is accepted if it is redelivered while one is open.
func (j *judgement) redelivered() bool {
	return !j.once && j.report.Counts.Repeats+j.report.Counts.LetterRepeats > 0
}

// fates checks the records with a known fate, and messages that no rule lets vanish.
func (j *judgement) fates() {
	for at, sent := range j.known {
		if j.sources[at] == nil {
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
		if j.known[m.at].Fate == FateOwn && !m.accepted && !j.dead[m.at] && !j.used[m.at] {
			j.report.add(RuleLost, m.at, "message that is none is not dead-lettered")
		}
	}
}
