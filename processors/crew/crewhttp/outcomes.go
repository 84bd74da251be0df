package crewhttp

// maxOutcomes is how many outcomes of permission requests the index remembers.
const maxOutcomes = 2000

// outcomes are the outcomes of the last permission requests, by the ID of the gate, and the requests that wait for one.
type outcomes struct {
	byID    map[string]outcome
	order   []string // IDs, the oldest first
	waiting map[string]map[chan outcome]struct{}
}

func newOutcomes() outcomes {
	return outcomes{byID: map[string]outcome{}, waiting: map[string]map[chan outcome]struct{}{}}
}

// add remembers an outcome and passes it to those who wait for it. A later one for the same request has no effect.
func (o *outcomes) add(ended outcome) {
	if _, known := o.byID[ended.RequestID]; known {
		return
	}
	o.byID[ended.RequestID] = ended
	if o.order = append(o.order, ended.RequestID); len(o.order) > maxOutcomes {
		delete(o.byID, o.order[0])
		o.order = o.order[1:]
	}
	for c := range o.waiting[ended.RequestID] {
		c <- ended
	}
	delete(o.waiting, ended.RequestID)
}

// await returns a channel that receives the outcome of a request. stop must be called under the lock of the index.
func (o *outcomes) await(id string) (ended <-chan outcome, stop func()) {
	c := make(chan outcome, 1)
	if known, ok := o.byID[id]; ok {
		c <- known
		return c, func() {}
	}
	if o.waiting[id] == nil {
		o.waiting[id] = map[chan outcome]struct{}{}
	}
	o.waiting[id][c] = struct{}{}
	return c, func() {
		delete(o.waiting[id], c)
		if len(o.waiting[id]) == 0 {
			delete(o.waiting, id)
		}
	}
}
