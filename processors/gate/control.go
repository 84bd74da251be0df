package gate

import "github.com/turntable-streams/turntable/topics"

// apply purges the session: its open gates end cancelled, and its grants and outcomes are dropped. Digests are kept, because
// records of its gates can still be repeated. Records that wait for their request are kept until they expire: if that request
// precedes the purge, they may decide its gate. To cancel a turn is the turn's task, which withdraws its gates.
func (e controlled) apply(t *transition) {
	if e.Tombstone() || e.Control.Action != topics.ActionPurge {
		return
	}
	t.changed = true
	t.row.PurgedMs = max(t.row.PurgedMs, t.timeOf(e.Record))
	t.row.Grants = nil
	for len(t.row.Closed) > 0 {
		t.forgetOutcome()
	}
	for _, g := range t.row.Open {
		g.Purged = true
		t.askClose(g, topics.CausePurged, "")
	}
}
