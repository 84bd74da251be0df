package processortest

import "fmt"

// Snapshot is the content of all tables of a driver.
type Snapshot struct{ rows map[rowKey][]byte }

// Snapshot returns the content of all tables. Driver.Restore needs it.
func (d *Driver) Snapshot() *Snapshot {
	d.tb.Helper()
	rows, err := d.readTables()
	if err != nil {
		d.fail(err)
	}
	return &Snapshot{rows}
}

// Restore gives all tables a content that they had, as after a crash that lost their last changes; no callback runs. Input.PipeAt then
// delivers the records again that were not committed. A deadline that is in a row fires at the next Advance that reaches it.
func (d *Driver) Restore(s *Snapshot) {
	d.tb.Helper()
	if err := d.writeTables(s.rows); err != nil {
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
