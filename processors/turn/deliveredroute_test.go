package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestWithDeliveryNoTokenEntersRowOrOutput(t *testing.T) {
	const secret = `{"callbackService":"harbor","bearerToken":"s3cret","extra":[1.10]}`
	p := newPlay(t, func(r *Rules) { r.Delivery = true })
	asked := p.ask("hi")
	p.send("reply-to", secret)
	require.NotContains(t, string(p.row), "s3cret")
	id := topics.RouteID(p.key, p.past[len(p.past)-1].record().Cause)
	require.Equal(t, `{"callbackService":"harbor","extra":[1.10],"route_id":"`+id+`"}`, reply(t, p, asked))
}
