package cut

import "time"

// AnswersFrom tells whether a callback may run for the second time, and if so, from which offset on an input's partition has the
// answers to what it sent the first time. p and offset are the record's; a deadline is a record of the virtual topic of timers.
//
// An at-least-once member commits offsets after outputs, so its successor handles the last records again. They are among
// those that are in the partition when the successor reads its first record. The offsets of all inputs are committed together,
// so the successor also reads again what came back because of them.
func (g *Group) AnswersFrom(p Partition, offset int64, answers string) (from int64, repeated bool) {
	h := g.cur.Load()
	if h == nil || !h.group.opts.Closer.Background() || !h.repeats(p, offset) {
		return 0, false
	}
	select {
	case <-h.allBegun: // the claims of a generation begin at the same moment, but not before each other's first records
	case <-h.series.Context().Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.claims[Partition{answers, p.ID}]; c != nil {
		from = c.begin
	}
	return from, true
}

// repeats reports whether a record was in its partition when the generation read its first record there.
func (g *generation) repeats(p Partition, offset int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.claims[p]; c != nil {
		return offset < c.found.Load()
	}
	r := g.readings[p.ID]
	return r != nil && p.Topic == g.group.opts.Timers.Topic && !time.UnixMilli(offset).After(r.begun())
}

// began adds a claim to those of the generation.
func (g *generation) began(p Partition, c *claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.claims[p] = c
	all := 0
	for _, partitions := range g.sess.ConsumerGroupSession.Claims() {
		all += len(partitions)
	}
	if len(g.claims) == all {
		g.closeBegun()
	}
}
