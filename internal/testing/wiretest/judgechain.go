package wiretest

import "slices"

// chain follows each turn from step to step: every step must continue what one response of the step before left, and
// an answer must be what one response said.
func (j *judgement) chain(s *session) {
	inputs := map[digest]bool{}
	for _, v := range s.steps {
		inputs[v.input] = true
	}
	c := &chaining{judgement: j, session: s, byEcho: map[digest][]*thought{}}
	for _, t := range s.thoughts {
		switch {
		case t.tombstone || !t.known:
		case t.echo != nil && inputs[*t.echo]:
			c.byEcho[*t.echo] = append(c.byEcho[*t.echo], t)
		default:
			c.unechoed = append(c.unechoed, t)
		}
	}
	base, cost := []sequence{sequenceOf()}, []*float64{nil}
	judged := true // whether the cost is known: that of a turn that ended in an error does not show in the topics
	for _, t := range s.turns {
		if len(t.steps) == 0 {
			continue
		}
		first := t.steps[0]
		j.checkHistory(s, first, base)
		if t.message != nil && j.known[t.message.at].Forgotten && first.history.n > 0 {
			j.report.add(RuleHistory, first.at, "history had been cleared")
		}
		if judged && !s.cleared {
			j.checkCost(first, cost)
		}
		if t.message != nil && !blank(t.message.user) && !same(t.message.user, first.user) {
			j.report.add(RuleStep, first.at, "user_id is not that of %s", t.message.at)
		}
		for k := range t.steps[1:] {
			c.continued(t, t.steps[k], t.steps[k+1])
		}
		final, heard := c.ended(t, t.steps[len(t.steps)-1])
		if len(final) > 0 {
			base, cost, judged = nil, nil, true
			for _, f := range final {
				base, cost = append(base, f.left), append(cost, f.total)
			}
		} else if len(t.steps) > 1 || heard {
			judged = false
		}
	}
}

func (j *judgement) checkHistory(s *session, v *step, base []sequence) {
	if s.cleared && v.history.n == 0 {
		return
	}
	said := slices.ContainsFunc(base, func(b sequence) bool { return b.said == v.history.said })
	switch {
	case len(base) == 0: // the answer before is not to be found; that was said already
	case !said:
		j.report.add(RuleHistory, v.at, "%d messages are not what the last answered turn left", v.history.n)
	case !slices.ContainsFunc(base, func(b sequence) bool { return b.raw == v.history.raw }):
		j.report.add(RuleHistoryBytes, v.at, "history was encoded again")
	}
}

func (j *judgement) checkCost(v *step, allowed []*float64) {
	ok := slices.ContainsFunc(allowed, func(c *float64) bool { return equalCost(c, v.cost) })
	if len(allowed) > 0 && !ok {
		j.report.add(RuleCost, v.at, "cost is not the session's")
	}
}

func equalCost(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	d := *a - *b
	return d < 1e-9 && d > -1e-9
}

type chaining struct {
	*judgement
	session  *session
	byEcho   map[digest][]*thought
	unechoed []*thought
}

// answers are the responses that may belong to a step.
func (c *chaining) answers(v *step) []*thought {
	return append(slices.Clone(c.byEcho[v.input]), c.unechoed...)
}

func keep(list []*thought, fits func(*thought) bool) []*thought {
	var out []*thought
	for _, t := range list {
		if fits(t) {
			out = append(out, t)
		}
	}
	return out
}

// continued checks one step after another within a turn: tool message, history, cost, items and calls.
func (c *chaining) continued(t *turn, v, next *step) {
	i := slices.IndexFunc(t.tools, func(m *toolMessage) bool { return m.said == next.said })
	if i < 0 {
		c.report.add(RuleStep, next.at, "carries no tool message of its turn")
		return
	}
	tools := t.tools[i]
	list := keep(c.answers(v), (*thought).asking)
	list = keep(list, func(x *thought) bool { return x.left.said == next.history.said })
	if len(list) == 0 {
		c.report.add(RuleHistory, next.at, "%d messages are not what a response to %s left", next.history.n, v.at)
		return
	}
	asked := keep(list, func(x *thought) bool { return matches(x, tools.entries) })
	if len(asked) == 0 {
		c.report.add(RuleItems, tools.at, "entries are not the items of the response, in order")
		c.use(list)
		return
	}
	if len(keep(asked, func(x *thought) bool { return x.left.raw == next.history.raw })) == 0 {
		c.report.add(RuleHistoryBytes, next.at, "history was encoded again")
	}
	if len(keep(asked, func(x *thought) bool { return equalCost(x.total, next.cost) })) == 0 {
		c.report.add(RuleCost, next.at, "cost is not that of the response")
	}
	c.callsAsAsked(t, c.use(asked), tools)
}

// use picks the response that was accepted: one that is not dead-lettered, if there is one.
func (c *chaining) use(list []*thought) *thought {
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
func matches(t *thought, entries []entry) bool {
	if len(entries) == len(t.items)+t.nulls && t.nulls > 0 {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			return e.asked.id == nil && e.asked.name == nil
		})
	}
	return slices.EqualFunc(t.items, entries, func(a asked, e entry) bool {
		return same(a.id, e.asked.id) && same(a.name, e.asked.name)
	})
}

// callsAsAsked checks the records of tool-use and tool-use-dlq of one response: an item that is a call has one on
// tool-use, any other one on tool-use-dlq.
func (c *chaining) callsAsAsked(t *turn, x *thought, tools *toolMessage) {
	seen := map[string]bool{}
	for _, a := range x.items {
		rejected := !a.valid() || seen[*a.id]
		if a.valid() {
			seen[*a.id] = true
		}
		found := slices.IndexFunc(t.calls, func(v *call) bool {
			return v.rejected == rejected && same(v.asked.id, a.id) && same(v.asked.name, a.name)
		})
		if found < 0 {
			c.report.add(RuleCalls, tools.at, "an item of %s has no record (rejected=%t)", x.at, rejected)
			continue
		}
		if n := t.calls[found].total; n != len(x.items) && n != len(x.items)+x.nulls {
			c.report.add(RuleCalls, t.calls[found].at, "total_tools is not the number of items")
		}
	}
}

// ended checks the last step of a turn. It returns the responses that may have been the answer; without one, whether
// the step had another response, so that the cost does not show in the topics.
func (c *chaining) ended(t *turn, v *step) (final []*thought, heard bool) {
	if len(t.endings) == 0 {
		return nil, true
	}
	e := t.endings[0]
	if e.isError {
		gone := keep(c.answers(v), func(x *thought) bool { return x.asking() && !c.dead[x.at] && c.called(t, x) })
		if len(gone) == 0 && e.code == "too_large" {
			// What the response said, or asked for, did not fit.
			gone = keep(c.answers(v), func(x *thought) bool { return !c.dead[x.at] && !c.used[x.at] })
		}
		if len(gone) > 0 {
			c.use(gone)
		}
		// A response that only kept the turn open has cost something too.
		alive := keep(c.answers(v), func(x *thought) bool { return !c.dead[x.at] })
		return nil, len(alive) > 0
	}
	final = keep(c.answers(v), func(x *thought) bool {
		return x.final() && x.answer == e.answer && x.input == e.input && x.output == e.output && x.agent == e.agent &&
			equalCost(x.total, e.cost) && same(x.user, e.user)
	})
	if len(final) == 0 {
		c.report.add(RuleAnswer, e.at, "no response to %s says this", v.at)
		return nil, true
	}
	c.use(final)
	return final, false
}

// called reports whether the turn has calls of the response.
func (c *chaining) called(t *turn, x *thought) bool {
	return slices.ContainsFunc(t.calls, func(v *call) bool {
		return slices.ContainsFunc(x.items, func(a asked) bool {
			return same(a.id, v.asked.id) && same(a.name, v.asked.name)
		})
	})
}
