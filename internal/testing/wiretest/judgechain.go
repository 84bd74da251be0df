package wiretest

import "slices"

// checkChain follows each turn from step to step. Every step must continue the history of a response to the step before, and
// an answer must be the text of a response.
func (j *judgement) checkChain(s *session) {
	inputs := map[digest]bool{}
	for _, v := range s.steps {
		inputs[v.input] = true
	}
	c := &chainCheck{judgement: j, session: s, byEcho: map[digest][]*thinkResponse{}}
	for _, t := range s.responses {
		switch {
		case t.tombstone || !t.hasFields:
		case t.echo != nil && inputs[*t.echo]:
			c.byEcho[*t.echo] = append(c.byEcho[*t.echo], t)
		default:
			c.withoutEcho = append(c.withoutEcho, t)
		}
	}
	base, cost := []sequence{sequenceOf()}, []*float64{nil}
	costKnown := true // false after a turn that ended in an error, whose cost is not in any topic
	for _, t := range s.turns {
		if len(t.steps) == 0 {
			continue
		}
		first := t.steps[0]
		j.checkHistory(s, first, base)
		if t.message != nil && j.expected[t.message.at].Forgotten && first.history.n > 0 {
			j.report.add(RuleHistory, first.at, "has a history although it was cleared before")
		}
		if costKnown && !s.cleared {
			j.checkCost(first, cost)
		}
		if t.message != nil && !blank(t.message.user) && !same(t.message.user, first.user) {
			j.report.add(RuleStep, first.at, "user_id is not that of %s", t.message.at)
		}
		for k := range t.steps[1:] {
			c.checkStep(t, t.steps[k], t.steps[k+1])
		}
		final, costUnknown := c.checkLastStep(t, t.steps[len(t.steps)-1])
		if len(final) > 0 {
			base, cost, costKnown = nil, nil, true
			for _, f := range final {
				base, cost = append(base, f.history), append(cost, f.total)
			}
		} else if len(t.steps) > 1 || costUnknown {
			costKnown = false
		}
	}
}

func (j *judgement) checkHistory(s *session, v *step, base []sequence) {
	if s.cleared && v.history.n == 0 {
		return
	}
	said := slices.ContainsFunc(base, func(b sequence) bool { return b.continues(v.history, canonical) })
	switch {
	case len(base) == 0: // the response of the turn before was not found, which is already reported
	case !said:
		j.report.add(RuleHistory, v.at, "its %d messages are not the history after the last answered turn", v.history.n)
	case !slices.ContainsFunc(base, func(b sequence) bool { return b.continues(v.history, exact) }):
		j.report.add(RuleHistoryBytes, v.at, "history was re-encoded")
	}
}

func (j *judgement) checkCost(v *step, allowed []*float64) {
	ok := slices.ContainsFunc(allowed, func(c *float64) bool { return equalCost(c, v.cost) })
	if len(allowed) > 0 && !ok {
		j.report.add(RuleCost, v.at, "cost is not that of the session")
	}
}

func equalCost(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	d := *a - *b
	return d < 1e-9 && d > -1e-9
}

type chainCheck struct {
	*judgement
	session     *session
	byEcho      map[digest][]*thinkResponse
	withoutEcho []*thinkResponse
}

// answers returns the responses that may belong to a step.
func (c *chainCheck) answers(v *step) []*thinkResponse {
	return append(slices.Clone(c.byEcho[v.input]), c.withoutEcho...)
}

func filter(list []*thinkResponse, fits func(*thinkResponse) bool) []*thinkResponse {
	var out []*thinkResponse
	for _, t := range list {
		if fits(t) {
			out = append(out, t)
		}
	}
	return out
}

// checkStep checks a step that follows another one in its turn: tool message, history, cost, items and calls.
func (c *chainCheck) checkStep(t *turn, v, next *step) {
	i := slices.IndexFunc(t.toolMessages, func(m *toolMessage) bool { return m.content == next.content })
	if i < 0 {
		c.report.add(RuleStep, next.at, "does not contain a tool message of its turn")
		return
	}
	tools := t.toolMessages[i]
	list := filter(c.answers(v), (*thinkResponse).asksForTools)
	list = filter(list, func(x *thinkResponse) bool { return x.history.continues(next.history, canonical) })
	if len(list) == 0 {
		c.report.add(RuleHistory, next.at, "its %d messages are not the history after a response to %s", next.history.n, v.at)
		return
	}
	matching := filter(list, func(x *thinkResponse) bool { return matches(x, tools.entries) })
	if len(matching) == 0 {
		c.report.add(RuleItems, tools.at, "entries are not the items of the response, in order")
		c.markUsed(list)
		return
	}
	if len(filter(matching, func(x *thinkResponse) bool { return x.history.continues(next.history, exact) })) == 0 {
		c.report.add(RuleHistoryBytes, next.at, "history was re-encoded")
	}
	if len(filter(matching, func(x *thinkResponse) bool { return equalCost(x.total, next.cost) })) == 0 {
		c.report.add(RuleCost, next.at, "cost is not that of the response")
	}
	c.checkItemCalls(t, c.markUsed(matching), tools)
}

// markUsed chooses the response that the pipeline accepted and marks it as used. It prefers one that is not dead-lettered.
func (c *chainCheck) markUsed(list []*thinkResponse) *thinkResponse {
	for _, t := range list {
		if !c.dead[t.at] && !c.used[t.at] {
			c.used[t.at] = true
			return t
		}
	}
	for _, t := range list {
		if !c.used[t.at] {
			c.used[t.at] = true
			c.report.Counts.UsedAndDead++
			return t
		}
	}
	return list[0]
}

// matches reports whether the entries are the items, in order. Null elements of tool_uses may have an entry or none.
func matches(t *thinkResponse, entries []entry) bool {
	if len(entries) == len(t.items)+t.nulls && t.nulls > 0 {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			return e.item.id == nil && e.item.name == nil
		})
	}
	return slices.EqualFunc(t.items, entries, func(a toolItem, e entry) bool {
		return same(a.id, e.item.id) && same(a.name, e.item.name)
	})
}

// checkItemCalls checks the records of tool-use and tool-use-dlq of one response. A valid item has a record on tool-use, any
// other item on tool-use-dlq.
func (c *chainCheck) checkItemCalls(t *turn, x *thinkResponse, tools *toolMessage) {
	seen := map[string]bool{}
	for _, a := range x.items {
		rejected := !a.valid() || seen[*a.id]
		if a.valid() {
			seen[*a.id] = true
		}
		i := slices.IndexFunc(t.calls, func(v *call) bool {
			return v.rejected == rejected && same(v.item.id, a.id) && same(v.item.name, a.name)
		})
		if i < 0 {
			c.report.add(RuleCalls, tools.at, "an item of %s has no record (rejected=%t)", x.at, rejected)
			continue
		}
		if n := t.calls[i].total; n != len(x.items) && n != len(x.items)+x.nulls {
			c.report.add(RuleCalls, t.calls[i].at, "total_tools is not the number of items")
		}
	}
}

// checkLastStep checks the last step of a turn. It returns the responses that may be the answer. If there is none,
// costUnknown reports whether the step had another response, whose cost is not in any topic.
func (c *chainCheck) checkLastStep(t *turn, v *step) (final []*thinkResponse, costUnknown bool) {
	if len(t.outputs) == 0 {
		return nil, true
	}
	e := t.outputs[0]
	if e.isError {
		accepted := filter(c.answers(v), func(x *thinkResponse) bool { return x.asksForTools() && !c.dead[x.at] && c.hasCallsOf(t, x) })
		if len(accepted) == 0 && e.code == "too_large" {
			// The texts or the tool calls of the response were too large.
			accepted = filter(c.answers(v), func(x *thinkResponse) bool { return !c.dead[x.at] && !c.used[x.at] })
		}
		if e.code == "empty_response" {
			accepted = filter(c.answers(v), func(x *thinkResponse) bool { return x.final() && x.answer == noAnswer && !c.dead[x.at] })
			if len(accepted) == 0 {
				c.report.add(RuleAnswer, e.at, "no response to %s is empty", v.at)
			}
		}
		if len(accepted) > 0 {
			c.markUsed(accepted)
		}
		// A response that left the turn open also has a cost.
		notDead := filter(c.answers(v), func(x *thinkResponse) bool { return !c.dead[x.at] })
		return nil, len(notDead) > 0
	}
	final = filter(c.answers(v), func(x *thinkResponse) bool {
		return x.final() && x.answer == e.answer && x.input == e.input && x.output == e.output && x.agent == e.agent &&
			equalCost(x.total, e.cost) && same(x.user, e.user)
	})
	if len(final) == 0 {
		c.report.add(RuleAnswer, e.at, "is not the text of a response to %s", v.at)
		return nil, true
	}
	c.markUsed(final)
	return final, false
}

// noAnswer is the answer of a response without a text.
var noAnswer = digestOf(nil)

// hasCallsOf reports whether the turn has calls of the response.
func (c *chainCheck) hasCallsOf(t *turn, x *thinkResponse) bool {
	return slices.ContainsFunc(t.calls, func(v *call) bool {
		return slices.ContainsFunc(x.items, func(a toolItem) bool {
			return same(a.id, v.item.id) && same(a.name, v.item.name)
		})
	})
}
