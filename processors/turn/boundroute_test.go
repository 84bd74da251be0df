package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// The records of n messages with routes, and of a message without one, as a door writes them: without request IDs.
func boundMessages(p *play, n int) (events []event) {
	event := func(topic, value string, opts ...recordOption) {
		e, ok := p.event(topic, []byte(value), opts...)
		require.True(p.tb, ok)
		events = append(events, e)
	}
	for i := range n {
		id := fmt.Sprintf("pair%d", i)
		descriptor := fmt.Sprintf(`{"callbackService":"harbor","v":"route %d."}`, i)
		event("reply-to", descriptor, header(topics.HeaderID, id+"/reply"))
		event("message-input", message(fmt.Sprintf("message %d.", i)), header(topics.HeaderID, id+"/message"),
			header(topics.HeaderRoute, string(topics.WithoutToken(topics.Raw(descriptor), topics.RouteID("s1", id+"/reply")))))
	}
	event("message-input", message("plain"), header(topics.HeaderRoute, "null"))
	event("message-input", message("also plain"), header(topics.HeaderRoute, "null"))
	return events
}

// In whatever order the records are read, each route is that of its message.
func TestRouteServesTheMessageThatItWasWrittenFor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(rt, func(r *rules) { r.QueueLimit, r.Delivery = 3, rapid.Bool().Draw(rt, "delivery") })
		events := rapid.Permutation(boundMessages(p, 6)).Draw(rt, "order")
		var out effects
		take := func(es effects) {
			for len(es) > 0 {
				out = append(out, es...)
				if rapid.Bool().Draw(rt, "answered later") || len(emitted[enriched](es)) == 0 {
					return
				}
				asked := the[enriched](rt, es)
				es = p.respond(asked, saying("answer to "+string(asked.LatestInput)))
			}
		}
		routes := map[string]bool{}
		for _, e := range events {
			if r, ok := e.(routeGiven); ok {
				routes[r.Cause] = true
			}
			take(p.apply(e))
		}
		for p.state().Turn != nil {
			out = append(out, p.send("session-control", `{"action":"cancel"}`)...)
		}
		ended := map[string]string{} // routes by turn
		for _, e := range out.emits() {
			if o, ok := e.Value.(answered); ok {
				turn, _, _ := strings.Cut(e.ID, "/")
				ended[turn] = string(o.ReplyTo)
			}
		}
		require.Len(rt, ended, 8)
		served := 0
		for i := range 6 {
			turn := turnID("s1", fmt.Sprintf("pair%d/message", i))
			if ended[turn] != "" {
				require.Contains(rt, ended[turn], fmt.Sprintf(`"route %d."`, i))
				served++
			}
			delete(ended, turn)
		}
		late := 0
		for _, reason := range out.letters() {
			require.Equal(rt, reasonLateRoute, reason)
			late++
		}
		require.Equal(rt, 6, served+late, "a route that is read after its message has ended is dead-lettered")
		for _, reply := range ended {
			require.Empty(rt, reply, "of a message without a route")
		}
		require.Empty(rt, p.state().Routes)
	})
}

// A foreign door writes no header: its unnamed route goes to the oldest message that came without one.
func TestUnboundRouteIsNotThatOfABoundMessage(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route)
	bound := the[enriched](t, p.send("message-input", message("bound"), header(topics.HeaderRoute, "null")))
	require.Empty(t, reply(t, p, bound))
	require.Equal(t, route, reply(t, p, p.ask("unbound")))
	p.send("reply-to", route, header(topics.HeaderID, "pair/reply"))
	require.EqualValues(t, rowBound, p.stored().Version)
	require.Empty(t, reply(t, p, p.ask("unbound")), "a bound route waits for its message")
}
