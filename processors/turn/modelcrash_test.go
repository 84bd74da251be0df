package turn

import (
	"maps"
	"slices"
	"time"
)

// What a crash of the process does to a session: memory is lost, and at least once also rows whose outputs are not.

type handedOver struct {
	record *modelRecord
	at     time.Time
}

func (h handedOver) isDeadline() bool { return h.record.topic == deadlineTopic }

// checkpoint is what a crash may go back to.
type checkpoint struct {
	row    []byte
	next   map[string]int
	belief belief
	known  int
}

func (m *model) checkpoint() checkpoint {
	return checkpoint{row: m.row, next: maps.Clone(m.next), belief: m.belief.clone(), known: m.known.mark()}
}

// restart loses what a process keeps in memory.
func (m *model) restart() {
	m.logf("%3d restart", m.op)
	m.play.restart()
}

// rollBack goes back to the row that was there n events ago. The offsets may be older than the row.
func (m *model) rollBack(n, offsets int) (lost []handedOver) {
	at := len(m.checkpoints) - 1 - n
	from := max(0, at-offsets)
	s := m.checkpoints[at]
	lost = slices.Clone(m.handed[from:])
	m.logf("%3d crash: the row goes back %d events, the offsets %d", m.op, n, n+at-from)
	m.row, m.parts = s.row, maps.Clone(m.partsOf[string(s.row)])
	if m.parts == nil || s.row == nil {
		m.parts = map[uint32][]byte{}
	}
	m.next = maps.Clone(m.checkpoints[from].next)
	m.belief = s.belief.clone()
	m.known.rollBack(s.known)
	m.handed, m.checkpoints = m.handed[:at], m.checkpoints[:at+1]
	m.play.restart()
	return lost
}

// race lets the outputs of all turns that are not over differ from those that were published before.
func (m *model) race() {
	for id := range m.published {
		if turn, _ := turnOf(id); !m.known.has("finished/"+turn, 0) {
			m.raced[turn] = true
		}
	}
}

// replay crashes and hands the same events over again in the same order, at the same times or later.
func (m *model) replay(n, offsets int, later time.Duration) {
	m.tb.Helper()
	next, now := maps.Clone(m.next), m.now
	n = min(n, len(m.checkpoints)-1)
	offsets = min(offsets, len(m.checkpoints)-1-n)
	lost := m.rollBack(n, offsets)
	if offsets > 0 || later > 0 && slices.ContainsFunc(lost, handedOver.isDeadline) { // more may be due by then
		m.race()
	}
	m.exact = later == 0
	for i, h := range lost {
		m.now = h.at.Add(later)
		if h.isDeadline() {
			if i >= offsets {
				m.fire(false)
			}
			continue
		}
		m.hand(h.record)
	}
	m.exact = false
	m.next, m.now = next, now.Add(later)
	m.checkpoints[len(m.checkpoints)-1].next = maps.Clone(next)
}
