package entrance

import (
	"container/list"
	"sync"
	"time"
)

// arrivals are the bodies of callers without a name that are arriving, the oldest first. Such callers may be strangers: a signature
// over a body can be checked only when the body has arrived. So if there is no room for another request, the body that has been
// arriving the longest gives way. Bodies that are sent at once have long arrived by then, and those that are sent slowly keep no
// one out. It is safe for concurrent use; its lock also guards what a visit occupies.
type arrivals struct {
	mu  sync.Mutex
	all *list.List // of *Visit
}

func newArrivals() *arrivals { return &arrivals{all: list.New()} }

// displace gives up the oldest body but that of a visit, of one caller unless that is empty, and frees what its visit occupies. It
// returns false if there is none.
func (a *arrivals) displace(caller string, but *Visit) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for e := a.all.Front(); e != nil; e = e.Next() {
		v := e.Value.(*Visit)
		if v == but || caller != "" && v.caller != caller {
			continue
		}
		a.all.Remove(e)
		v.arriving, v.displaced = nil, true
		v.free()
		_ = v.wire.SetReadDeadline(time.Unix(1, 0)) // ends its Read
		return true
	}
	return false
}

// arrive says that the body of a visit is arriving, if it can be displaced.
func (v *Visit) arrive() {
	if v.Caller.Name() == "" {
		a := v.entrance.arrivals
		a.mu.Lock()
		defer a.mu.Unlock()
		v.arriving = a.all.PushBack(v)
	}
}

// arrived ends arrive. It returns false if the visit was displaced.
func (v *Visit) arrived() bool {
	a := v.entrance.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if v.arriving != nil {
		a.all.Remove(v.arriving)
		v.arriving = nil
	}
	return !v.displaced
}

// take reserves memory for the body of a visit.
func (v *Visit) take(bytes int) outcome {
	v.entrance.arrivals.mu.Lock()
	defer v.entrance.arrivals.mu.Unlock()
	if v.displaced {
		return displaced
	}
	o := v.entrance.bodies.take(v.caller, bytes)
	if o == granted {
		v.bytes += bytes
	}
	return o
}

// deadline sets the deadline of reads from the client, unless its body has arrived or was displaced. Servers without deadlines
// keep their own.
func (v *Visit) deadline(d time.Duration) {
	v.entrance.arrivals.mu.Lock()
	defer v.entrance.arrivals.mu.Unlock()
	if !v.received && !v.displaced {
		_ = v.wire.SetReadDeadline(time.Now().Add(d))
	}
}
