package console

import (
	"cmp"
	"slices"
	"sort"
)

// axis is the tree of a session's turns, each with its place on a time axis.
type axis struct {
	Bars    []bar
	Begin   int64
	End     int64
	Since   int64 // records of before were not read
	Dropped int   // spans that are not shown
}

// bar is a span as a line of the tree. At and Width are in thousandths of the axis.
type bar struct {
	Level              int
	Kind, Name, Status string
	Begin, End         int64
	At, Width          int64
	Open               bool
	Gate               string
}

// shownSpans is how many spans are shown: the last ones.
const shownSpans = 300

// axisOf orders spans as a tree: turns, their steps, the calls of a step, the gate of a call.
func axisOf(spans []span, dropped int, since, now int64) axis {
	a := axis{Since: since, Dropped: dropped}
	if n := len(spans) - shownSpans; n > 0 {
		sort.SliceStable(spans, func(i, j int) bool { return begin(spans[i]) < begin(spans[j]) })
		spans, a.Dropped = spans[n:], dropped+n
	}
	steps := map[string]string{} // of calls, for their gates
	for _, s := range spans {
		if s.kind == spanCall {
			steps[s.id] = s.step
		}
	}
	type key struct {
		turn, step string
		kind       spanKind
	}
	turns := map[string]int64{} // when each began
	for _, s := range spans {
		if t := begin(s); t > 0 && (turns[s.turn] == 0 || t < turns[s.turn]) {
			turns[s.turn] = t
		}
	}
	place := func(s span) key {
		if s.kind == spanGate && s.parent != "" {
			return key{s.turn, cmp.Or(steps[s.parent], stepOf(s.parent)), spanGate}
		}
		return key{s.turn, s.step, s.kind}
	}
	slices.SortStableFunc(spans, func(x, y span) int {
		p, q := place(x), place(y)
		return cmp.Or(cmp.Compare(turns[p.turn], turns[q.turn]), cmp.Compare(p.turn, q.turn), cmp.Compare(last(x), last(y)),
			cmp.Compare(len(p.step), len(q.step)), cmp.Compare(p.step, q.step), cmp.Compare(p.kind, q.kind), cmp.Compare(begin(x), begin(y)))
	})
	for _, s := range spans {
		b := bar{Kind: spanNames[s.kind], Name: s.name, Status: s.status, Begin: s.begin, End: s.end, Open: s.end == 0, Level: level(s)}
		if s.kind == spanGate {
			b.Gate = s.id
		}
		if t := begin(s); a.Begin == 0 || t < a.Begin {
			a.Begin = t
		}
		if b.Open {
			b.Status, s.end = "open", now
		}
		a.End = max(a.End, s.end, s.begin)
		a.Bars = append(a.Bars, b)
	}
	for i := range a.Bars {
		b := &a.Bars[i]
		end := b.End
		if b.Open {
			end = a.End
		}
		length := max(a.End-a.Begin, 1)
		b.At = min((cmp.Or(b.Begin, end)-a.Begin)*1000/length, 995)
		b.Width = max((end-cmp.Or(b.Begin, end))*1000/length, 5)
	}
	return a
}

// last puts the deliveries and delegations of a turn behind its steps.
func last(s span) int {
	switch s.kind {
	case spanTurn:
		return 0
	case spanDelegation, spanDelivery:
		return 2
	}
	return 1
}

func begin(s span) int64 { return cmp.Or(s.begin, s.end) }

func level(s span) int {
	switch s.kind {
	case spanTurn:
		return 0
	case spanStep, spanDelivery, spanDelegation:
		return 1
	case spanGate:
		return 3
	}
	return 2
}

// stepOf returns the step in the ID of a call.
func stepOf(call string) string {
	id, _ := idOfText(call)
	return id.step
}
