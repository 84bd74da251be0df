package delivery

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

type (
	tb      = machinetest.TB
	effects = machinetest.Effects
)

// harness applies events to the row of one session.
type harness struct {
	machinetest.World[*deliveryrow.State, event]
	topics topics.Catalog
	config Config
	key    string
	gates  map[string]gate
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &harness{topics: c, key: "s1", gates: map[string]gate{}}
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	p.World = machinetest.World[*deliveryrow.State, event]{
		TB: t, Table: deliveryrow.Table, Due: deadlineCame{}, RowLimit: p.config.RowLimit, RecordLimit: p.config.RecordLimit,
		Now: time.UnixMilli(1_790_000_000_000).UTC(),
		Apply: func(row *deliveryrow.State, e event) (machine.Outcome[*deliveryrow.State], error) {
			return apply(row, p.key, e, func(key string) gate { return p.gates[key] }, p.Now, c, p.config), nil
		},
	}
	return p
}

// outputOf returns the output of a turn. An empty descriptor is an output without one.
func (p *harness) outputOf(turn, descriptor string) event {
	p.TB.Helper()
	r, o := machinetest.Record(&p.World, p.topics.MessageOutput, topics.Output{
		SessionID: &p.key, Content: "answer of " + turn, SourceAgent: "agent-1", ReplyTo: rawOf([]byte(descriptor)),
	})
	r.ID, r.Own = turn+"/0/output/0", true
	return outputArrived{r, o}
}

// messageOf returns a record of channel-messages. An empty ID is a record without a turntable.id.
func (p *harness) messageOf(id, descriptor string) event {
	p.TB.Helper()
	r, o := machinetest.Record(&p.World, p.topics.ChannelMessages, topics.Output{
		SessionID: &p.key, Content: "message " + id, ReplyTo: rawOf([]byte(descriptor)),
	})
	if id != "" {
		r.ID, r.Own = id, true
	}
	return messageGiven{r, o}
}

// routeOf returns a reply route and its ID, by which outputs name it.
func (p *harness) routeOf(descriptor string) (event, string) {
	p.TB.Helper()
	r, route := machinetest.Record(&p.World, p.topics.ReplyTo, topics.Route{Raw: topics.Raw(descriptor)})
	return routeGiven{r, route}, topics.RouteID(p.key, r.ID)
}

// receiptOf returns a sink's receipt of an attempt.
func (p *harness) receiptOf(a topics.Delivery, outcome topics.Outcome, change ...func(*topics.Receipt)) event {
	p.TB.Helper()
	r := topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		AtMS: p.Now.UnixMilli(),
	}
	if outcome == topics.OutcomeFailed || outcome == topics.OutcomeRefused {
		reason := "status 503"
		r.Reason, r.Status = &reason, 503
	}
	for _, f := range change {
		f(&r)
	}
	record, r := machinetest.Record(&p.World, p.topics.DeliveryReceipts, r)
	return receiptArrived{record, r}
}

func (p *harness) requeueOf(id string) event {
	p.TB.Helper()
	record, c := machinetest.Record(&p.World, p.topics.DeliveryControl, topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: id})
	return controlled{record, c}
}

func (p *harness) tombstone() *machine.Record { return &machine.Record{ID: "tombstone", At: p.Now} }

// fireNext moves the clock to the next deadline and applies it. It returns false if the row has no deadline.
func (p *harness) fireNext() (effects, bool) {
	p.TB.Helper()
	at, ok := p.Deadline()
	if !ok {
		return nil, false
	}
	p.Now = at
	return p.Handle(p.Due), true
}

// advance moves the clock by d and applies the deadlines in that time.
func (p *harness) advance(d time.Duration) effects {
	p.TB.Helper()
	return p.Advance(d, p.Handle)
}

// removals returns the tombstones on reply-to.
func removals(es effects) (list effects) {
	for _, e := range es {
		if e.Topic != "" && e.Value == nil {
			list = append(list, e)
		}
	}
	return list
}

func attempt(t tb, es effects) topics.Delivery {
	t.Helper()
	return machinetest.Only[topics.Delivery](t, es)
}

const harbor = `{"callbackService":"harbor","bearerToken":"t0ken"}`

func named(routeID string) string {
	return fmt.Sprintf(`{"callbackService":"harbor","route_id":%q}`, routeID)
}
