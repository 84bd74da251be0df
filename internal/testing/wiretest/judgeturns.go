package wiretest

import "slices"

// errorCodes is the closed list of error codes that an output may have.
var errorCodes = []string{
	"think_timeout", "think_failed", "empty_response", "queue_full", "busy", "too_large", "invalid_message", "cancelled", "parent_cannot_ask", "internal",
	"too_many_steps", "over_budget",
}

// earlyCodes are the codes of outputs that may be written before the outputs of earlier messages.
var earlyCodes = []string{"queue_full", "busy", "invalid_message", "too_large", "cancelled"}

// assignMessages finds the message of each turn: by the content of its first step, then by request ID, then by elimination.
func (j *judgement) assignMessages(s *session) {
	open := j.candidates(s)
	take := func(t *turn, fits func(*message) bool) bool {
		i := slices.IndexFunc(open, fits)
		if i < 0 {
			return false
		}
		t.message = open[i]
		open = slices.Delete(open, i, i+1)
		return true
	}
	var unnamed []*turn
	for _, t := range s.turns {
		if len(t.steps) == 0 {
			continue
		}
		first := t.steps[0]
		if !take(t, func(m *message) bool { return m.content == first.content }) {
			j.report.add(RuleStep, first.at, "opens a turn without a message")
		}
	}
	for _, t := range s.turns {
		if len(t.steps) > 0 || len(t.outputs) == 0 {
			continue
		}
		if id := t.outputs[0].request; id == nil || !take(t, func(m *message) bool { return m.request == *id }) {
			unnamed = append(unnamed, t)
		}
	}
	for _, t := range unnamed {
		if !take(t, func(m *message) bool { return m.request == "" && j.admits(m, t.outputs[0]) }) &&
			!take(t, func(m *message) bool { return m.request == "" }) {
			j.report.add(RuleAlienOutput, t.outputs[0].at, "belongs to no message")
		}
	}
	for _, m := range open {
		switch {
		case !j.mustEnd(m):
		case !j.dead[m.at]:
			j.report.add(RuleNoOutput, m.at, "%s has no turn", j.kindOf(m.at))
		case j.expected[m.at].Fate == FateOwn && !j.repeats(s, m):
			j.report.add(RuleNoOutput, m.at, "%s is valid but dead-lettered", j.kindOf(m.at))
		}
	}
}

// repeats reports whether another record, which is not dead-lettered, is the same message.
func (j *judgement) repeats(s *session, m *message) bool {
	return slices.ContainsFunc(s.messages, func(x *message) bool {
		return x != m && !j.dead[x.at] && x.identity() == m.identity()
	})
}

// candidates returns the messages that a turn may belong to, one for each identity, followed by the dead-lettered ones.
func (j *judgement) candidates(s *session) []*message {
	seen := map[string]bool{}
	var notDead, dead []*message
	for _, m := range s.messages {
		if j.expected[m.at].Fate == FateDeadLetter {
			continue
		}
		if j.dead[m.at] {
			dead = append(dead, m)
			continue
		}
		if seen[m.identity()] {
			j.used[m.at] = true
			continue
		}
		seen[m.identity()] = true
		notDead = append(notDead, m)
	}
	for _, m := range notDead {
		if j.mustEnd(m) {
			j.report.Counts.Messages++
		}
	}
	return append(notDead, dead...)
}

// mustEnd reports whether a message that is not dead-lettered must have an output.
func (j *judgement) mustEnd(m *message) bool {
	switch j.expected[m.at].Fate {
	case FateTurn:
		return true
	case FateOwn:
		return m.accepted
	default:
		return false
	}
}

func (j *judgement) admits(m *message, e *outputRecord) bool {
	list := j.expected[m.at].Codes
	return list == nil || slices.Contains(list, e.code)
}

func (j *judgement) kindOf(at Coord) string {
	if c := j.expected[at].Case; c != "" {
		return c
	}
	return "message"
}

// checkOutputs checks that each turn has exactly one output, of a kind that its message allows.
func (j *judgement) checkOutputs(s *session) {
	for _, t := range s.turns {
		if len(t.steps) > 0 {
			j.report.Counts.Turns++
		}
		if t.message == nil {
			continue
		}
		j.used[t.message.at] = true
		if len(t.outputs) == 0 {
			j.report.add(RuleNoOutput, t.message.at, "%s hangs after %d steps", j.kindOf(t.message.at), len(t.steps))
			continue
		}
		for _, more := range t.outputs[1:] {
			j.report.add(RuleTwoOutputs, more.at, "the turn of %s already has the output %s", t.message.at, t.outputs[0].at)
		}
		e := t.outputs[0]
		if e.isError {
			j.report.Counts.Errors++
			j.report.Counts.Codes[e.code]++
			if !slices.Contains(errorCodes, e.code) {
				j.report.add(RuleCode, e.at, "code is not in the closed list")
			}
		} else {
			j.report.Counts.Answers++
		}
		if !j.admits(t.message, e) {
			j.report.add(RuleOutcome, e.at, "%s of %s ended with code %q", j.kindOf(t.message.at), t.message.at, e.code)
		}
		j.checkRequestAndRoute(s, t, e)
	}
}

func (j *judgement) checkRequestAndRoute(s *session, t *turn, e *outputRecord) {
	m := t.message
	if (m.request != "") != (e.request != nil) || e.request != nil && *e.request != m.request {
		j.report.add(RuleRequest, e.at, "request id is not that of %s", m.at)
	}
	if e.route != nil {
		j.report.Counts.Routed++
		given := slices.ContainsFunc(j.routes[s.name], func(r route) bool {
			return r.bytes == *e.route && (r.request == "" || r.request == m.request)
		})
		if !given {
			j.report.add(RuleRoute, e.at, "%s has no record with this route", m.at)
		}
	}
	known := j.expected[m.at]
	switch {
	case known.NoRoute && e.route != nil:
		j.report.add(RuleRoute, e.at, "%s has no route", m.at)
	case known.Route != nil && (e.route == nil || *e.route != digestOf(compact(known.Route))):
		j.report.add(RuleRoute, e.at, "does not have the route of %s", m.at)
	}
}

// checkOrder checks that turns do not interleave, and that they open and end in the order of their messages. Messages that
// were re-keyed through the loop topic have no order.
func (j *judgement) checkOrder(s *session) {
	closed, current := map[string]bool{}, ""
	for _, v := range s.steps {
		if v.origin.turn == current {
			continue
		}
		if closed[v.origin.turn] {
			j.report.add(RuleInterleaved, v.at, "another turn was opened between two steps of this one")
		}
		closed[current], current = true, v.origin.turn
	}
	byID := map[string]*turn{}
	last := int64(-1)
	for _, t := range s.turns {
		byID[t.id] = t
		if len(t.steps) > 0 && t.message != nil && t.message.onOwnPartition {
			if t.message.at.Offset < last {
				j.report.add(RuleOrder, t.steps[0].at, "opens before an earlier message")
			}
			last = t.message.at.Offset
		}
	}
	last = -1
	for _, e := range s.outputs {
		t := byID[e.origin.turn]
		if t == nil || t.message == nil || !t.message.onOwnPartition || slices.Contains(earlyCodes, e.code) || e != t.outputs[0] {
			continue
		}
		if t.message.at.Offset < last {
			j.report.add(RuleOrder, e.at, "ends after a later message")
		}
		last = t.message.at.Offset
	}
}
