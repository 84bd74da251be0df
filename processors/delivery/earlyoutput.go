package delivery

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// expectRoute records that an output has used the next route with its token. Kafka has no order between topics, so the
// output can be read before that route. If the route were stored when it is read, it would withhold the tombstone after the
// delivery. Like routes, a session keeps maxRoutes of these records; the oldest is dropped.
func (t *transition) expectRoute(token string, writtenMS int64) {
	t.expireEarly()
	t.row.Early = append(t.row.Early, &deliveryrow.EarlyOutput{
		Token: digestOfToken(token), WrittenMs: writtenMS, ExpiresMs: t.after(t.config.RouteTTL),
	})
	if len(t.row.Early) > maxRoutes {
		t.row.Early = t.row.Early[1:]
	}
	t.changed = true
}

// usedEarly reports whether an early output has used a route whose record is now read. Like supersedeRoutes, it drops the
// older routes. If only those withheld the tombstone after the delivery, it writes the tombstone. A route that was written
// after the output belongs to a later output with the same token: callers may use one token for all their messages.
func (t *transition) usedEarly(r *deliveryrow.ReplyRoute, writtenMS int64) bool {
	want := digestOfToken(r.GetToken())
	i := slices.IndexFunc(t.row.Early, func(o *deliveryrow.EarlyOutput) bool {
		return bytes.Equal(o.Token, want) && o.WrittenMs >= writtenMS && o.ExpiresMs > t.nowMS()
	})
	if i < 0 {
		return false
	}
	withheld := t.row.Early[i].Withheld
	t.row.Early = slices.Delete(t.row.Early, i, i+1)
	for len(t.row.Routes) > 0 {
		t.takeRoute(t.row.Routes[0].Id)
	}
	if withheld && !t.routedIsOpen() {
		machine.Tombstone(&t.Effects, t.topics.ReplyTo, t.key, outputID(r.Id, "route", 0))
	}
	return true
}

// withhold records that the delivery of an early output with this token was not followed by a tombstone.
func (t *transition) withhold(token string) {
	want := digestOfToken(token)
	for _, o := range t.row.Early {
		if bytes.Equal(o.Token, want) && !o.Withheld {
			o.Withheld = true
			return
		}
	}
}

func (t *transition) expireEarly() {
	n := len(t.row.Early)
	t.row.Early = slices.DeleteFunc(t.row.Early, func(o *deliveryrow.EarlyOutput) bool { return o.ExpiresMs <= t.nowMS() })
	t.changed = t.changed || len(t.row.Early) != n
}

func digestOfToken(token string) []byte {
	d := digests.Of(ofToken, token)
	return d[:]
}
