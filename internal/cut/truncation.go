package cut

import "fmt"

// restart commits the offset at which to continue after a log was truncated, and ends the generation: the next one starts
// there. It reports whether it ended the generation, or the generation was ending anyway.
func (g *generation) restart(p Partition, oldest int64) (moved bool, err error) {
	o := g.group.opts
	if o.Truncated == nil {
		return false, nil
	}
	at, err := o.Truncated(p)
	if err == nil && at > oldest {
		err = NewPlain(o.Client, o.Listing).Close(g.series.Context(), map[Partition]int64{p: at}, g.member())
		moved = err == nil || lostMembership(err) // by a claim that has restarted before this one: the next generation's turn
	}
	switch {
	case g.series.Context().Err() != nil: // revoked or failed meanwhile
		return true, nil
	case moved:
		g.leave()
		return true, nil
	case err != nil:
		err = fmt.Errorf("cut: %s/%d: log was truncated: %w", p.Topic, p.ID, err)
		g.series.Fail(err)
	}
	return false, err
}
