package delivery

import (
	"bytes"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// MaxProgress is the largest Response of a failed attempt, in bytes, that is kept for the next attempts of a delivery to a
// channel (topics.Delivery.Progress). A larger one is ignored and the one before it stays. Attempts that do not get it repeat
// what was sent already, with the same keys.
const MaxProgress = 16 << 10

// apply opens the delivery of a message to a channel that no turn wrote. The record is the delivery's identity.
func (e messageGiven) apply(t *transition) {
	if e.Tombstone() {
		return
	}
	if topics.OriginOf(e.Output.ReplyTo) == nil {
		t.DeadLetter(reasonNoOrigin)
		return
	}
	t.openToChannel(e.Record, e.Output, bounded(e.ID), ofMessage)
}

// openToChannel opens the delivery of an output with an origin. cause identifies it among those of the domain.
func (t *transition) openToChannel(r *machine.Record, o topics.Output, cause, domain string) {
	raw, gate := topics.OriginOf(o.ReplyTo), topics.GateAskOf(o.ReplyTo)
	origin, err := topics.DecodeOrigin(raw)
	if err != nil || len(gate) > maxGateAsk {
		t.DeadLetter(reasonOrigin)
		return
	}
	to := origin.Destination()
	d := &deliveryrow.Delivery{
		Id: identify(domain, t.key, cause, to.Key()+"\x00"), TurnId: cause, RequestId: o.RequestID,
		Kind: to.Kind, Service: to.Service, Channel: topics.OriginRoute(raw, gate), Body: topics.WithoutReplyTo(r.Value),
		CreatedMs: t.nowMS(), ExpiresMs: t.after(t.config.TTL), Phase: deliveryrow.Phase_PHASE_PENDING, DueMs: t.nowMS(),
	}
	if !t.opened(d.Id) {
		t.open(d)
	}
}

// recordProgress stores what an attempt of a delivery to a channel has sent. An attempt without a response says nothing about
// that, so the one before it stays. An attempt that sent more than the one before it starts the budget and the attempts again:
// platforms limit messages per minute, so a long text needs many attempts, none of which is in vain.
func (t *transition) recordProgress(d *deliveryrow.Delivery, response topics.Raw) {
	if d.Kind != topics.KindChannel || response == nil || len(response) > MaxProgress || bytes.Equal(response, d.Progress) {
		return
	}
	d.StartedMs, d.CreditMs, d.Failures = t.nowMS(), 0, nil
	d.Progress = bytes.Clone(response) // the row outlives the record
	t.changed = true
}

// responseOf returns the response of a final receipt: that of the last attempt of a delivery to a channel that had one.
func responseOf(d *deliveryrow.Delivery, r topics.Receipt) topics.Raw {
	switch {
	case d.Kind != topics.KindChannel:
		return nil
	case r.Response != nil:
		return r.Response
	default:
		return rawOf(d.Progress)
	}
}

// dropProgress gives up the progress of the newest delivery that has one. It returns false if none has.
func (t *transition) dropProgress() bool {
	for i := len(t.row.Open) - 1; i >= 0; i-- {
		if d := t.row.Open[i]; len(d.Progress) > 0 {
			d.Progress = nil
			return true
		}
	}
	return false
}

// rawOf returns a value of a row: nil for an empty one.
func rawOf(value []byte) topics.Raw {
	if len(value) == 0 {
		return nil
	}
	return value
}

// bounded returns an ID, or its digest if it is long.
func bounded(id string) string {
	if len(id) <= maxTurn {
		return id
	}
	return identify(ofTurn, id)
}
