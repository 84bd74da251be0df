package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

const route = `{"callbackService":"harbor","bearerToken":"t","extra":[1.10]}`

func namedRoute(id string) string {
	return `{"callbackService":"` + id + `","request_id":"` + id + `"}`
}

// reply is the route of the output that ends the open turn.
func reply(t *testing.T, p *play, asked enriched) string {
	t.Helper()
	return string(the[answered](t, p.respond(asked, saying("done"))).ReplyTo)
}

func TestOutputCarriesTheRouteVerbatim(t *testing.T) {
	for name, first := range map[string]bool{"route first": true, "message first": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			if first {
				require.Empty(t, p.send("reply-to", route))
			}
			asked := p.ask("hi")
			if !first {
				require.Empty(t, p.send("reply-to", route))
			}
			require.Equal(t, route, reply(t, p, asked))
			require.Empty(t, reply(t, p, p.ask("more")), "used once")
		})
	}
}

func TestEmptyDescriptorIsARoute(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", `{}`)
	require.Equal(t, `{}`, reply(t, p, p.ask("hi")))
}

func TestNamedRouteServesItsRequest(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", namedRoute("r2"))
	one := the[enriched](t, p.send("message-input", requestMessage("one", "r1")))
	p.send("message-input", requestMessage("two", "r2"))
	p.send("message-input", message("three"))
	p.send("reply-to", namedRoute("r1"))
	out := p.respond(one, saying("x"))
	require.Equal(t, namedRoute("r1"), string(the[answered](t, out).ReplyTo))
	out = p.respond(the[enriched](t, out), saying("y"))
	require.Equal(t, namedRoute("r2"), string(the[answered](t, out).ReplyTo))
	require.Empty(t, reply(t, p, the[enriched](t, out)), "a named route serves nobody else")
}

func TestALaterRouteOfARequestReplacesTheEarlier(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", `{"request_id":"r1","v":1}`)
	p.send("reply-to", `{"request_id":"r1","v":2}`)
	require.Contains(t, reply(t, p, the[enriched](t, p.send("message-input", requestMessage("x", "r1")))), `"v":2`)
}

func TestUnnamedRouteBindsToTheOldestMessageThatIsNotOlder(t *testing.T) {
	p := newPlay(t)
	old, now := p.now.Add(-time.Minute), p.now
	one := the[enriched](t, p.send("message-input", message("one"), stamped(old)))
	p.send("message-input", message("two"), stamped(now))
	p.send("message-input", message("three"), stamped(now.Add(time.Second)))
	p.send("reply-to", route, stamped(now))
	out := p.respond(one, saying("x"))
	require.Nil(t, the[answered](t, out).ReplyTo, "older than the route")
	out = p.respond(the[enriched](t, out), saying("y"))
	require.Equal(t, route, string(the[answered](t, out).ReplyTo))
	require.Empty(t, reply(t, p, the[enriched](t, out)))
}

func TestUnnamedRouteWaitsForTheNextSuchMessage(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route, stamped(p.now))
	old := p.send("message-input", message("old"), stamped(p.now.Add(-time.Second)))
	require.Empty(t, reply(t, p, the[enriched](t, old)))
	require.Empty(t, reply(t, p, the[enriched](t, p.send("message-input", requestMessage("named", "r1")))))
	require.Equal(t, route, reply(t, p, p.ask("new")))
}

func TestRecordsWithoutATimestampStillFindTheirRoute(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route, stamped(time.UnixMilli(-1)))
	require.Equal(t, route, reply(t, p, the[enriched](t, p.send("message-input", message("x"), stamped(time.Time{})))))
}

func TestTombstoneBelongsToAUsedRouteFirst(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route)
	reply(t, p, p.ask("one"))
	p.send("reply-to", `{"callbackService":"second"}`)
	require.Empty(t, p.tombstone("reply-to"), "FlightDeck's consumer has served the first")
	require.Contains(t, reply(t, p, p.ask("two")), "second")
}

// With our own delivery no foreign consumer serves routes: every foreign tombstone is a withdrawal.
func TestTombstoneWithdrawsTheOpenRouteUnderDelivery(t *testing.T) {
	for name, taken := range map[string]bool{"waiting": false, "taken": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, func(r *rules) { r.Delivery = true })
			p.send("reply-to", route)
			require.NotEmpty(t, reply(t, p, p.ask("one")))
			require.Empty(t, p.tombstone("reply-to", header(topics.HeaderID, "d/route/0")), "our own delivery's")
			p.send("reply-to", `{"callbackService":"second"}`)
			if !taken {
				p.tombstone("reply-to")
			}
			asked := p.ask("two")
			if taken {
				p.tombstone("reply-to")
			}
			require.Empty(t, reply(t, p, asked), "withdrawn")
			p.send("reply-to", `{"callbackService":"third"}`)
			require.Contains(t, reply(t, p, p.ask("three")), "third")
		})
	}
}

func TestTombstoneBelongsToARouteUsedBeforeDeliveryWasSwitchedOn(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route)
	reply(t, p, p.ask("one"))
	p.rules.Delivery = true
	p.send("reply-to", `{"callbackService":"second"}`)
	p.tombstone("reply-to")
	require.Contains(t, reply(t, p, p.ask("two")), "second")
}

func TestTombstoneRemovesTheOpenUnnamedRoute(t *testing.T) {
	for name, first := range map[string]bool{"waiting": true, "taken": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.send("reply-to", namedRoute("r1"))
			p.send("reply-to", route)
			if first {
				p.tombstone("reply-to")
			}
			asked := p.ask("hi")
			if !first {
				p.tombstone("reply-to")
			}
			require.Empty(t, reply(t, p, asked))
			require.Equal(t, namedRoute("r1"),
				reply(t, p, the[enriched](t, p.send("message-input", requestMessage("x", "r1")))), "named ones stay")
		})
	}
}

func TestTombstonesOfDeliveryAreIgnored(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route)
	require.Empty(t, p.tombstone("reply-to", header(topics.HeaderID, "ours")))
	require.Equal(t, route, reply(t, p, p.ask("hi")))
}

func TestRoutesExpireByTimer(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.RouteTTL = time.Minute })
	p.send("reply-to", route)
	p.send("reply-to", namedRoute("r1"))
	require.Len(t, p.state().Routes, 2)
	require.Empty(t, p.wait(time.Minute))
	require.Empty(t, p.state().Routes)

	asked := p.ask("hi")
	p.send("reply-to", route)
	require.NotNil(t, p.state().Turn.Message.Route)
	p.wait(time.Minute)
	require.Nil(t, p.state().Turn.Message.Route, "a route that was taken too")
	require.Empty(t, reply(t, p, asked))
}

func TestRejectedMessageUsesItsRoute(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.Policy = Reject })
	p.ask("one")
	p.send("reply-to", namedRoute("r2"))
	busy := the[answered](t, p.send("message-input", requestMessage("two", "r2")))
	require.Equal(t, namedRoute("r2"), string(busy.ReplyTo))
}

func TestRoutesAreBounded(t *testing.T) {
	big := `{"callbackService":"` + strings.Repeat("x", maxDescriptor) + `"}`
	require.Equal(t, []string{reasonRouteSize}, newPlay(t).send("reply-to", big).letters())

	p := newPlay(t)
	refused := 0
	for range maxRoutes {
		refused += len(p.send("reply-to", `{"x":"`+strings.Repeat("x", 60<<10)+`"}`).letters())
	}
	require.Positive(t, refused, "in bytes too")
}

// Routes whose messages never come do not keep the session from getting new ones.
func TestNewRouteEvictsTheOldestThatNoMessageWaitsFor(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", namedRoute("first"))
	first := the[enriched](t, p.send("message-input", requestMessage("one", "first")))
	for i := range maxRoutes - 1 {
		require.Empty(t, p.send("reply-to", namedRoute(fmt.Sprint("unused", i))))
	}
	require.Empty(t, p.send("reply-to", namedRoute("last")))
	require.Len(t, p.state().Routes, maxRoutes)
	require.Equal(t, namedRoute("first"), reply(t, p, first), "its message is not finished")
	for _, id := range []string{"unused0", "unused1", "last"} {
		asked := the[enriched](t, p.send("message-input", requestMessage("x", id)))
		require.Equal(t, id != "unused0", reply(t, p, asked) == namedRoute(id), id)
	}
}

func TestRouteIsDeadLetteredIfMessagesWaitForAllOthers(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.QueueLimit = maxRoutes })
	for i := range maxRoutes {
		p.send("message-input", requestMessage("x", fmt.Sprint("r", i)))
		require.Empty(t, p.send("reply-to", namedRoute(fmt.Sprint("r", i))))
	}
	require.Equal(t, []string{reasonTooManyRoute}, p.send("reply-to", namedRoute("more")).letters())
}

func TestARepeatedRouteIsOneRoute(t *testing.T) {
	p := newPlay(t)
	p.send("reply-to", route)
	given := p.past[0]
	asked := p.ask("one")
	require.Empty(t, p.repeat(given))
	reply(t, p, asked)
	require.Empty(t, p.repeat(given))
	require.Empty(t, reply(t, p, p.ask("two")))
}
