package processortest

import "fmt"

// Snapshot is the content of all tables of a driver at one moment.
type Snapshot struct {
	rows   map[rowKey][]byte
	queued int64 // deliveries before it
}

// Snapshot returns the content of all tables. Driver.Restore and Driver.Crash need it.
func (d *Driver) Snapshot() *Snapshot {
	d.tb.Helper()
	rows, err := d.readTables()
	if err != nil {
		d.fail(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Snapshot{rows: rows, queued: d.queued}
}

// Restore gives all tables a content that they had, as after a crash that lost their last changes; no callback runs. Input.PipeAt
// then delivers the records again that were not committed. A deadline that is in a row fires at the next Advance that reaches it.
func (d *Driver) Restore(s *Snapshot) {
	d.tb.Helper()
	if err := d.writeTables(s.rows); err != nil {
		d.fail(err)
	}
}

// Crash lets the graphs continue as after a crash that lost what was not committed since s: it restores the tables and
// delivers every record again that was delivered since, in the order in which the records were written, whether a test or a
// graph wrote them. It returns when every graph is idle. Outputs that are written again are outputs of their own, with the same
// turntable.id; the test must read them. A deadline that fired since fires again at the next Advance, also at Advance(0).
func (d *Driver) Crash(s *Snapshot) {
	d.tb.Helper()
	d.Restore(s)
	d.enqueueSince(s.queued)
	if err := d.settle(); err != nil {
		d.fail(err)
	}
}

func (d *Driver) writeTables(rows map[rowKey][]byte) error {
	now, err := d.readTables()
	if err != nil {
		return err
	}
	for at := range now {
		if _, ok := rows[at]; ok {
			continue
		}
		if err := d.runner(at.group).rows.Delete(at.key); err != nil {
			return fmt.Errorf("processortest: table of group %s: %w", at.group, err)
		}
	}
	for at, row := range rows {
		if err := d.runner(at.group).rows.Set(at.key, row); err != nil {
			return fmt.Errorf("processortest: table of group %s: %w", at.group, err)
		}
	}
	for _, r := range d.runners {
		clear(r.fired)
	}
	return nil
}
