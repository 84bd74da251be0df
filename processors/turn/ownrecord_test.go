package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// What the turn knows by its bytes is its own tool message and nothing else, as long as the step is open.
func TestOwnToolMessageIsRecognizedByItsBytes(t *testing.T) {
	p := newPlay(t)
	own := header(topics.HeaderID, "chat-1")
	known := func(value string) bool { return p.bind.cache.isToolMessage(p.key, []byte(value)) }

	said := p.topics.MessageInput.Codec().Unmarshal([]byte(message("Which berth is free?"))).Value
	question, err := p.topics.MessageInput.Codec().Marshal(said)
	require.NoError(t, err)
	asked := the[enriched](t, p.send("message-input", string(question), own))
	require.Equal(t, string(question), string(asked.LatestInput))
	require.False(t, known(string(question)), "a user may say the same again")

	require.Empty(t, p.respond(asked, calling("t1")).letters())
	require.False(t, known(string(question)))
	out := p.result("t1", "N4")
	var tool string
	for _, e := range p.encode(out) {
		if e.stream == p.topics.MessageInput.Stream() {
			tool = string(e.raw)
		}
	}
	require.True(t, known(tool), "the record is the open step's input")
	require.False(t, known(tool+" "))
	require.False(t, known(""))
	require.Empty(t, p.send("message-input", tool, own), "and so it is when it is read")
	require.True(t, known(tool))

	p.respond(the[enriched](t, out), saying("N4 is free."))
	require.False(t, known(tool))
	require.Empty(t, p.send("message-input", tool, own))
}
