package turn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestWithDeliveryNoTokenEntersRowOrOutput(t *testing.T) {
	const secret = `{"callbackService":"harbor","bearerToken":"s3cret","extra":[1.10]}`
	p := newPlay(t, func(r *rules) { r.Delivery = true })
	asked := p.ask("hi")
	p.send("reply-to", secret)
	require.NotContains(t, string(p.row), "s3cret")
	id := topics.RouteID(p.key, p.past[len(p.past)-1].source().Cause)
	require.Equal(t, `{"callbackService":"harbor","extra":[1.10],"route_id":"`+id+`"}`, reply(t, p, asked))
}

// The two topics have no common order: a fast turn ends before the record of its route is read.
func TestWithDeliveryAnOutputNamesARouteThatIsReadLater(t *testing.T) {
	const descriptor = `{"callbackService":"harbor","request_id":"r1","route_id":"7"}`
	named := func(p *play, descriptor string) enriched {
		return the[enriched](t, p.send("message-input", requestMessage("hi", "r1"), header(topics.HeaderRoute, descriptor)))
	}
	delivery := func(r *rules) { r.Delivery = true }

	p := newPlay(t, delivery)
	asked := named(p, descriptor)
	require.Equal(t, descriptor, reply(t, p, asked))
	p.send("reply-to", namedRoute("r1"))
	require.Empty(t, reply(t, p, p.ask("another")), "the route is that of its message")

	p = newPlay(t, delivery)
	first := p.ask("first")
	p.send("message-input", requestMessage("hi", "r1"), header(topics.HeaderRoute, descriptor))
	p.send("reply-to", namedRoute("r1"))
	id := topics.RouteID(p.key, p.past[len(p.past)-1].source().Cause)
	next := the[enriched](t, p.respond(first, saying("done")))
	require.Contains(t, reply(t, p, next), `"route_id":"`+id+`"`, "the route's own record has precedence")

	p = newPlay(t)
	require.Empty(t, reply(t, p, named(p, descriptor)), "only processors/delivery has the token")
	for name, wrong := range map[string]string{
		"no route_id": `{"callbackService":"harbor"}`, "with a token": `{"callbackService":"x","bearerToken":"t","route_id":"7"}`,
		"no object": `"7"`, "no JSON": `{`, "too large": `{"route_id":"` + strings.Repeat("7", maxDescriptor) + `"}`,
	} {
		p = newPlay(t, delivery)
		require.Empty(t, reply(t, p, named(p, wrong)), name)
	}
}
