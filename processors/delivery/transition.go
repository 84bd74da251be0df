package delivery

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// gate is a snapshot of a route's circuit breaker and of its attempts in flight. It may be stale.
type gate struct {
	// OpenUntilMS is the time in milliseconds since the epoch until which the circuit is open and no attempt is made; 0 if
	// the circuit is closed.
	OpenUntilMS int64
	// InFlight is the number of attempts in flight.
	InFlight int64
}

// routes returns the snapshot of a route by its key (topics.Destination.Key), the zero gate if the route has no row.
type routes func(key string) gate

// apply is the state machine of deliveries: it applies an event to the row of its session. A nil state is a session
// without a row. apply modifies the state that it is given, so the caller must not use it afterwards; it only reads the
// event. It is deterministic: equal arguments and equal answers of routes give equal outcomes.
//
// An event that was applied before changes nothing and has no effects.
func apply(
	state *deliveryrow.State, session string, e event, routes routes, now time.Time, catalog topics.Catalog, config Config,
) machine.Outcome[*deliveryrow.State] {
	t := &transition{row: state, key: session, routes: routes, now: now, topics: catalog, config: config}
	if t.row == nil {
		t.row = &deliveryrow.State{Version: rowVersion}
	}
	if d, timer := e.(deadlineCame); timer {
		t.due = machine.Through(d.read, now)
	}
	e.apply(t)
	t.advance()
	switch {
	case !t.changed:
		return machine.Outcome[*deliveryrow.State]{Effects: t.List()}
	case t.erased:
		return machine.Outcome[*deliveryrow.State]{Changed: state != nil, Effects: t.List()}
	}
	if _, timer := e.(deadlineCame); !timer {
		t.row.TouchedMs = t.nowMS()
	}
	t.trim()
	t.row.DeadlineMs, t.row.Version = t.deadline(), formatOf(t.row)
	return machine.Outcome[*deliveryrow.State]{Row: t.row, Changed: true, Effects: t.List()}
}

// transition is a session's row while one event is applied to it.
type transition struct {
	machine.Effects
	row     *deliveryrow.State
	key     string // the session ID
	routes  routes
	now     time.Time
	due     int64 // what ends is due until then, in milliseconds since the epoch; 0 for records, which end nothing else
	topics  topics.Catalog
	config  Config
	changed bool // the row must be written
	erased  bool // the row must be deleted
}

func (t *transition) nowMS() int64 { return t.now.UnixMilli() }

// after returns the time d from now, in milliseconds since the epoch.
func (t *transition) after(d time.Duration) int64 { return t.now.Add(d).UnixMilli() }

// outputID returns the ID of an output about what has an ID: a delivery or a reply route.
func outputID(about, kind string, number uint32) string {
	return about + "/" + kind + "/" + strconv.FormatUint(uint64(number), 10)
}

// routeOf is the destination of a delivery.
func routeOf(d *deliveryrow.Delivery) topics.Destination {
	return topics.Destination{Kind: d.Kind, Service: d.Service}
}

// find returns the open delivery with an ID, nil if there is none.
func (t *transition) find(id string) *deliveryrow.Delivery {
	for _, d := range t.row.Open {
		if d.Id == id {
			return d
		}
	}
	return nil
}

// fits reports whether the row has room for another delivery or route.
func (t *transition) fits() bool { return proto.Size(t.row) <= t.config.RowLimit-rowReserve }

// rowReserve is kept free for what every event adds to the row: digests, failures, deadlines.
const rowReserve = 16 << 10

// makeRoom drops dead deliveries, oldest first, until the row fits. It returns false if the row does not fit even
// without them.
func (t *transition) makeRoom() bool {
	for !t.fits() {
		if len(t.row.Dead) == 0 {
			return false
		}
		t.row.Dead = t.row.Dead[1:]
		t.changed = true
	}
	return true
}

// trim brings a row below Config.RowLimit in every case: it drops dead deliveries, then the older half of the digests, then
// the progress of deliveries to channels, then ends the newest deliveries as dead, then drops early outputs and routes. Kafka
// would reject a larger row, on every restart again.
func (t *transition) trim() {
	for proto.Size(t.row) > t.config.RowLimit {
		switch {
		case len(t.row.Dead) > 0:
			t.row.Dead = t.row.Dead[1:]
		case len(t.row.Remembered) >= 2*machine.DigestSize:
			t.row.Remembered = machine.Half(t.row.Remembered)
		case t.dropProgress():
		case len(t.row.Open) > 0:
			t.markDead(t.row.Open[len(t.row.Open)-1], reasonNoRoom)
		case len(t.row.Early) > 0:
			t.row.Early = t.row.Early[1:]
		case len(t.row.Routes) > 0:
			t.row.Routes = t.row.Routes[1:]
		default:
			return
		}
	}
}
