package websocket

import (
	"container/heap"
	"container/list"
)

// owner is a caller to whose account the frames in memory are charged: the caller that first subscribed to their session.
// When memory is full, the owner that uses the most loses its oldest frames, so no caller can evict the frames of callers
// that use less.
type owner struct {
	name       string
	sessions   int        // in the hub
	bytes      int        // of remembered
	remembered *list.List // of *entry, oldest first
	idle       *list.List // of *session without subscribers, longest idle first
	byBytes    int        // its place in hub.byBytes
	byIdle     int        // its place in hub.byIdle
}

// ranking is a heap of owners, the one that uses the most first.
type ranking struct {
	owners []*owner
	use    func(*owner) int
	place  func(*owner) *int
}

func (r *ranking) Len() int           { return len(r.owners) }
func (r *ranking) Less(i, j int) bool { return r.use(r.owners[i]) > r.use(r.owners[j]) }

func (r *ranking) Swap(i, j int) {
	r.owners[i], r.owners[j] = r.owners[j], r.owners[i]
	*r.place(r.owners[i]), *r.place(r.owners[j]) = i, j
}

// Push implements heap.Interface.
func (r *ranking) Push(o any) {
	*r.place(o.(*owner)) = len(r.owners)
	r.owners = append(r.owners, o.(*owner))
}

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(r.owners) - 1
	o := r.owners[last]
	r.owners[last] = nil
	r.owners = r.owners[:last]
	return o
}

func (r *ranking) changed(o *owner) { heap.Fix(r, *r.place(o)) }

// accounts are the owners of the sessions in the hub.
type accounts struct {
	byName          map[string]*owner
	byBytes, byIdle *ranking
}

func newAccounts() accounts {
	return accounts{
		byName:  map[string]*owner{},
		byBytes: &ranking{use: func(o *owner) int { return o.bytes }, place: func(o *owner) *int { return &o.byBytes }},
		byIdle:  &ranking{use: func(o *owner) int { return o.idle.Len() }, place: func(o *owner) *int { return &o.byIdle }},
	}
}

// open returns the owner of a new session.
func (a *accounts) open(name string) *owner {
	o := a.byName[name]
	if o == nil {
		o = &owner{name: name, remembered: list.New(), idle: list.New()}
		a.byName[name] = o
		heap.Push(a.byBytes, o)
		heap.Push(a.byIdle, o)
	}
	o.sessions++
	return o
}

// close removes a session of an owner, which has no frames and is not idle.
func (a *accounts) close(o *owner) {
	if o.sessions--; o.sessions == 0 {
		heap.Remove(a.byBytes, o.byBytes)
		heap.Remove(a.byIdle, o.byIdle)
		delete(a.byName, o.name)
	}
}
