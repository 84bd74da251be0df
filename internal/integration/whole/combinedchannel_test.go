package whole

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// lounge is a platform. It has what the agent has said.
type lounge chan adapter.Chunk

func (lounge) Channel() string        { return "lounge" }
func (lounge) Traits() adapter.Traits { return adapter.Traits{Format: text.Plain} }
func (r lounge) Send(_ context.Context, c adapter.Chunk) (adapter.Sent, error) {
	r <- c
	return adapter.Sent{}, nil
}

// writes is a person who writes a message to the agent.
func (c *combined) writes(said string) {
	c.t.Helper()
	require.NoError(c.t, c.doors.Receive(c.ctx, adapter.Inbound{Event: said, Text: said, Origin: topics.Origin{
		Channel: lounge.Channel(nil), Account: "main", Recipient: "mira", User: "mira", MessageID: said,
	}}))
}

// reads waits until the agent has said a text to the person.
func (c *combined) reads(want string) adapter.Chunk {
	c.t.Helper()
	for {
		said, err := next(c.ctx, c.lounge, fmt.Sprintf("the platform that is told %q", want))
		require.NoError(c.t, err)
		require.Equal(c.t, "mira", said.To.Recipient)
		if strings.Contains(said.Text, want) {
			return said
		}
	}
}

// isWrittenTo writes to the agent on a platform: the answer, the question for an approval and the result of a task that was handed off
// are there.
func (c *combined) isWrittenTo() {
	c.t.Helper()
	c.writes("lookup a berth")
	c.reads("N4 at 18:00")
	c.writes("pay it")
	if c.on.has(asksPeople) {
		require.NotNil(c.t, c.reads("pay").Ask)
		c.writes("/approve")
	}
	c.reads(`"paid":700`)
	if c.on.has(delegates) {
		c.writes("delegate it")
		c.reads("announced: ")
	}
}
