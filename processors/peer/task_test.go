package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestCommandOfAnUnknownKindIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	es := p.handle(p.command(topics.PeerCommand{Kind: "sail", TaskID: "t1", PeerID: "tenant-a"}))
	require.Equal(t, reasonCommand, letter(t, es))
	require.Nil(t, p.state())
}
