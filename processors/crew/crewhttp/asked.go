package crewhttp

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/permission"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// maxAsked is how many permission requests the index remembers from their events.
const maxAsked = 2000

// asked is a permission request from its event. At least once, a row is written after its events, so a person can answer before
// the index has the row.
type asked struct {
	agent string
	view.PermissionAsked
}

// askedOf reads the event of a permission request; nil if it cannot be read.
func askedOf(fields topics.Raw) *asked {
	var e permission.Asked
	if json.Unmarshal(fields, &e, lenient) != nil || e.Request.ID == "" {
		return nil
	}
	return &asked{e.AgentID, e.View()}
}

// note remembers what an event says about permission requests and messages. The caller holds the lock.
func (x *Index) note(e *event) {
	switch {
	case e.message != nil:
		x.bus.add(x.crewOf(e), *e.message)
	case e.resolved != nil:
		x.outcomes.add(*e.resolved)
		x.asked = slices.DeleteFunc(x.asked, func(a *asked) bool { return a.ID == e.resolved.RequestID })
	case e.asked != nil:
		if x.asked = append(x.asked, e.asked); len(x.asked) > maxAsked {
			x.asked = slices.Delete(x.asked, 0, 1)
		}
	}
}

// open returns the permission requests of an agent that are open as far as the index knows, from its row and its events.
func (x *Index) open(agent string) (open []view.PermissionAsked) {
	x.mu.Lock()
	defer x.mu.Unlock()
	add := func(p view.PermissionAsked) {
		_, ended := x.outcomes.byID[p.ID]
		if !ended && !slices.ContainsFunc(open, func(o view.PermissionAsked) bool { return o.ID == p.ID }) {
			open = append(open, p)
		}
	}
	if row := x.agents[agent]; row != nil {
		for _, p := range row.view.Permissions {
			add(p)
		}
	}
	for _, a := range x.asked {
		if a.agent == agent {
			add(a.PermissionAsked)
		}
	}
	return open
}

// askedBy returns the open permission request of an agent with an ID. What is not seen when the tables are read has ended.
func (x *Index) askedBy(ctx context.Context, agent, id string) (p view.PermissionAsked, ok bool, err error) {
	find := func() bool {
		open := x.open(agent)
		i := slices.IndexFunc(open, func(o view.PermissionAsked) bool { return o.ID == id })
		if i >= 0 {
			p = open[i]
		}
		return i >= 0
	}
	if ok = find(); !ok {
		err = x.catchUpRows(ctx)
		ok = find()
	}
	return p, ok, err
}

// maxOutcomes is how many outcomes of permission requests the index remembers.
const maxOutcomes = 2000

// outcomes are the outcomes of the last permission requests, by the ID of the gate, and the requests that wait for one.
type outcomes struct {
	byID    map[string]outcome
	order   []string // IDs, the oldest first
	waiting map[string]map[chan outcome]struct{}
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

// await returns a channel that receives the outcome of a permission request, which may be known already.
func (x *Index) await(id string) (ended <-chan outcome, stop func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, c := &x.outcomes, make(chan outcome, 1)
	if known, ok := o.byID[id]; ok {
		c <- known
		return c, func() {}
	}
	if o.waiting[id] == nil {
		o.waiting[id] = map[chan outcome]struct{}{}
	}
	o.waiting[id][c] = struct{}{}
	return c, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(o.waiting[id], c)
		if len(o.waiting[id]) == 0 {
			delete(o.waiting, id)
		}
	}
}

// optionsOf returns the IDs of the options of a permission request.
func optionsOf(asked view.PermissionAsked) (ids []string) {
	var options []struct {
		ID       string `json:"id"`
		OptionID string `json:"optionId"`
	}
	if json.Unmarshal(asked.Options, &options, lenient) != nil {
		return nil
	}
	for _, o := range options {
		ids = append(ids, cmp.Or(o.OptionID, o.ID))
	}
	return ids
}
